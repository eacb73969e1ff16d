//! Tokens of Rust source, as far as the checks of this folder need them: identifiers, paths and punctuation.

/// One token of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// An identifier or a keyword.
    Word(String),
    /// A string literal, with its escapes as written.
    Text(String),
    /// The separator `::` of a path.
    PathSeparator,
    /// Any other punctuation, one character each.
    Punct(char),
}

impl Token {
    /// Whether the token is this identifier or keyword.
    pub(crate) fn is_word(&self, expected: &str) -> bool {
        matches!(self, Token::Word(word) if word == expected)
    }

    /// The identifier or keyword, if the token is one.
    pub(crate) fn word(&self) -> Option<&str> {
        if let Token::Word(word) = self { Some(word) } else { None }
    }
}

/// Splits source code into tokens. Comments, character literals, raw string literals, and the quotes of lifetimes are dropped.
pub(crate) fn tokens(code: &str) -> Vec<Token> {
    let letters: Vec<char> = code.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        let next = letters.get(at + 1).copied();
        if letter.is_whitespace() {
            at += 1;
        } else if letter == '/' && next == Some('/') {
            at = line_end(&letters, at);
        } else if letter == '/' && next == Some('*') {
            at = block_end(&letters, at);
        } else if letter == '"' {
            let end = text_end(&letters, at + 1);
            found.push(Token::Text(letters[at + 1..end - 1].iter().collect()));
            at = end;
        } else if let Some(end) = raw_text_end(&letters, at) {
            at = end;
        } else if letter == '\'' {
            at = quoted_end(&letters, at);
        } else if is_word(letter) {
            let end = (at..letters.len()).find(|end| !is_word(letters[*end])).unwrap_or(letters.len());
            found.push(Token::Word(letters[at..end].iter().collect()));
            at = end;
        } else if letter == ':' && next == Some(':') {
            found.push(Token::PathSeparator);
            at += 2;
        } else {
            found.push(Token::Punct(letter));
            at += 1;
        }
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn line_end(letters: &[char], at: usize) -> usize {
    (at..letters.len()).find(|end| letters[*end] == '\n').unwrap_or(letters.len())
}

fn block_end(letters: &[char], at: usize) -> usize {
    let closes = |end: &usize| letters[*end - 1] == '*' && letters[*end] == '/';
    (at + 3..letters.len()).find(closes).map_or(letters.len(), |end| end + 1)
}

/// The position after the quote that closes a string literal.
fn text_end(letters: &[char], begin: usize) -> usize {
    let mut at = begin;
    while at < letters.len() {
        match letters[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    letters.len()
}

/// The position after a raw string literal, if one begins here.
fn raw_text_end(letters: &[char], at: usize) -> Option<usize> {
    let is_continued = at > 0 && is_word(letters[at - 1]) && letters[at - 1] != 'b';
    if letters[at] != 'r' || is_continued {
        return None;
    }
    let hashes = letters[at + 1..].iter().take_while(|letter| **letter == '#').count();
    if letters.get(at + 1 + hashes) != Some(&'"') {
        return None;
    }
    let body = at + 2 + hashes;
    let closes = |end: &usize| {
        let after = letters[*end + 1..].iter().take(hashes).filter(|letter| **letter == '#').count();
        letters[*end] == '"' && after == hashes
    };
    Some((body..letters.len()).find(closes).map_or(letters.len(), |end| end + 1 + hashes))
}

/// Returns the position after a character literal, or after the quote of a lifetime.
fn quoted_end(letters: &[char], at: usize) -> usize {
    match (letters.get(at + 1), letters.get(at + 2)) {
        (Some('\\'), _) => {
            (at + 3..letters.len()).find(|end| letters[*end] == '\'').map_or(letters.len(), |end| end + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at + 1,
    }
}

#[test]
fn comments_strings_and_characters_are_not_tokens() {
    let words =
        |code: &str| tokens(code).iter().filter_map(|token| token.word().map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(words("a /* b */ c // d\n e"), ["a", "c", "e"]);
    assert_eq!(words(r##"a("b \" c", r#"d " e"#, 'f', '\'', g)"##), ["a", "g"]);
    assert_eq!(words("fn f<'a>(x: &'a str) -> b'x'"), ["fn", "f", "a", "x", "a", "str", "b"]);
}
