//! What is wrong with one field, in upstream's words.

use std::fmt;

use serde_json::Value;

use crate::k8s::field_error::quoted;

/// What is wrong with one field.
/// Follows `apimachinery/pkg/util/validation/field/errors.go#Error @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path, such as `spec.tolerations[0].key`.
    pub field: String,
    /// The sort of error.
    pub kind: FieldErrorKind,
    /// The value as the message prints it.
    pub value: String,
    /// What is wrong.
    pub detail: String,
}

/// Sorts of field errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// The value breaks a rule.
    Invalid,
    /// A value is missing.
    Required,
    /// The value is not one of a list.
    NotSupported,
    /// The field may not be set.
    Forbidden,
    /// The value occurs twice.
    Duplicate,
    /// What the value names is not there.
    NotFound,
}

impl FieldErrorKind {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
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
        }
    }
}

impl FieldError {
    /// A value that breaks a rule.
    pub fn invalid(field: impl fmt::Display, value: &Value, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), kind: FieldErrorKind::Invalid, value: go_text(value), detail: detail.into() }
    }

    /// A missing value.
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), kind: FieldErrorKind::Required, value: String::new(), detail: detail.into() }
    }

    /// A value outside `supported`, which the message lists in the order given.
    pub fn not_supported(field: impl fmt::Display, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        Self { field: field.to_string(), kind: FieldErrorKind::NotSupported, value: go_text(value), detail }
    }

    /// A field that may not be set.
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), kind: FieldErrorKind::Forbidden, value: String::new(), detail: detail.into() }
    }

    /// A value that occurs twice.
    pub fn duplicate(field: impl fmt::Display, value: &Value) -> Self {
        Self { field: field.to_string(), kind: FieldErrorKind::Duplicate, value: go_text(value), detail: String::new() }
    }

    /// A value that names something which is not there.
    pub fn not_found(field: impl fmt::Display, value: &Value) -> Self {
        Self { field: field.to_string(), kind: FieldErrorKind::NotFound, value: go_text(value), detail: String::new() }
    }

    /// The text without the field, as causes have it.
    pub(super) fn body(&self) -> String {
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

/// A value as Go's messages print it: texts quoted, numbers and flags plain, the rest as JSON.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}
