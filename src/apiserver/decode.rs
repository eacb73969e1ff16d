//! Reading request bodies: the checks that Go's decoder makes before any rule of the API applies.

use serde_json::{Value, json};

use super::kinds::Kind;
use super::status::Status;

/// Parses a body that should hold an object of `kind`; YAML is accepted where the request says so.
pub(super) fn body(kind_name: &str, content_type: &str, body: &[u8]) -> Result<Value, Status> {
    match content_type {
        "" | "application/json" | "*/*" => serde_json::from_slice(body).map_err(|error| {
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind_name}): couldn't get version/kind; \
                 json parse error: {error} ({})",
                excerpt(body)
            ))
        }),
        "application/yaml" => serde_yaml::from_slice(body).map_err(|error| {
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind_name}): couldn't get version/kind; \
                 yaml parse error: {error} ({})",
                excerpt(body)
            ))
        }),
        other => Err(Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml (got {other})"
        ))),
    }
}

/// The start of a body in hexadecimal, as messages about unreadable bodies end.
fn excerpt(body: &[u8]) -> String {
    use std::fmt::Write as _;
    const LIMIT: usize = 3 * 10;
    let mut text = String::new();
    for byte in body.iter().take(LIMIT) {
        write!(text, "{byte:02x}").expect("a String takes every write");
    }
    if body.len() > LIMIT {
        text.push_str(" ...");
    }
    text
}

/// Checks that the value says it is a `kind`, or says nothing, which counts as that.
pub(super) fn typed(kind: &Kind, mut value: Value) -> Result<Value, Status> {
    if !value.is_object() {
        return Err(Status::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type {}.{}",
            go_type(&value),
            kind.version,
            kind.kind
        )));
    }
    let expected = kind.api_version();
    let version = value["apiVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && version != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    let name = value["kind"].as_str().unwrap_or_default();
    if !name.is_empty() && name != kind.kind {
        let (group, _) = expected.rsplit_once('/').unwrap_or_default();
        let dotted = if group.is_empty() { kind.kind.to_owned() } else { format!("{}.{group}", kind.kind) };
        return Err(Status::bad_request(format!(
            "{name} in version {expected:?} cannot be handled as a {dotted}: no kind {name:?} is registered for \
             version {expected:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        )));
    }
    value["apiVersion"] = json!(expected);
    value["kind"] = json!(kind.kind);
    Ok(value)
}

/// What Go's decoder calls a value's type.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
