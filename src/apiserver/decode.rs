//! Reading request bodies: the checks that Go's decoder makes before any rule of the API applies.

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::kinds::{Kind, PODS};
use super::status::Status;
use super::{schema, types};
use crate::k8s::Pod;

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
        schema::MEDIA_TYPE => schema::decode(body).map_err(|error| {
            Status::bad_request(format!("the object provided is unrecognized (must be of type {kind_name}): {error}"))
        }),
        other => Err(Status::unsupported_media_type(format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf (got {other})"
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
    drop_nulls(&mut value);
    check_metadata(kind, &value)?;
    types::check(kind, &value).map_err(|why| mistyped(kind, &why))?;
    value["apiVersion"] = json!(expected);
    value["kind"] = json!(kind.kind);
    Ok(value)
}

/// Reads a pod as scheduling sees it, which is what a scheduler's client will do with it.
pub(super) fn pod(value: &Value) -> Result<Pod, Status> {
    Pod::deserialize(value).map_err(|error| mistyped(&PODS, &error.to_string()))
}

/// Leaves out what is null, which to Go's decoder is as good as absent. An entry of a map of texts stays, as an empty one.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                if let ("labels" | "annotations" | "matchLabels" | "nodeSelector", Value::Object(texts)) =
                    (key.as_str(), &mut *member)
                {
                    texts.values_mut().filter(|text| text.is_null()).for_each(|text| *text = json!(""));
                }
            }
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

pub(super) fn mistyped(kind: &Kind, why: &str) -> Status {
    Status::bad_request(format!("{0} in version {1:?} cannot be handled as a {0}: {why}", kind.kind, kind.version))
}

/// Names and maps of texts are texts, in the words of Go's decoder.
fn check_metadata(kind: &Kind, value: &Value) -> Result<(), Status> {
    let refuse = |found: &Value, field: &str, expected: &str| {
        let found = go_type(found);
        mistyped(kind, &format!("json: cannot unmarshal {found} into Go struct field {field} of type {expected}"))
    };
    let metadata = &value["metadata"];
    if !metadata.is_null() && !metadata.is_object() {
        return Err(refuse(metadata, &format!("{}.metadata", kind.kind), "v1.ObjectMeta"));
    }
    for key in ["name", "namespace", "generateName", "uid", "resourceVersion"] {
        if !metadata[key].is_null() && !metadata[key].is_string() {
            return Err(refuse(&metadata[key], &format!("ObjectMeta.metadata.{key}"), "string"));
        }
    }
    for key in ["labels", "annotations"] {
        let (field, map) = (format!("ObjectMeta.metadata.{key}"), &metadata[key]);
        if !map.is_null() && !map.is_object() {
            return Err(refuse(map, &field, "map[string]string"));
        }
        if let Some(wrong) = map.as_object().into_iter().flatten().map(|(_, text)| text).find(|text| !text.is_string())
        {
            return Err(refuse(wrong, &field, "string"));
        }
    }
    for key in ["spec", "status"] {
        let part = &value[key];
        if !part.is_null() && !part.is_object() {
            let title = if key == "spec" { "Spec" } else { "Status" };
            let expected = format!("{}.{}{title}", kind.version, kind.kind);
            return Err(refuse(part, &format!("{}.{key}", kind.kind), &expected));
        }
    }
    Ok(())
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
