//! Finds the quotes and the tag of a scalar by looking at the text before it.

use std::cell::RefCell;
use std::collections::HashMap;

/// Maximum length, in bytes, of a look-back whose result is not cached. Each alias repeats the look-back, so long ones are
/// cached.
const NEAR: usize = 64;

/// The notation of a scalar in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written<'a> {
    pub(super) is_quoted: bool,
    /// The scalar's tag, such as `!!str`, `!mine` or `!`.
    pub(super) tag: Option<&'a str>,
}

/// Finds the notation of scalars in the text of a file.
#[derive(Debug)]
pub(super) struct Tags<'a> {
    text: &'a str,
    /// Results of long look-backs, by the scalar's position. Used only for lookups, never iterated.
    far: RefCell<HashMap<usize, Written<'a>>>,
}

impl<'a> Tags<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, far: RefCell::default() }
    }

    /// The notation of `lent`, a slice of the file's text. A text that is not a slice of the file has escapes or line breaks, so
    /// it counts as quoted.
    pub(super) fn before(&self, lent: &str) -> Written<'a> {
        let at = (lent.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let Some(before) = self.text.get(..at) else { return Written { is_quoted: true, tag: None } };
        if let Some(known) = self.far.borrow().get(&at) {
            return *known;
        }
        let unquoted = before.strip_suffix(['"', '\'']);
        let (tag, end) = tag_before(unquoted.unwrap_or(before));
        let written = Written { is_quoted: unquoted.is_some(), tag };
        if at - end > NEAR {
            self.far.borrow_mut().insert(at, written);
        }
        written
    }
}

/// The last tag in a text, if only anchors, comments and white space follow it, and the position where the search ended.
fn tag_before(text: &str) -> (Option<&str>, usize) {
    let mut rest = text;
    loop {
        let trimmed = without_comment(rest.trim_end_matches([' ', '\t', '\n', '\r']), rest);
        if trimmed.len() < rest.len() {
            rest = trimmed;
            continue;
        }
        let start = match rest.strip_suffix('>').and_then(|_| rest.rfind("!<")) {
            Some(verbatim) => verbatim,
            None => rest.rfind(|c: char| c.is_whitespace() || "[]{},".contains(c)).map_or(0, |at| at + 1),
        };
        let start = if rest.is_char_boundary(start) { start } else { rest.len() };
        let token = &rest[start..];
        if token.starts_with('&') {
            rest = &rest[..start];
            continue;
        }
        return (token.starts_with('!').then(|| short(token)), start);
    }
}

/// Shortens the verbatim form of a tag to `!!x`.
fn short(tag: &str) -> &str {
    match tag {
        "!<tag:yaml.org,2002:str>" => "!!str",
        "!<tag:yaml.org,2002:binary>" => "!!binary",
        tag => tag,
    }
}

/// Removes a comment at the end of `text`, which is `with_space` without the white space at its end. The text ends with a
/// comment only if that white space contains a line break.
fn without_comment<'a>(text: &'a str, with_space: &str) -> &'a str {
    if !with_space[text.len()..].contains(['\n', '\r']) {
        return text;
    }
    let line = text.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let (mut quote, mut previous) = (None, ' ');
    for (at, c) in text[line..].char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '#') if previous.is_whitespace() => return &text[..line + at],
            // In other places, a quote is part of a word.
            (None, '"' | '\'') if previous.is_whitespace() || "[{,".contains(previous) => quote = Some(c),
            _ => {}
        }
        previous = c;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, is_quoted: bool, tag: Option<&str>) {
        let text = format!("{before}value");
        let tags = Tags::new(&text);
        let expected = Written { is_quoted, tag };
        assert_eq!(tags.before(&text[before.len()..]), expected, "{before:?}");
        assert_eq!(tags.before(&text[before.len()..]), expected, "{before:?} again");
    }

    #[test]
    fn quotes_and_tags_before_a_scalar_are_found() {
        check("a: ", false, None);
        check("", false, None);
        check("é: \"", true, None);
        check("a: !!str '", true, Some("!!str"));
        check("a: ! ", false, Some("!"));
        check("a: !mine\n   ", false, Some("!mine"));
        check("[!!str ", false, Some("!!str"));
        check("a: !!str &n ", false, Some("!!str"));
        check("a: &n !!str ", false, Some("!!str"));
        check("a: &n ", false, None);
        check("a: !!str # c\n    ", false, Some("!!str"));
        check("a: # see !12\n    ", false, None);
        check("a: !!str\n# c\n\n  # d\n    ", false, Some("!!str"));
        check("'#': !!str # it's\n  ", false, Some("!!str"));
        check("a#b: !!str\n  ", false, Some("!!str"));
        check("a: !<tag:yaml.org,2002:str> ", false, Some("!!str"));
        check(&format!("a: !!str{}", " ".repeat(1000)), false, Some("!!str"));
    }

    #[test]
    fn scalar_from_elsewhere_counts_as_quoted() {
        assert_eq!(Tags::new("a: b").before("elsewhere"), Written { is_quoted: true, tag: None });
    }
}
