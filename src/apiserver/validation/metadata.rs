//! Names, namespaces and labels.
//!
//! Follows `apimachinery/pkg/api/validation/objectmeta.go @v1.36.3`.

use serde_json::Value;

use super::{Errors, Path, text};
use crate::apiserver::field_error::FieldError;
use crate::apiserver::kinds::{Kind, NAMESPACES, SERVICES};
use crate::apiserver::meta;
use crate::k8s::names;

/// Rules of a new object's metadata.
pub(super) fn on_create(kind: &Kind, value: &Value) -> Errors {
    let mut errors = Errors::new();
    let metadata = &value["metadata"];
    let path = Path::Root("metadata");
    let name = text(metadata, "name");
    if name.is_empty() {
        errors.push(FieldError::required(path.child("name"), "name or generateName is required"));
    } else {
        let is_label = kind.slot == NAMESPACES.slot || kind.slot == SERVICES.slot;
        let complaints =
            if is_label { names::dns1123_label_errors(name) } else { names::dns1123_subdomain_errors(name) };
        invalid_each(path.child("name"), name, complaints, &mut errors);
    }
    common(value, &mut errors);
    errors
}

/// The rule of every name whatever its kind: it is there, and can be a segment of a URL's path. What other kinds of names
/// must be is stricter.
/// Follows `apimachinery/pkg/api/validate/content/path.go#IsPathSegmentName @v1.36.3`.
pub(super) fn path_segment(value: &Value) -> Errors {
    let mut errors = Errors::new();
    let path = Path::Root("metadata");
    let name = text(&value["metadata"], "name");
    let complaints = match name {
        "" => {
            errors.push(FieldError::required(path.child("name"), "name or generateName is required"));
            Vec::new()
        }
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|part| name.contains(**part))
            .map(|part| format!("may not contain '{part}'"))
            .collect(),
    };
    invalid_each(path.child("name"), name, complaints, &mut errors);
    errors
}

/// Rules of a changed object's metadata, besides those on what must not change.
pub(super) fn on_update(value: &Value) -> Errors {
    let mut errors = Errors::new();
    common(value, &mut errors);
    errors
}

fn common(value: &Value, errors: &mut Errors) {
    let path = Path::Root("metadata");
    labels(&value["metadata"]["labels"], path.child("labels"), errors);
    let annotations = value["metadata"]["annotations"].as_object();
    for key in annotations.into_iter().flatten().map(|(key, _)| key.to_lowercase()) {
        invalid_each(path.child("annotations"), &key, names::qualified_name_errors(&key), errors);
    }
    let list = path.child("finalizers");
    for (at, finalizer) in meta::finalizers(value).enumerate() {
        invalid_each(list.index(at), finalizer, names::qualified_name_errors(finalizer), errors);
    }
}

/// Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateLabels @v1.36.3`.
pub(super) fn labels(labels: &Value, path: Path<'_>, errors: &mut Errors) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        label_name(key, path, errors);
        let value = value.as_str().unwrap_or_default();
        invalid_each(path, value, names::label_value_errors(value), errors);
    }
}

/// Follows `#ValidateLabelName`.
pub(super) fn label_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    invalid_each(path, name, names::qualified_name_errors(name), errors);
}

/// One error for each complaint about a text.
pub(super) fn invalid_each(path: Path<'_>, value: &str, complaints: Vec<String>, errors: &mut Errors) {
    errors.extend(complaints.into_iter().map(|detail| FieldError::invalid(path, &value.into(), detail)));
}
