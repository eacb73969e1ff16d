//! Parser from JSON text to [`Value`]s, with the error texts of Go's `encoding/json`.

use super::Value;
use crate::go::quote::quote_character;

/// Maximum nesting depth of arrays and objects. Go allows 10,000, but the scheduler's documents are far from that depth, and
/// the lower limit keeps recursion shallow.
pub const MAX_DEPTH: usize = 256;

const END: &str = "unexpected end of JSON input";

/// Error for a text that is not JSON, with Go's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SyntaxError(pub String);

/// The function of `encoding/json` that reads a text. The two report errors differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The function `Unmarshal`: the text is exactly one value.
    Unmarshal,
    /// The method `Decoder.Decode`: reads the first value of a stream. If the stream ends inside it, the error is
    /// `unexpected EOF`.
    Stream,
}

/// Parses a text that is exactly one JSON value. Invalid UTF-8 in strings becomes U+FFFD.
pub fn parse(text: &[u8]) -> Result<Value, SyntaxError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.value()?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.expect("after top-level value")),
    }
}

/// Returns the error that Go reports for `text`, or `None` if the text is valid.
pub fn syntax_error(text: &[u8], source: Source) -> Option<String> {
    match source {
        Source::Unmarshal => parse(text).err().map(|error| error.0),
        Source::Stream => {
            let mut parser = Parser { text, at: 0, depth: 0 };
            let error = parser.value().err()?;
            Some(if parser.at == text.len() { "unexpected EOF".to_owned() } else { error.0 })
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    /// Offset of the next byte.
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Returns the error for an unexpected next byte, or for the end of the text.
    fn expect(&self, context: &str) -> SyntaxError {
        self.peek().map_or_else(|| SyntaxError(END.to_owned()), |byte| unexpected(byte, context))
    }

    /// Returns the same error inside a word, number or escape. There, Go reads the end of the text as a space.
    fn expect_inside(&self, context: &str) -> SyntaxError {
        unexpected(self.peek().unwrap_or(b' '), context)
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            _ => Err(self.expect("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, SyntaxError>) -> Result<Value, SyntaxError> {
        if self.depth == MAX_DEPTH {
            return Err(SyntaxError("exceeded max depth".to_owned()));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, SyntaxError> {
        let mut entries = Vec::new();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.expect("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.expect("after object key"));
            }
            self.at += 1;
            entries.push((key, self.value()?));
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(entries));
                }
                _ => return Err(self.expect("after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.expect("after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, SyntaxError> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(self.expect_inside(&context));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(Value::Number(String::from_utf8_lossy(&self.text[start..self.at]).into_owned()))
    }

    fn digits(&mut self, context: &str) -> Result<(), SyntaxError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.expect_inside(context));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    /// Reads a string, starting at its opening quote.
    fn string(&mut self) -> Result<String, SyntaxError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let plain = self.text[self.at..].iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
            out.push_str(&String::from_utf8_lossy(&self.text[self.at..self.at + plain]));
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                _ => return Err(self.expect("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let c = match self.peek() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.expect_inside("in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    /// Reads `XXXX` after `\u`, and the second half of a surrogate pair. An unpaired surrogate becomes U+FFFD.
    fn unicode(&mut self) -> Result<char, SyntaxError> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) || !self.text[self.at..].starts_with(b"\\u") {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let back = self.at;
        self.at += 2;
        let second = self.hex()?;
        if (0xdc00..0xe000).contains(&second) {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.at = back;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32, SyntaxError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|c| char::from(c).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expect_inside("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// Returns the error for an unexpected `byte`. Go prints a byte above ASCII as the character with its code.
fn unexpected(byte: u8, context: &str) -> SyntaxError {
    SyntaxError(format!("invalid character {} {context}", quote_character(char::from(byte))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: impl Into<serde_json::Value>) {
        assert_eq!(parse(text.as_bytes()).map(|value| value.to_json()), Ok(expected.into()), "{text}");
    }

    fn check_error(text: &str, expected: &str) {
        assert_eq!(parse(text.as_bytes()).map_err(|error| error.0), Err(expected.to_owned()), "{text}");
    }

    #[test]
    fn json_is_parsed() {
        check(
            r#" {"a": [1, -2.5e3, true, null], "b": {"c": ""}} "#,
            serde_json::json!({
                "a": [1, -2500.0, true, null], "b": {"c": ""}
            }),
        );
        check(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83dx""#, "a\"\\/\u{8}\u{c}\n\r\té😀\u{fffd}x");
        check("18446744073709551615", u64::MAX);
        check("[]", serde_json::json!([]));
    }

    #[test]
    fn repeated_keys_are_kept() {
        let Ok(Value::Object(entries)) = parse(br#"{"a": 1, "a": 2}"#) else { panic!("an object") };
        assert_eq!(entries.len(), 2);
    }

    #[test]
    fn syntax_errors_equal_gos() {
        check_error("", "unexpected end of JSON input");
        check_error(r#"{"a": "#, "unexpected end of JSON input");
        check_error("{a", "invalid character 'a' looking for beginning of object key string");
        check_error(r#"{"a" 1"#, "invalid character '1' after object key");
        check_error(r#"{"a": 1 "b""#, "invalid character '\"' after object key:value pair");
        check_error(r#"{"a": 1,}"#, "invalid character '}' looking for beginning of object key string");
        check_error(r#"{"a": '"#, "invalid character '\\'' looking for beginning of value");
        check_error("[1 2]", "invalid character '2' after array element");
        check_error("{} x", "invalid character 'x' after top-level value");
        check_error("tru-", "invalid character '-' in literal true (expecting 'e')");
        check_error("tru", "invalid character ' ' in literal true (expecting 'e')");
        check_error("\"\\", "invalid character ' ' in string escape code");
        check_error("\"a", "unexpected end of JSON input");
        check_error("-x", "invalid character 'x' in numeric literal");
        check_error("1.x", "invalid character 'x' after decimal point in numeric literal");
        check_error("1ex", "invalid character 'x' in exponent of numeric literal");
        check_error("\"\n\"", "invalid character '\\n' in string literal");
        check_error(r#""\x""#, "invalid character 'x' in string escape code");
        check_error(r#""\u00zz""#, "invalid character 'z' in \\u hexadecimal character escape");
        check_error(&"[".repeat(MAX_DEPTH + 1), "exceeded max depth");
    }

    #[test]
    fn invalid_utf8_is_replaced_or_reported_as_in_go() {
        assert_eq!(parse(b"\"a\xff\""), Ok(Value::String("a\u{fffd}".to_owned())));
        let error = |text: &[u8]| syntax_error(text, Source::Unmarshal);
        assert_eq!(error(b"\xc3").as_deref(), Some("invalid character '\u{c3}' looking for beginning of value"));
        assert_eq!(error(b"\x80").as_deref(), Some("invalid character '\\u0080' looking for beginning of value"));
    }

    #[test]
    fn streams_report_unexpected_eof_and_allow_trailing_data() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(syntax_error(text.as_bytes(), Source::Stream).as_deref(), expected, "{text}");
        };
        check("{} x", None);
        check("{\"a\": ", Some("unexpected EOF"));
        check("tru", Some("unexpected EOF"));
        check("[1 2]", Some("invalid character '2' after array element"));
    }
}
