//! Errors about single fields of an object, with upstream's texts.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::go::json;
use crate::go::quote::quote;

/// An error about one field.
/// Follows `apimachinery/pkg/util/validation/field/errors.go#Error @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, such as `spec.tolerations[0].key`.
    pub field: String,
    /// The type of error.
    pub kind: FieldErrorKind,
    /// The value, formatted for the message.
    pub value: String,
    /// The violated rule, or an explanation.
    pub detail: String,
}

/// Types of errors about fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The value violates a rule.
    Invalid,
    /// A required value is missing.
    Required,
    /// The value is not in the list of supported values.
    NotSupported,
    /// The field must not be set.
    Forbidden,
    /// The value occurs more than once.
    Duplicate,
    /// The value refers to an object that does not exist.
    NotFound,
    /// The list has too many elements.
    TooMany,
}

/// A value, formatted for messages: strings are quoted, numbers and booleans are plain, and all other values are JSON as in Go.
/// Follows `apimachinery/pkg/util/validation/field/errors.go#Error.ErrorBody @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadValue(String);

impl BadValue {
    /// Formats a value of a type that Go prints as JSON. This includes named string types.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Self {
        // Strings, numbers and lists of them can always be serialized.
        Self(json::to_string(value).unwrap_or_default())
    }

    /// Formats a value with its `Display` form.
    pub fn plain(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::from(text.as_str()),
            other => Self::json(other),
        }
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self(quote(text))
    }
}

impl FieldErrorKind {
    /// Returns the machine-readable reason for the causes of a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid value",
            Self::Required => "Required value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooMany => "Too many",
        }
    }
}

impl FieldError {
    fn new(kind: FieldErrorKind, field: impl fmt::Display, value: BadValue, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), kind, value: value.0, detail: detail.into() }
    }

    /// Creates an error for a value that violates a rule.
    pub fn invalid(field: impl fmt::Display, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value.into(), detail)
    }

    /// Creates an error for a missing value.
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, BadValue::default(), detail)
    }

    /// Creates an error for a value that is not in `supported`. The message lists the supported values in this order.
    pub fn not_supported(field: impl fmt::Display, value: impl Into<BadValue>, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|value| quote(value)).collect();
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        Self::new(FieldErrorKind::NotSupported, field, value.into(), detail)
    }

    /// Creates an error for a field that must not be set.
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, BadValue::default(), detail)
    }

    /// Creates an error for a value that occurs more than once.
    pub fn duplicate(field: impl fmt::Display, value: impl Into<BadValue>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value.into(), "")
    }

    /// Creates an error for a value that refers to a missing object.
    pub fn not_found(field: impl fmt::Display, value: impl Into<BadValue>) -> Self {
        Self::new(FieldErrorKind::NotFound, field, value.into(), "")
    }

    /// Creates an error for a list with more than `most` elements.
    pub fn too_many(field: impl fmt::Display, count: usize, most: usize) -> Self {
        let detail = format!("must have at most {most} items");
        Self::new(FieldErrorKind::TooMany, field, BadValue::plain(count), detail)
    }

    /// Returns the message without the field, as in the causes of a `Status`.
    pub fn body(&self) -> String {
        let title = self.kind.title();
        let mut text = match self.kind {
            FieldErrorKind::Required | FieldErrorKind::Forbidden => title.to_owned(),
            _ => format!("{title}: {}", self.value),
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Path of a field from the root of an object, such as `profiles[0].pluginConfig[2].args.limit`. The default is the root.
/// Follows `apimachinery/pkg/util/validation/field/path.go#Path @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// Creates a path from its text.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the field `name` of this object.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(child(&self.0, name))
    }

    /// Returns the path of an element of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the path of `name` under `path`. An empty path is the root.
pub fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A list of errors about fields, displayed by [`aggregate`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// Iterates over the errors, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &FieldError> {
        self.0.iter()
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds `<path>: Invalid value: <shown>: <detail>`. The caller must pass strings through [`quote`] first.
    pub fn invalid(&mut self, path: &FieldPath, shown: impl fmt::Display, detail: &str) {
        self.push(FieldError::invalid(path, BadValue::plain(shown), detail));
    }

    /// Adds `<path>: Required value: <detail>`.
    pub fn required(&mut self, path: &FieldPath, detail: &str) {
        self.push(FieldError::required(path, detail));
    }

    /// Adds `<path>: Duplicate value: <value>`, with the value quoted.
    pub fn duplicate(&mut self, path: &FieldPath, value: &str) {
        self.push(FieldError::duplicate(path, value));
    }

    /// Adds `<path>: Forbidden: <detail>`.
    pub fn forbidden(&mut self, path: &FieldPath, detail: &str) {
        self.push(FieldError::forbidden(path, detail));
    }

    /// Adds `<path>: Unsupported value: <value>: supported values: <supported>`. The values have a named string type, so Go
    /// prints them as JSON.
    pub fn unsupported(&mut self, path: &FieldPath, value: &str, supported: &[&str]) {
        self.push(FieldError::not_supported(path, BadValue::json(value), supported));
    }

    /// Adds the errors of `other`, if it has any.
    pub fn extend<T>(&mut self, other: Result<T, Self>) {
        if let Err(other) = other {
            self.append(other);
        }
    }

    /// Adds an error at the end.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Adds all errors of `other`.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Returns `value` if there are no errors.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&aggregate(&self.0))
    }
}

impl std::error::Error for FieldErrors {}

/// Joins messages without repetitions. A single message stays as it is. Several messages are put in brackets. Follows
/// `apimachinery/pkg/util/errors/errors.go#aggregate.Error @v1.36.3`.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(error: &FieldError, expected: &str) {
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn messages_equal_upstreams() {
        check(&FieldError::invalid("a.b", &json!(5), "too big"), "a.b: Invalid value: 5: too big");
        check(&FieldError::invalid("a", "x\n", "no"), "a: Invalid value: \"x\\n\": no");
        check(&FieldError::invalid("a", &json!(["<"]), "no"), r#"a: Invalid value: ["\u003c"]: no"#);
        check(&FieldError::invalid("a", BadValue::json(&None::<&[String]>), "no"), "a: Invalid value: null: no");
        check(&FieldError::required("a", ""), "a: Required value");
        check(&FieldError::required("a", "why"), "a: Required value: why");
        check(&FieldError::duplicate("a", BadValue::plain("{}")), "a: Duplicate value: {}");
        check(&FieldError::forbidden("a", "why"), "a: Forbidden: why");
        check(
            &FieldError::not_supported(child("spec", "operator"), BadValue::json("<x>"), &["In", "NotIn"]),
            r#"spec.operator: Unsupported value: "\u003cx\u003e": supported values: "In", "NotIn""#,
        );
    }

    #[test]
    fn errors_have_the_path_of_their_field() {
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
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn several_messages_are_bracketed_without_duplicates() {
        assert_eq!(aggregate(["a"]), "a");
        assert_eq!(aggregate(["a", "a"]), "a");
        assert_eq!(aggregate(["a", "b", "a"]), "[a, b]");
    }
}
