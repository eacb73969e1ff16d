//! The `Status` object: how the server says no, and the texts it says it with.
//!
//! Follows `apimachinery/pkg/api/errors/errors.go @v1.36.3`.

use std::fmt;

use serde_json::{Value, json};

use super::field_error::FieldError;
use super::kinds::Kind;
use crate::k8s::field_error::aggregate;

/// A failed request, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty for an error of unknown kind.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// A token that goes on where an expired one stopped.
    pub continue_token: Option<String>,
}

/// What a failure is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// Plural resource name, or the kind for validation errors.
    pub kind: String,
    /// UID of the object, in answers to deletes.
    pub uid: String,
    /// Single causes.
    pub causes: Vec<Cause>,
    /// When to try again; 0 for unsaid.
    pub retry_after_seconds: u32,
}

/// One cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The text for people.
    pub message: String,
    /// Path of the field; empty if none.
    pub field: String,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        kind.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }

    fn of(self, kind: &Kind, name: &str) -> Self {
        self.about(kind.group, kind.plural, name)
    }

    pub(super) fn cause(mut self, reason: &'static str, message: impl Into<String>, field: impl Into<String>) -> Self {
        let cause = Cause { reason, message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    pub(super) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.qualified())).of(kind, name)
    }

    pub(super) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", kind.qualified())).of(kind, name)
    }

    pub(super) fn generate_name_conflict(kind: &Kind, name: &str) -> Self {
        let text = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for the object",
            kind.qualified()
        );
        Self::new(409, "AlreadyExists", text).of(kind, name)
    }

    /// `registry/rest: OptimisticLockErrorMsg` is the text when an update was based on an older version.
    pub(super) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        Self::conflict_on(kind.group, kind.plural, name, why)
    }

    pub(super) fn conflict_on(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let text = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
        Self::new(409, "Conflict", text).about(group, resource, name)
    }

    /// Follows `apimachinery/pkg/api/errors/errors.go#NewApplyConflict @v1.36.3`.
    pub(super) fn apply_conflict(message: String) -> Self {
        Self::new(409, "Conflict", message)
    }

    pub(super) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn forbidden(kind: &Kind, name: &str, why: impl fmt::Display) -> Self {
        let text = if name.is_empty() {
            format!("{} is forbidden: {why}", kind.qualified())
        } else {
            format!("{} {name:?} is forbidden: {why}", kind.qualified())
        };
        Self::new(403, "Forbidden", text).of(kind, name)
    }

    /// The same of what is no kind's plural name.
    pub(super) fn forbidden_on(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let text = format!("{resource}.{group} {name:?} is forbidden: {why}");
        Self::new(403, "Forbidden", text).about(group, resource, name)
    }

    /// Follows `apimachinery/pkg/api/errors/errors.go#NewTooManyRequests @v1.36.3`.
    pub(super) fn too_many_requests(message: &str) -> Self {
        Self::new(429, "TooManyRequests", message)
    }

    /// An error without reason, as an untyped error of the server's own code becomes one.
    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(super) fn internal(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self::new(500, "InternalError", format!("Internal error occurred: {message}")).cause("", message, "")
    }

    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// A patch that does not apply.
    /// Follows `apimachinery/pkg/api/errors/errors.go#NewGenericServerResponse @v1.36.3`, which keeps the reason to itself.
    pub(super) fn unprocessable() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request").about("", "", "")
    }

    pub(super) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A patch of a type that there is not.
    pub(super) fn unsupported_patch() -> Self {
        Self::unsupported_media_type("415: Unsupported Media Type").about("", "", "")
    }

    /// Follows `apiserver/pkg/endpoints/handlers/negotiation/errors.go#errNotAcceptable @v1.36.3`.
    pub(super) fn not_acceptable() -> Self {
        Self::new(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, \
             application/json;as=Table;g=meta.k8s.io;v=v1",
        )
    }

    /// Follows `apimachinery/pkg/api/errors/errors.go#NewRequestEntityTooLargeError @v1.36.3`.
    pub(super) fn too_large_body(limit: usize) -> Self {
        let text = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", text)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .about("", "", "")
    }

    pub(super) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").about("", "", "")
    }

    pub(super) fn timeout(message: impl Into<String>) -> Self {
        Self::new(504, "Timeout", message)
    }

    /// A failure that a test injects: the reason that belongs to `code`, and a text that says so.
    pub(super) fn injected(code: u16, retry_after: Option<u32>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            410 => "Expired",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        let status = Self::new(code, reason, format!("injected failure {code}"));
        retry_after.map_or(status.clone(), |seconds| status.retry_after(seconds))
    }

    /// The 422 for field errors; `name` is empty for options.
    pub(super) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let text = aggregate(errors);
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut status =
            Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {text}")).about(group, kind, name);
        for error in errors {
            status = status.cause(error.kind.reason(), error.body(), error.field.clone());
        }
        status
    }

    /// The object on the wire.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut details = json!({});
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                details[key] = text.as_str().into();
            }
        }
        if !self.causes.is_empty() {
            details["causes"] = self.causes.iter().map(Cause::to_value).collect();
        }
        if self.retry_after_seconds > 0 {
            details["retryAfterSeconds"] = self.retry_after_seconds.into();
        }
        details
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = json!({});
        for (key, text) in [("reason", self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                cause[key] = text.into();
            }
        }
        cause
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
    use super::super::kinds::{LEASES, PODS};
    use super::*;

    fn check(status: &Status, expected: &Value) {
        assert_eq!(&status.to_value(), expected);
    }

    #[test]
    fn texts_name_the_resource_with_its_group() {
        check(
            &Status::not_found(&PODS, "a"),
            &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "pods \"a\" not found", "reason": "NotFound", "code": 404,
                "details": {"name": "a", "kind": "pods"}}),
        );
        assert_eq!(
            Status::modified(&LEASES, "l").message,
            "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": the object has been modified; \
             please apply your changes to the latest version and try again"
        );
    }

    #[test]
    fn several_field_errors_stand_in_brackets() {
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
