//! First sentences of doc comments: at least four words, and none that begins with What, Who, Whose, Where or How.
//!
//! The check reads `///` and `//!` in `src`, and `//!` in `tests`.

use std::fs;

use crate::findings::{Finding, check};
use crate::{files, root};

const MIN_WORDS: usize = 4;

/// First words that stand for a thing instead of naming it.
const RIDDLES: &[&str] = &["What", "Who", "Whose", "Where", "How"];

#[test]
fn first_sentences_of_doc_comments_follow_the_rule() {
    let mut found = Vec::new();
    for (folder, markers) in [("src", &["///", "//!"][..]), ("tests", &["//!"][..])] {
        let mut paths = Vec::new();
        files(&root().join(folder), "rs", &mut paths);
        paths.sort();
        for file in paths {
            let text = fs::read_to_string(&file).expect("a readable source");
            for (line, sentence) in first_sentences(&text, markers) {
                if breaks_the_rule(&sentence) {
                    found.push(Finding { file: file.clone(), line, text: sentence });
                }
            }
        }
    }
    check("doc", &found);
}

/// The first sentence of each doc comment, with its line.
fn first_sentences(text: &str, markers: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut current: Option<&str> = None;
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = markers.iter().copied().find(|marker| line.starts_with(marker) && !line.starts_with("////"));
        let Some(marker) = marker else {
            current = None;
            continue;
        };
        let words = line[marker.len()..].trim();
        if current != Some(marker) {
            found.push((at + 1, String::new()));
            is_open = true;
        }
        current = Some(marker);
        let Some((_, paragraph)) = found.last_mut().filter(|_| is_open) else { continue };
        is_open = !words.is_empty();
        if is_open {
            paragraph.push_str(words);
            paragraph.push(' ');
        }
    }
    found.into_iter().map(|(line, paragraph)| (line, first_sentence(&paragraph))).collect()
}

/// The text up to the first full stop outside backquotes.
fn first_sentence(paragraph: &str) -> String {
    let mut is_code = false;
    let letters: Vec<(usize, char)> = paragraph.char_indices().collect();
    for pair in letters.windows(2) {
        let (at, letter) = pair[0];
        is_code ^= letter == '`';
        if !is_code && matches!(letter, '.' | '!' | '?') && pair[1].1.is_whitespace() {
            return paragraph[..=at].to_owned();
        }
    }
    paragraph.trim().to_owned()
}

fn breaks_the_rule(sentence: &str) -> bool {
    let words: Vec<&str> = sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).collect();
    let first = words.first().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
    words.len() < MIN_WORDS || first.is_some_and(|first| RIDDLES.contains(&first))
}

#[test]
fn the_first_sentence_ends_at_a_full_stop_outside_code() {
    let text = "/// Returns the value of `a. b` in v1.36 form. Never fails.\n///\n/// More.\nfn f() {}\n/// Short.\n";
    let expected = [(1, "Returns the value of `a. b` in v1.36 form.".to_owned()), (5, "Short.".to_owned())];
    assert_eq!(first_sentences(text, &["///"]), expected);
}

#[test]
fn short_sentences_and_question_words_break_the_rule() {
    for sentence in ["The bit.", "Does it.", "How long a token counts.", "Who may not is served nothing."] {
        assert!(breaks_the_rule(sentence), "{sentence}");
    }
    for sentence in ["Index of this key's bit.", "Whether the pod is bound.", "However long it takes, it waits."] {
        assert!(!breaks_the_rule(sentence), "{sentence}");
    }
}
