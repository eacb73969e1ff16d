//! Quoted text, as Go's `strconv.Quote` writes it.

use std::fmt::Write as _;

/// Quotes `text` as `strconv.Quote` and `%q` do. Package `time` quotes differently; see [`super::duration`].
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            other => push_escaped(&mut quoted, other),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats `character` in single quotes, as in errors of `encoding/json`.
/// Follows `encoding/json/scanner.go#quoteChar @go1.26`.
pub(super) fn quote_character(character: char) -> String {
    let mut quoted = String::from("'");
    match character {
        '\'' => quoted.push_str("\\'"),
        other => push_escaped(&mut quoted, other),
    }
    quoted.push('\'');
    quoted
}

/// Appends a character, escaped if necessary. The caller handles the surrounding quote.
/// Follows `strconv/quote.go#appendEscapedRune @go1.26`.
fn push_escaped(quoted: &mut String, character: char) {
    match character {
        '\\' => quoted.push_str("\\\\"),
        '\x07' => quoted.push_str("\\a"),
        '\x08' => quoted.push_str("\\b"),
        '\x0c' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\x0b' => quoted.push_str("\\v"),
        ' ' | '\'' | '"' => quoted.push(character),
        _ if is_printable(character) => quoted.push(character),
        _ => {
            let code = u32::from(character);
            // Writing to a string cannot fail.
            let _ = match code {
                0..0x80 => write!(quoted, "\\x{code:02x}"),
                0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                _ => write!(quoted, "\\U{code:08x}"),
            };
        }
    }
}

/// Whether Go prints the character unescaped. This holds for all characters that Rust prints, except spaces other than U+0020.
fn is_printable(character: char) -> bool {
    // The character is tested after another one, because Rust escapes a combining mark only at the start of a string.
    !character.is_whitespace() && ['a', character].iter().collect::<String>().escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::{quote, quote_character};

    #[test]
    fn strings_are_quoted_as_in_go() {
        let check = |text: &str, expected: &str| assert_eq!(quote(text), expected);
        check("plain 'x'", "\"plain 'x'\"");
        check("a\"\\\n\t\r\x07\x08\x0b\x0c", "\"a\\\"\\\\\\n\\t\\r\\a\\b\\v\\f\"");
        check("\0\x7f\x01", "\"\\x00\\x7f\\x01\"");
        check("é世", "\"é世\"");
        check("e\u{301}", "\"e\u{301}\"");
        check("\u{a0}\u{200b}\u{feff}", "\"\\u00a0\\u200b\\ufeff\"");
        check("\u{e0001}", "\"\\U000e0001\"");
    }

    #[test]
    fn characters_are_single_quoted() {
        let check = |character: char, expected: &str| assert_eq!(quote_character(character), expected);
        check('\'', r"'\''");
        check('"', r#"'"'"#);
        check('\\', r"'\\'");
        check('\n', r"'\n'");
        check('\x07', r"'\a'");
        check('\u{80}', r"'\u0080'");
        check('é', "'é'");
    }
}
