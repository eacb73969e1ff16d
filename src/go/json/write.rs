//! Writer of JSON text with the same bytes as Go's.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Returns the JSON text of `value` as `encoding/json.Marshal` writes it, on one line. Struct fields are in declaration order.
/// Maps must be sorted and have string keys.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(128);
    value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter(CompactFormatter)))?;
    Ok(String::from_utf8(bytes).expect("a serializer of text writes text"))
}

/// Returns the JSON text of a JSON value, which cannot fail.
pub fn text(value: &serde_json::Value) -> String {
    to_string(value).expect("JSON values can be written")
}

/// Returns the JSON text of `value` as `encoding/json.MarshalIndent` writes it, with two spaces per level.
pub fn to_string_pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(256);
    value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFormatter(PrettyFormatter::new())))?;
    Ok(String::from_utf8(bytes).expect("a serializer of text writes text"))
}

/// Members of an object in a given order. They are serialized as a map in this order.
#[derive(Clone, Debug, Default)]
pub struct Members(pub Vec<(&'static str, serde_json::Value)>);

impl Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Formats `value` as `encoding/json` prints a float: with the fewest digits that parse to the same value, and with an exponent
/// only below 1e-6 and from 1e21. Follows `encoding/json/encode.go#floatEncoder.encode @go1.26`.
pub fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => text,
        };
    }
    value.to_string()
}

/// Writes text with Go's additional escapes for HTML and JavaScript: `<`, `>`, `&`, U+2028 and U+2029. `serde_json` makes all
/// other escapes of Go.
fn write_escaped<W: io::Write + ?Sized>(writer: &mut W, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        let (plain, escaped) = rest.split_at(at);
        let character = escaped.chars().next().expect("found at this place");
        writer.write_all(plain.as_bytes())?;
        write!(writer, "\\u{:04x}", u32::from(character))?;
        rest = &escaped[character.len_utf8()..];
    }
    writer.write_all(rest.as_bytes())
}

/// Writes strings and 64-bit floats as Go does, and everything else with the inner formatter.
struct GoFormatter<F>(F);

impl<F: Formatter> Formatter for GoFormatter<F> {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        write_escaped(writer, fragment)
    }

    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }

    fn begin_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(value: impl Serialize, expected: &str) {
        assert_eq!(to_string(&value).expect("can be written"), expected);
    }

    #[test]
    fn strings_are_escaped_as_in_go() {
        check("plain", r#""plain""#);
        check("<a>&b\u{2028}\u{2029}é\u{7f}", "\"\\u003ca\\u003e\\u0026b\\u2028\\u2029é\u{7f}\"");
        check("\u{1}\u{8}\u{c}\n\r\t\"\\/", r#""\u0001\b\f\n\r\t\"\\/""#);
        check(json!({"<": ["&", 1, null, true]}), r#"{"\u003c":["\u0026",1,null,true]}"#);
    }

    #[test]
    fn struct_fields_keep_order_and_map_keys_are_sorted() {
        #[derive(Serialize)]
        struct Both {
            second: i64,
            first: Value,
        }
        check(Both { second: -1, first: json!({"b": 1, "a": 2}) }, r#"{"second":-1,"first":{"a":2,"b":1}}"#);
    }

    #[test]
    fn pretty_json_has_gos_layout() {
        let members = Members(vec![("b", json!({"x": [1, "<"], "y": {}})), ("a", json!([]))]);
        let expected =
            "{\n  \"b\": {\n    \"x\": [\n      1,\n      \"\\u003c\"\n    ],\n    \"y\": {}\n  },\n  \"a\": []\n}";
        assert_eq!(to_string_pretty(&members).expect("can be written"), expected);
        check(members, r#"{"b":{"x":[1,"\u003c"],"y":{}},"a":[]}"#);
    }

    #[test]
    fn floats_are_formatted_as_in_go() {
        for (value, expected) in [
            (1000.0, "1000"),
            (1.5, "1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (0.0, "0"),
        ] {
            assert_eq!(float(value), expected);
            check(value, expected);
        }
    }
}
