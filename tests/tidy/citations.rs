//! Citations of upstream have one form: a path, a symbol of that file, and a version, as in
//! `pkg/scheduler/scheduler.go#buildExtenders @v1.36.3`.
//!
//! A whole file or folder is cited without a symbol. Several symbols of one file are put in braces and separated by commas. A
//! further symbol of the file cited just before is cited as `#buildQueueingHintMap @v1.36.3`.

use std::fs;

use crate::findings::{Finding, check};
use crate::{files, root};

#[test]
fn upstream_citations_are_well_formed() {
    let mut paths = Vec::new();
    files(&root().join("src"), "rs", &mut paths);
    files(&root().join("tests"), "rs", &mut paths);
    paths.sort();
    let mut found = Vec::new();
    for file in paths.into_iter().filter(|file| !file.starts_with(root().join("tests/tidy"))) {
        let text = fs::read_to_string(&file).expect("a readable source");
        for (line, citation) in citations(&text) {
            if !is_well_formed(&citation) {
                found.push(Finding { file: file.clone(), line, text: citation });
            }
        }
    }
    check("citation", &found);
}

/// Returns the texts in backquotes that contain a version, with their lines. The lines of one comment are joined first.
fn citations(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut begins = 1;
    for (at, line) in text.lines().chain([""]).enumerate() {
        let line = line.trim_start();
        if let Some(words) = line.strip_prefix("//") {
            if comment.is_empty() {
                begins = at + 1;
            }
            comment.push_str(words.trim_start_matches(['/', '!']).trim());
            comment.push(' ');
        } else {
            let coded = comment.split('`').skip(1).step_by(2).filter(|text| text.contains("@v"));
            found.extend(coded.map(|text| (begins, text.to_owned())));
            comment.clear();
        }
    }
    found
}

fn is_well_formed(citation: &str) -> bool {
    let Some((cited, version)) = citation.split_once(" @v") else { return false };
    let (path, symbol) = cited.split_once('#').map_or((cited, None), |(path, symbol)| (path, Some(symbol)));
    let is_part = |part: &str| {
        let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !part.is_empty() && part.chars().all(is_fine)
    };
    let numbers: Vec<&str> = version.split('.').collect();
    let is_path = path.contains('/') && path.split('/').all(is_part);
    let is_same_file = path.is_empty() && symbol.is_some();
    (is_path || is_same_file)
        && symbol.is_none_or(|symbol| (is_same_file || path.strip_suffix(".go").is_some()) && is_symbol(symbol))
        && numbers.len() == 3
        && numbers.iter().all(|number| number.parse::<u32>().is_ok())
}

/// Whether the text is `Name`, `Type.Method`, or several of these in braces.
fn is_symbol(text: &str) -> bool {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let is_dotted = |text: &str| text.split('.').count() <= 2 && text.split('.').all(is_name);
    match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(several) => several.split(',').all(is_dotted),
        None => is_dotted(text),
    }
}

#[test]
fn malformed_citations_are_detected() {
    for citation in [
        "pkg/scheduler/scheduler.go#buildExtenders @v1.36.3",
        "apimachinery/pkg/api/resource/math.go#{positiveScaleInt64,negativeScaleInt64} @v1.36.3",
        "pkg/scheduler/framework/types.go#PodInfo.Update @v1.36.3",
        "pkg/scheduler/backend/queue @v1.36.3",
        "#negativeScaleInt64 @v1.36.3",
    ] {
        assert!(is_well_formed(citation), "{citation}");
    }
    for citation in
        ["@v1.36.3", "…/webhook.go#DefaultShouldRetry @v1.36.3", "pkg/*/v1/defaults.go @v1.36.3", "a/b#C @v1.36.3"]
    {
        assert!(!is_well_formed(citation), "{citation}");
    }
}
