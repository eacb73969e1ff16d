//! Values of the annotations of nodes that schedulers of old releases read. The API server still checks them.

use serde_json::{Map, Value, json};

use crate::apiserver::schema::sort_of;
use crate::go::json::{Source, syntax_error};

/// Annotation with the pods that should avoid a node.
/// `pkg/apis/core/annotation_key_constants.go#PreferAvoidPodsAnnotationKey @v1.36.3`.
pub(super) const AVOID: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Annotation with the taints of a node. `pkg/apis/core/annotation_key_constants.go#TaintsAnnotationKey @v1.36.3`.
pub(super) const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";

/// Reads the annotation [`AVOID`]. Returns for each entry whether it refers to a controller, or `None` if it refers to nothing.
/// An error has Go's text.
/// Follows `component-helpers/scheduling/corev1/helpers.go#GetAvoidPodsFromNodeAnnotations @v1.36.3`.
pub(super) fn avoided_pods(text: &str) -> Result<Vec<Option<bool>>, String> {
    let root = parse(text)?;
    let root = object(&root, "Go value of type v1.AvoidPods")?;
    let list = member(root, "preferAvoidPods");
    let place = "Go struct field AvoidPods.preferAvoidPods of type";
    array(list, &format!("{place} []v1.PreferAvoidPodsEntry"))?.iter().map(|entry| avoided(entry, place)).collect()
}

/// Reads one entry of the annotation [`AVOID`].
fn avoided(entry: &Value, place: &str) -> Result<Option<bool>, String> {
    let entry = object(entry, &format!("{place} v1.PreferAvoidPodsEntry"))?;
    let path = "preferAvoidPods";
    for key in ["reason", "message"] {
        string(member(entry, key), &format!("Go struct field PreferAvoidPodsEntry.{path}.{key} of type string"))?;
    }
    let place = format!("Go struct field PreferAvoidPodsEntry.{path}.podSignature of type v1.PodSignature");
    let signature = object(member(entry, "podSignature"), &place)?;
    let path = format!("{path}.podSignature.podController");
    let controller = member(signature, "podController");
    if controller.is_null() {
        return Ok(None);
    }
    let controller = object(controller, &format!("Go struct field PodSignature.{path} of type v1.OwnerReference"))?;
    for key in ["apiVersion", "kind", "name", "uid"] {
        let kind = if key == "uid" { "types.UID" } else { "string" };
        string(member(controller, key), &format!("Go struct field OwnerReference.{path}.{key} of type {kind}"))?;
    }
    match member(controller, "controller") {
        Value::Bool(is_controller) => Ok(Some(*is_controller)),
        // Upstream ends the request with an internal error if the member is absent.
        Value::Null => Ok(Some(false)),
        other => Err(mistyped(other, &format!("Go struct field OwnerReference.{path}.controller of type bool"))),
    }
}

/// Reads the annotation [`TAINTS`] as a list of taints. An error has Go's text.
/// Follows `pkg/apis/core/helper/helpers.go#GetTaintsFromNodeAnnotations @v1.36.3`.
pub(super) fn taints(text: &str) -> Result<Value, String> {
    let root = parse(text)?;
    let list = array(&root, "Go value of type []core.Taint")?;
    let taints: Result<Vec<Value>, String> = list
        .iter()
        .map(|taint| {
            let taint = object(taint, "Go value of type core.Taint")?;
            let mut read = Map::new();
            for (key, name, kind) in
                [("key", "Key", "string"), ("value", "Value", "string"), ("effect", "Effect", "core.TaintEffect")]
            {
                let text = string(member(taint, name), &format!("Go struct field Taint.{name} of type {kind}"))?;
                read.insert(key.to_owned(), json!(text));
            }
            Ok(Value::Object(read))
        })
        .collect();
    taints.map(Value::Array)
}

fn parse(text: &str) -> Result<Value, String> {
    match syntax_error(text.as_bytes(), Source::Unmarshal) {
        Some(why) => Err(why),
        None => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

/// Returns a member of an object. Like Go's decoder, it ignores the case of names.
fn member<'a>(object: Option<&'a Map<String, Value>>, name: &str) -> &'a Value {
    let mut members = object.into_iter().flatten();
    members.find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or(&Value::Null, |(_, value)| value)
}

/// Returns the members of an object, and `None` for null.
fn object<'a>(value: &'a Value, place: &str) -> Result<Option<&'a Map<String, Value>>, String> {
    match value {
        Value::Object(members) => Ok(Some(members)),
        Value::Null => Ok(None),
        other => Err(mistyped(other, place)),
    }
}

fn array<'a>(value: &'a Value, place: &str) -> Result<&'a [Value], String> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(&[]),
        other => Err(mistyped(other, place)),
    }
}

fn string<'a>(value: &'a Value, place: &str) -> Result<&'a str, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok(""),
        other => Err(mistyped(other, place)),
    }
}

fn mistyped(value: &Value, place: &str) -> String {
    format!("json: cannot unmarshal {} into {place}", sort_of(value))
}
