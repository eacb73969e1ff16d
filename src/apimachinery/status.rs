//! The `Status` object, with which an API server reports a failure or a success without object.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::field_error::{FieldError, aggregate};
use super::protobuf::{Envelope, Message};
use crate::go::quote::quote;

/// Result of a request, as clients see it. It is serialized in the order of upstream's fields.
/// Follows `apimachinery/pkg/apis/meta/v1/types.go#Status @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code of the response. 0 if the object leaves it out.
    pub code: u16,
    /// Whether the request succeeded.
    pub is_success: bool,
    /// Machine-readable reason of the failure. Empty for an unknown error.
    pub reason: &'static str,
    /// The message for people to read.
    pub message: String,
    /// The object of the result, and the causes of a failure.
    pub details: Option<Box<Details>>,
    /// Continue token that replaces an expired one.
    pub continue_token: Option<String>,
}

/// The object and the causes of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural resource name, or the kind for validation errors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// UID of the object, in responses to deletions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The individual causes of a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Seconds after which the client should retry. 0 if not set.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: &'static str,
    /// The message for people to read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field. Empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Status {
    /// Creates the status of a failure.
    pub fn failure(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, is_success: false, reason, message: message.into(), details: None, continue_token: None }
    }

    /// Creates the status of a success. A code of 0 is left out.
    pub fn success(code: u16) -> Self {
        Self { is_success: true, ..Self::failure(code, "", "") }
    }

    /// Sets the object of the result. With empty strings, the details are empty but present.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        kind.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    /// Adds a cause to the details.
    #[must_use]
    pub fn cause(mut self, reason: &'static str, message: impl Into<String>, field: impl Into<String>) -> Self {
        let cause = Cause { reason, message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Asks the client to retry after some seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Status for a malformed request. Follows `apimachinery/pkg/api/errors/errors.go#NewBadRequest @v1.36.3`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(400, "BadRequest", message)
    }

    /// Status for a client that is not authenticated.
    pub fn unauthorized() -> Self {
        Self::failure(401, "Unauthorized", "Unauthorized")
    }

    /// Status for an error without reason, such as an untyped error inside the server.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::failure(500, "", message)
    }

    /// Status for a patch that cannot be applied. As in upstream, the message does not tell the cause. Follows
    /// `apimachinery/pkg/api/errors/errors.go#NewGenericServerResponse @v1.36.3`.
    pub fn unprocessable() -> Self {
        Self::failure(422, "Invalid", "the server rejected our request due to an error in our request")
            .about("", "", "")
    }

    /// Status for an `Accept` header without any supported media type.
    /// Follows `apiserver/pkg/endpoints/handlers/negotiation/errors.go#errNotAcceptable @v1.36.3`.
    pub fn not_acceptable(served: &[impl AsRef<str>]) -> Self {
        let served: Vec<&str> = served.iter().map(AsRef::as_ref).collect();
        let message = format!("only the following media types are accepted: {}", served.join(", "));
        Self::failure(406, "NotAcceptable", message)
    }

    /// Status for an object that violates validation rules. The name is empty for options.
    /// Follows `apimachinery/pkg/api/errors/errors.go#NewInvalid @v1.36.3`.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let text = aggregate(errors);
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut status = Self::failure(422, "Invalid", format!("{qualified} {} is invalid: {text}", quote(name)));
        status = status.about(group, kind, name);
        for error in errors {
            status = status.cause(error.kind.reason(), error.body(), error.field.clone());
        }
        status
    }

    fn outcome(&self) -> &'static str {
        if self.is_success { "Success" } else { "Failure" }
    }

    /// Encodes the object as protobuf, in its envelope. As in upstream, empty fields are encoded too.
    /// Follows `apimachinery/pkg/apis/meta/v1/generated.proto @v1.36.3`.
    pub fn to_protobuf(&self) -> Vec<u8> {
        let token = self.continue_token.as_deref().unwrap_or_default();
        let metadata = Message::default().bytes(1, "").bytes(2, "").bytes(3, token);
        let mut status = Message::default().message(1, metadata).bytes(2, self.outcome()).bytes(3, &self.message);
        status = status.bytes(4, self.reason);
        if let Some(details) = &self.details {
            status = status.message(5, details.to_protobuf());
        }
        let raw = status.number(6, u64::from(self.code)).finish();
        Envelope { version: "v1".to_owned(), kind: "Status".to_owned(), raw: &raw }.write()
    }
}

impl Details {
    fn to_protobuf(&self) -> Message {
        let mut details = Message::default().bytes(1, &self.name).bytes(2, &self.group).bytes(3, &self.kind);
        for cause in &self.causes {
            let cause = Message::default().bytes(1, cause.reason).bytes(2, &cause.message).bytes(3, &cause.field);
            details = details.message(4, cause);
        }
        details.number(5, u64::from(self.retry_after_seconds)).bytes(6, &self.uid)
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let metadata = self.continue_token.as_ref().map_or_else(|| json!({}), |token| json!({ "continue": token }));
        let mut object = serializer.serialize_struct("Status", 8)?;
        object.serialize_field("kind", "Status")?;
        object.serialize_field("apiVersion", "v1")?;
        object.serialize_field("metadata", &metadata)?;
        object.serialize_field("status", self.outcome())?;
        for (name, text) in [("message", self.message.as_str()), ("reason", self.reason)] {
            if !text.is_empty() {
                object.serialize_field(name, text)?;
            }
        }
        if let Some(details) = &self.details {
            object.serialize_field("details", details)?;
        }
        if self.code != 0 {
            object.serialize_field("code", &self.code)?;
        }
        object.end()
    }
}

impl From<&Status> for Value {
    fn from(status: &Status) -> Self {
        serde_json::to_value(status).expect("texts and numbers have a JSON form")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::go::json;

    #[test]
    fn json_fields_have_upstreams_order() {
        let check = |status: &Status, expected: &str| {
            assert_eq!(json::to_string(status).expect("can be written"), expected);
        };
        check(
            &Status::bad_request("<no>").about("apps", "deployments", "d").cause("", "c", "f"),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"\u003cno\u003e","reason":"BadRequest","details":{"name":"d","group":"apps","kind":"deployments","causes":[{"message":"c","field":"f"}]},"code":400}"#,
        );
        let expired = Status { continue_token: Some("t".to_owned()), ..Status::success(0) };
        check(&expired, r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Success"}"#);
    }

    #[test]
    fn protobuf_equals_upstreams() {
        // Response of upstream's scheduler to an unknown token.
        let expected: &[u8] = &[
            0x6b, 0x38, 0x73, 0x00, 0x0a, 0x0c, 0x0a, 0x02, 0x76, 0x31, 0x12, 0x06, 0x53, 0x74, 0x61, 0x74, 0x75, 0x73,
            0x12, 0x30, 0x0a, 0x06, 0x0a, 0x00, 0x12, 0x00, 0x1a, 0x00, 0x12, 0x07, 0x46, 0x61, 0x69, 0x6c, 0x75, 0x72,
            0x65, 0x1a, 0x0c, 0x55, 0x6e, 0x61, 0x75, 0x74, 0x68, 0x6f, 0x72, 0x69, 0x7a, 0x65, 0x64, 0x22, 0x0c, 0x55,
            0x6e, 0x61, 0x75, 0x74, 0x68, 0x6f, 0x72, 0x69, 0x7a, 0x65, 0x64, 0x30, 0x91, 0x03, 0x1a, 0x00, 0x22, 0x00,
        ];
        assert_eq!(Status::unauthorized().to_protobuf(), expected);
    }

    #[test]
    fn several_field_errors_are_bracketed() {
        let errors =
            [FieldError::required("spec.a", ""), FieldError::not_supported("spec.b", &json!("x"), &["y", "z"])];
        let status = Status::invalid("", "Pod", "p", &errors);
        assert_eq!(
            status.message,
            "Pod \"p\" is invalid: [spec.a: Required value, spec.b: Unsupported value: \"x\": supported values: \"y\", \"z\"]"
        );
        let details = status.details.unwrap();
        assert_eq!(details.kind, "Pod");
        assert_eq!(details.causes[1].reason, "FieldValueNotSupported");
        assert_eq!(details.causes[1].message, "Unsupported value: \"x\": supported values: \"y\", \"z\"");
        let twice = [FieldError::required("spec.a", ""), FieldError::required("spec.a", "")];
        assert_eq!(Status::invalid("", "Pod", "p", &twice).message, "Pod \"p\" is invalid: spec.a: Required value");
    }
}
