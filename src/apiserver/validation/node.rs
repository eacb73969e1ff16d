//! Nodes.

use serde_json::{Value, json};

use super::metadata::label_name;
use super::{Errors, Path, resources, scheduling, text};
use crate::apiserver::field_error::FieldError;
use crate::apiserver::meta;
use crate::k8s::names;

/// Follows `pkg/apis/core/validation/validation.go#ValidateNode @v1.36.3`.
pub(super) fn check(node: &Value, errors: &mut Errors) {
    let path = Path::Root("metadata");
    let list = path.child("taints");
    let taints: Vec<&Value> = meta::list(&node["spec"]["taints"]).collect();
    for (at, taint) in taints.iter().enumerate() {
        let path = list.index(at);
        label_name(text(taint, "key"), path.child("key"), errors);
        let complaints = names::label_value_errors(text(taint, "value"));
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(path.child("value"), &taint["value"], complaints.join(";")));
        }
        scheduling::taint_effect(text(taint, "effect"), path.child("effect"), errors);
        let same =
            |other: &&Value| text(other, "key") == text(taint, "key") && text(other, "effect") == text(taint, "effect");
        if taints[..at].iter().any(same) {
            let mut error = FieldError::duplicate(path, &json!(taint));
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
    let status = Path::Root("status");
    for part in ["capacity", "allocatable"] {
        let list = status.child(part);
        for (name, amount) in node["status"][part].as_object().into_iter().flatten() {
            resources::quantity(name, amount, list.key(name), errors);
        }
    }
}
