//! Complaints about fields, in upstream's words.

use std::fmt;

/// Several messages in one: a single one stands alone, several stand in brackets, each once.
/// Follows `apimachinery/pkg/util/errors/errors.go#aggregate.Error @v1.36.3`.
pub fn aggregate<S: fmt::Display>(messages: impl IntoIterator<Item = S>) -> String {
    let mut once: Vec<String> = Vec::new();
    for message in messages {
        let message = message.to_string();
        if !once.contains(&message) {
            once.push(message);
        }
    }
    match once.as_mut_slice() {
        [message] => std::mem::take(message),
        _ => format!("[{}]", once.join(", ")),
    }
}

/// Path of a field from the root of an object, such as `profiles[0].pluginConfig[2].args.limit`. The default is the root.
/// Follows `apimachinery/pkg/util/validation/field/path.go#Path @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path that `path` spells.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// The path of the field `name` of this object.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(child(&self.0, name))
    }

    /// The path of an element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One or more complaints about fields, shown as [`aggregate`] has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<String>);

impl FieldErrors {
    /// The complaints, in the order in which they were found.
    pub fn messages(&self) -> &[String] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `<path>: Invalid value: <shown>: <detail>`. A text goes through [`quoted`] before it is shown.
    /// Follows `apimachinery/pkg/util/validation/field/errors.go#Invalid @v1.36.3`.
    pub fn invalid(&mut self, path: &FieldPath, shown: impl fmt::Display, detail: &str) {
        self.push(invalid(&path.0, &shown.to_string(), detail));
    }

    /// Adds `<path>: Required value: <detail>`.
    /// Follows `apimachinery/pkg/util/validation/field/errors.go#Required @v1.36.3`.
    pub fn required(&mut self, path: &FieldPath, detail: &str) {
        self.push(format!("{path}: Required value: {detail}"));
    }

    /// Adds `<path>: Duplicate value: <value>`, with the value quoted.
    /// Follows `apimachinery/pkg/util/validation/field/errors.go#Duplicate @v1.36.3`.
    pub fn duplicate(&mut self, path: &FieldPath, value: &str) {
        self.push(format!("{path}: Duplicate value: {}", quoted(value)));
    }

    /// Adds `<path>: Forbidden: <detail>`.
    /// Follows `apimachinery/pkg/util/validation/field/errors.go#Forbidden @v1.36.3`.
    pub fn forbidden(&mut self, path: &FieldPath, detail: &str) {
        self.push(format!("{path}: Forbidden: {detail}"));
    }

    /// Adds `<path>: Unsupported value: <value>: supported values: <supported>`.
    /// Follows `apimachinery/pkg/util/validation/field/errors.go#NotSupported @v1.36.3`.
    pub fn unsupported(&mut self, path: &FieldPath, value: &str, supported: &[&str]) {
        self.push(not_supported(&path.0, value, supported));
    }

    /// Adds the errors of `other`, if it has any.
    pub fn extend<T>(&mut self, other: Result<T, Self>) {
        if let Err(other) = other {
            self.append(other);
        }
    }

    /// Adds one.
    pub(super) fn push(&mut self, message: String) {
        self.0.push(message);
    }

    /// Adds those of `other`.
    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// `value`, if there is nothing to complain about.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&aggregate(&self.0))
    }
}

impl std::error::Error for FieldErrors {}

/// `<path>: Invalid value: <shown>: <detail>`; `shown` is the value as [`quoted`] or [`json_list`] has it.
/// Follows `apimachinery/pkg/util/validation/field/errors.go#Invalid @v1.36.3`.
pub(super) fn invalid(path: &str, shown: &str, detail: &str) -> String {
    format!("{path}: Invalid value: {shown}: {detail}")
}

/// `<path>: Unsupported value: <shown>: supported values: …`.
/// Follows `apimachinery/pkg/util/validation/field/errors.go#NotSupported @v1.36.3`.
pub(super) fn not_supported(path: &str, value: &str, supported: &[&str]) -> String {
    let supported: Vec<String> = supported.iter().map(|value| quoted(value)).collect();
    format!("{path}: Unsupported value: {}: supported values: {}", json_text(value), supported.join(", "))
}

/// The path of `name` under `path`; an empty path is the root.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `text` as Go's `%q` shows it.
pub fn quoted(text: &str) -> String {
    use std::fmt::Write as _;

    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            ' ' | '\'' => quoted.push(character),
            _ if is_printable(character) => quoted.push(character),
            _ => {
                let code = u32::from(character);
                // Writing into a string cannot fail.
                let _ = match code {
                    0..0x80 => write!(quoted, "\\x{code:02x}"),
                    0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Whether Go would print the character as it is: what Rust prints, less spaces other than the plain one.
fn is_printable(character: char) -> bool {
    // Behind another character, since Rust escapes a combining mark only where there is nothing to combine with.
    !character.is_whitespace() && ['a', character].iter().collect::<String>().escape_debug().count() == 2
}

/// `values` as Go's JSON has them: `null` if there is no list.
pub(super) fn json_list(values: Option<&[String]>) -> String {
    let Some(values) = values else { return "null".to_owned() };
    let values: Vec<String> = values.iter().map(|value| json_text(value)).collect();
    format!("[{}]", values.join(","))
}

/// `text` as Go's JSON has it.
fn json_text(text: &str) -> String {
    html_safe(&serde_json::Value::from(text).to_string())
}

/// JSON as Go writes it, which escapes what HTML could take for markup.
pub fn html_safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::{FieldErrors, FieldPath, aggregate, child, json_list, not_supported, quoted};

    #[test]
    fn quoted_as_go_does() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected);
        check("plain 'x'", "\"plain 'x'\"");
        check("a\"\\\n\t\r\x07\x08\x0b\x0c", "\"a\\\"\\\\\\n\\t\\r\\a\\b\\v\\f\"");
        check("\0\x7f", "\"\\x00\\x7f\"");
        check("é世", "\"é世\"");
        check("e\u{301}", "\"e\u{301}\"");
        check("\u{a0}\u{200b}", "\"\\u00a0\\u200b\"");
        check("\u{e0001}", "\"\\U000e0001\"");
    }

    #[test]
    fn lists_as_go_does() {
        assert_eq!(json_list(None), "null");
        assert_eq!(json_list(Some(&[])), "[]");
        assert_eq!(json_list(Some(&["a<".to_owned(), "\"".to_owned()])), r#"["a\u003c","\""]"#);
    }

    #[test]
    fn several_complaints_are_bracketed_and_shown_once() {
        assert_eq!(aggregate(["a"]), "a");
        assert_eq!(aggregate(["a", "a"]), "a");
        assert_eq!(aggregate(["a", "b", "a"]), "[a, b]");
    }

    #[test]
    fn unsupported_values_name_the_supported_ones() {
        assert_eq!(
            not_supported(&child("spec", "operator"), "Near", &["In", "NotIn"]),
            r#"spec.operator: Unsupported value: "Near": supported values: "In", "NotIn""#
        );
    }

    #[test]
    fn errors_name_the_path_of_their_field() {
        let (root, mut errors) = (FieldPath::default(), FieldErrors::default());
        let item = root.child("items").index(2);
        errors.invalid(&item.child("size"), 5, "too big");
        errors.required(&root.child("name"), "why");
        errors.duplicate(&item, "a<");
        errors.forbidden(&item, "why");
        errors.unsupported(&item, "<x>", &["Y", "Z"]);
        errors.extend(Ok::<(), _>(()));
        let expected = [
            "items[2].size: Invalid value: 5: too big",
            "name: Required value: why",
            "items[2]: Duplicate value: \"a<\"",
            "items[2]: Forbidden: why",
            r#"items[2]: Unsupported value: "\u003cx\u003e": supported values: "Y", "Z""#,
        ];
        assert_eq!(errors.messages(), expected);
    }
}
