//! Errors of the server as `Status` objects, with upstream's texts.
//!
//! Follows `apimachinery/pkg/api/errors/errors.go @v1.36.3`.

use std::fmt;

use super::kinds::Kind;
use crate::apimachinery::Status;
use crate::go::quote::quote;

impl Status {
    fn of(self, kind: &Kind, name: &str) -> Self {
        self.about(kind.group, kind.plural, name)
    }

    pub(super) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::failure(404, "NotFound", format!("{} {} not found", kind.qualified(), quote(name))).of(kind, name)
    }

    pub(super) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::failure(409, "AlreadyExists", format!("{} {} already exists", kind.qualified(), quote(name)))
            .of(kind, name)
    }

    pub(super) fn generate_name_conflict(kind: &Kind, name: &str) -> Self {
        let text = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            kind.qualified(),
            quote(name)
        );
        Self::failure(409, "AlreadyExists", text).of(kind, name)
    }

    /// Returns a 409 for a conflict. `why` is the text that explains the conflict.
    pub(super) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        Self::conflict_on(kind.group, kind.plural, name, why)
    }

    pub(super) fn conflict_on(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let text = format!("Operation cannot be fulfilled on {qualified} {}: {why}", quote(name));
        Self::failure(409, "Conflict", text).about(group, resource, name)
    }

    /// Returns the 409 for conflicts of an apply.
    /// Follows `apimachinery/pkg/api/errors/errors.go#NewApplyConflict @v1.36.3`.
    pub(super) fn apply_conflict(message: String) -> Self {
        Self::failure(409, "Conflict", message)
    }

    /// Returns the 409 for an update that is based on an older version.
    /// Follows `apiserver/pkg/registry/generic/registry/store.go#OptimisticLockErrorMsg @v1.36.3`.
    pub(super) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(super) fn forbidden(kind: &Kind, name: &str, why: impl fmt::Display) -> Self {
        let text = if name.is_empty() {
            format!("{} is forbidden: {why}", kind.qualified())
        } else {
            format!("{} {} is forbidden: {why}", kind.qualified(), quote(name))
        };
        Self::failure(403, "Forbidden", text).of(kind, name)
    }

    /// Returns a 403 for a resource whose name is not a kind's plural name.
    pub(super) fn forbidden_on(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let text = format!("{resource}.{group} {} is forbidden: {why}", quote(name));
        Self::failure(403, "Forbidden", text).about(group, resource, name)
    }

    /// Returns a 429 with this message.
    /// Follows `apimachinery/pkg/api/errors/errors.go#NewTooManyRequests @v1.36.3`.
    pub(super) fn too_many_requests(message: &str) -> Self {
        Self::failure(429, "TooManyRequests", message)
    }

    pub(super) fn internal(message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self::failure(500, "InternalError", format!("Internal error occurred: {message}")).cause("", message, "")
    }

    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::failure(410, "Expired", message)
    }

    pub(super) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::failure(415, "UnsupportedMediaType", message)
    }

    /// Returns the 415 for an unsupported type of patch.
    pub(super) fn unsupported_patch() -> Self {
        Self::unsupported_media_type("415: Unsupported Media Type").about("", "", "")
    }

    /// Returns the 413 for a body larger than `limit` bytes.
    /// Follows `apimachinery/pkg/api/errors/errors.go#NewRequestEntityTooLargeError @v1.36.3`.
    pub(super) fn too_large_body(limit: usize) -> Self {
        let text = format!("Request entity too large: limit is {limit}");
        Self::failure(413, "RequestEntityTooLarge", text)
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .about("", "", "")
    }

    pub(super) fn no_such_resource() -> Self {
        Self::failure(404, "NotFound", "the server could not find the requested resource").about("", "", "")
    }

    pub(super) fn timeout(message: impl Into<String>) -> Self {
        Self::failure(504, "Timeout", message)
    }

    /// Returns an error that a test injects, with the usual reason for `code`.
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
        let status = Self::failure(code, reason, format!("injected failure {code}"));
        retry_after.map_or(status.clone(), |seconds| status.retry_after(seconds))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::kinds::{LEASES, PODS};
    use super::*;

    fn check(status: &Status, expected: &Value) {
        assert_eq!(&Value::from(status), expected);
    }

    #[test]
    fn messages_name_the_resource_with_its_group() {
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
}
