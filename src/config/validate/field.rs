//! One fault of one field, as text. Follows `apimachinery/pkg/util/validation/field/errors.go @v1.36.3`.

use std::fmt::Display;

use super::super::text::json;

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
    }
}
