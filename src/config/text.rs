//! Values as Go prints them in messages.

use crate::k8s::field_error::html_safe;
pub(super) use crate::k8s::field_error::quoted as quote;

/// `value` as Go's `encoding/json` prints it: on one line, safe in HTML.
pub(super) fn json(value: &serde_json::Value) -> String {
    html_safe(&value.to_string())
}

/// `value` as Go's `encoding/json` prints a float: the shortest digits that read back the same, with an exponent only
/// below 1e-6 and from 1e21.
pub(super) fn json_float(value: f64) -> String {
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

/// `value` as Go's `strconv.FormatFloat(…, 'g', -1, 32)` prints it: the shortest digits that read back the same, with an
/// exponent of two digits or more below 1e-4 and from 1e6.
pub(super) fn general_float(value: f32) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-4..1e6).contains(&magnitude) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// A boolean as Go's `strconv.ParseBool` reads it, with its error text.
pub(super) fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing {}: invalid syntax", quote(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::{json_float, quote};

    #[test]
    fn quotes_as_go() {
        assert_eq!(quote("a\"b\\c\n\x01\u{feff}é"), "\"a\\\"b\\\\c\\n\\x01\\ufeffé\"");
    }

    #[test]
    fn floats_as_go() {
        for (value, expected) in [
            (1000.0, "1000"),
            (1.5, "1.5"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (1e-7, "1e-7"),
            (0.0, "0"),
        ] {
            assert_eq!(json_float(value), expected);
        }
    }
}
