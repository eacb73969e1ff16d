//! One fault of one field, as text. Follows `apimachinery/pkg/util/validation/field/errors.go @v1.36.3`.

use std::fmt::Display;

use crate::go::json::text as json;
use crate::go::quote::quote;

/// `path: Invalid value: shown: detail`
pub(super) fn invalid(path: &str, shown: impl Display, detail: &str) -> String {
    format!("{path}: Invalid value: {shown}: {detail}")
}

/// `path: Required value: detail`, or without an empty detail.
pub(super) fn required(path: &str, detail: &str) -> String {
    if detail.is_empty() { format!("{path}: Required value") } else { format!("{path}: Required value: {detail}") }
}

/// `path: Duplicate value: shown`
pub(super) fn duplicate(path: &str, shown: &str) -> String {
    format!("{path}: Duplicate value: {shown}")
}

/// `path: Forbidden: detail`
pub(super) fn forbidden(path: &str, detail: &str) -> String {
    format!("{path}: Forbidden: {detail}")
}

/// `path: Unsupported value: value: supported values: "a", "b"`
pub(super) fn unsupported(path: &str, value: &str, supported: &[&str]) -> String {
    let supported: Vec<String> = supported.iter().map(|value| quote(value)).collect();
    format!("{path}: Unsupported value: {}: supported values: {}", json_string(value), supported.join(", "))
}

/// `text` as a JSON string.
pub(super) fn json_string(text: &str) -> String {
    json(&serde_json::Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_as_upstreams() {
        assert_eq!(invalid("a.b", 5, "too big"), "a.b: Invalid value: 5: too big");
        assert_eq!(required("a", ""), "a: Required value");
        assert_eq!(required("a", "why"), "a: Required value: why");
        assert_eq!(duplicate("a", "{}"), "a: Duplicate value: {}");
        assert_eq!(forbidden("a", "why"), "a: Forbidden: why");
        assert_eq!(
            unsupported("a", "<x>", &["Y", "Z"]),
            r#"a: Unsupported value: "\u003cx\u003e": supported values: "Y", "Z""#
        );
    }
}
