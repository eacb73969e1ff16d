//! Parts of pod signatures: JSON, to the byte as Go writes it.

use std::fmt;
use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use super::PluginError;

/// Part of a pod's signature, as JSON text. Struct fields stand in their order, map keys are sorted, and what Go's
/// `encoding/json` escapes is escaped, so that signatures can be compared with upstream's to the byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment(Box<str>);

impl Fragment {
    /// What `value` serialises to. Maps have to be sorted, and their keys to be texts.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, PluginError> {
        encode(value).map(|text| Self(text.into())).map_err(|error| PluginError::new(error.to_string()))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for Fragment {
    fn from(value: Value) -> Self {
        Self::of(&value).expect("JSON values can be written")
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The JSON text of `value` as Go's `encoding/json` would write it.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(128);
    value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter))?;
    Ok(String::from_utf8(bytes).expect("a serializer of text writes text"))
}

/// Escapes what Go escapes for the sake of HTML and of JavaScript: `<`, `>`, `&`, U+2028 and U+2029. All other escapes are
/// alike in both libraries.
struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, escaped) = rest.split_at(at);
            let character = escaped.chars().next().expect("found at this place");
            CompactFormatter.write_string_fragment(writer, plain)?;
            write!(writer, "\\u{:04x}", u32::from(character))?;
            rest = &escaped[character.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: impl Serialize, expected: &str) {
        assert_eq!(Fragment::of(&value).expect("can be written").as_str(), expected);
    }

    #[test]
    fn text_is_escaped_as_go_does_it() {
        check("plain", r#""plain""#);
        check("<a>&b\u{2028}\u{2029}é\u{7f}", "\"\\u003ca\\u003e\\u0026b\\u2028\\u2029é\u{7f}\"");
        check("\u{1}\u{8}\u{c}\n\r\t\"\\/", r#""\u0001\b\f\n\r\t\"\\/""#);
        check(json!({"<": ["&", 1, null, true]}), r#"{"\u003c":["\u0026",1,null,true]}"#);
    }

    #[test]
    fn fields_stand_in_their_order_and_keys_are_sorted() {
        #[derive(Serialize)]
        struct Both {
            second: i64,
            first: Value,
        }
        check(Both { second: -1, first: json!({"b": 1, "a": 2}) }, r#"{"second":-1,"first":{"a":2,"b":1}}"#);
        assert_eq!(Fragment::from(json!({"b": 1, "a": []})).to_string(), r#"{"a":[],"b":1}"#);
    }
}
