//! Validation of new and updated nodes.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::label_name;
use super::node_annotations::{self, AVOID, TAINTS};
use super::{address, resources, scheduling};
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::go::quote::quote;
use crate::k8s::names;

/// Longest name of a declared feature.
const MAX_FEATURE_NAME: usize = 253;

/// Checks a new node. Follows `pkg/apis/core/validation/validation.go#ValidateNode @v1.36.3`.
pub(super) fn check(node: &Value, errors: &mut Errors) {
    annotations(node, errors);
    taints_of(node, errors);
    amounts(node, errors);
    swap(node, errors);
    declared_features(node, errors);
    let (spec, cidrs) = (Path::Root("spec"), &node["spec"]["podCIDRs"]);
    let list = spec.child("podCIDRs");
    let mut families = Vec::new();
    for (at, cidr) in meta::list(cidrs).enumerate() {
        let address = address::cidr(cidr.as_str().unwrap_or_default(), list.index(at), errors);
        families.push(address.map(address::is_ipv6));
    }
    if families.len() > 1 && (families.len() > 2 || families[0] == families[1]) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(list, cidrs, detail));
    }
}

/// Checks an updated node. Follows `pkg/apis/core/validation/validation.go#ValidateNodeUpdate`.
pub(super) fn check_update(node: &Value, before: &Value, errors: &mut Errors) {
    annotations(node, errors);
    amounts(node, errors);
    declared_features(node, errors);
    addresses(node, errors);
    let (spec, old) = (&node["spec"], &before["spec"]);
    let rules = [
        ("podCIDRs", !meta::is_empty(&old["podCIDRs"]), "podCIDR"),
        ("providerID", !text(old, "providerID").is_empty(), "providerID"),
    ];
    for (key, was_set, shown) in rules {
        if was_set && spec[key] != old[key] {
            let detail = format!("node updates may not change {shown} except from \"\" to valid");
            errors.push(FieldError::forbidden(format!("spec.{key}"), detail));
        }
    }
    taints_of(node, errors);
}

/// Checks the annotations that schedulers of old releases read.
/// Follows `pkg/apis/core/validation/validation.go#ValidateNodeSpecificAnnotations`.
fn annotations(node: &Value, errors: &mut Errors) {
    let metadata = Path::Root("metadata");
    let path = metadata.child("annotations");
    let value = |key: &str| node["metadata"]["annotations"][key].as_str().filter(|text| !text.is_empty());
    if let Some(text) = value(TAINTS) {
        match node_annotations::taints(text) {
            Ok(list) => taints(&list, path.child(TAINTS), errors),
            Err(why) => errors.push(FieldError::invalid(path, &json!(TAINTS), why)),
        }
    }
    match value(AVOID).map(node_annotations::avoided_pods) {
        Some(Ok(entries)) => {
            let list = path.child(AVOID);
            for (at, entry) in entries.into_iter().enumerate() {
                let entry_path = list.index(at);
                let signature = entry_path.child("PodSignature");
                match entry {
                    Some(true) => {}
                    Some(false) => {
                        let controller = signature.child("PodController");
                        let (path, detail) = (controller.child("Controller"), "must point to a controller");
                        errors.push(FieldError::invalid(path, &json!(false), detail));
                    }
                    None => errors.push(FieldError::required(signature, "")),
                }
            }
        }
        Some(Err(why)) => errors.push(FieldError::invalid(path.child("AvoidPods"), &json!(AVOID), why)),
        None => {}
    }
}

/// Checks the features that a node declares: their names, and that the list is sorted without repetition.
/// Follows `pkg/apis/core/validation/validation.go#validateNodeDeclaredFeatures`.
fn declared_features(node: &Value, errors: &mut Errors) {
    let status = Path::Root("status");
    let list = status.child("declaredFeatures");
    let features: Vec<&str> = meta::list(&node["status"]["declaredFeatures"]).filter_map(Value::as_str).collect();
    for (at, feature) in features.iter().enumerate() {
        if let Some(why) = feature_name_error(feature) {
            errors.push(FieldError::invalid(list.index(at), &json!(feature), why));
        }
        match features.get(at + 1) {
            Some(next) if next == feature => errors.push(FieldError::duplicate(list.index(at + 1), &json!(next))),
            Some(next) if next < feature => {
                let detail = "list must be sorted alphabetically";
                errors.push(FieldError::invalid(list.index(at + 1), &json!(next), detail));
            }
            _ => {}
        }
    }
}

/// Returns the rule that the name of a declared feature breaks.
/// Follows `pkg/apis/core/validation/validation.go#validateNodeDeclaredFeatureName`.
fn feature_name_error(name: &str) -> Option<String> {
    let is_segment = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let rule = if name.len() > MAX_FEATURE_NAME {
        format!("must be no more than {MAX_FEATURE_NAME} characters")
    } else if name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_segment) {
        return None;
    } else {
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or \
         MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            .to_owned()
    };
    Some(format!("invalid feature name {}: {rule}", quote(name)))
}

/// Checks a node's swap capacity. Follows `pkg/apis/core/validation/validation.go#validateNodeSwapStatus`.
fn swap(node: &Value, errors: &mut Errors) {
    let capacity = &node["status"]["nodeInfo"]["swap"]["capacity"];
    if capacity.as_i64().is_some_and(|capacity| capacity <= 0) {
        errors.push(FieldError::invalid("metadata.nodeSwapStatus.capacity", capacity, "must be greater than zero"));
    }
}

/// Checks that the addresses of a node differ.
fn addresses(node: &Value, errors: &mut Errors) {
    let status = Path::Root("status");
    let list = status.child("addresses");
    let addresses: Vec<&Value> = meta::list(&node["status"]["addresses"]).collect();
    for (at, address) in addresses.iter().enumerate().filter(|(at, address)| addresses[..*at].contains(address)) {
        let mut error = FieldError::duplicate(list.index(at), *address);
        error.value =
            format!(r#"{{"Type":{},"Address":{}}}"#, json!(text(address, "type")), json!(text(address, "address")));
        errors.push(error);
    }
}

fn taints_of(node: &Value, errors: &mut Errors) {
    let metadata = Path::Root("metadata");
    taints(&node["spec"]["taints"], metadata.child("taints"), errors);
}

/// Checks a list of taints. Follows `pkg/apis/core/validation/validation.go#validateNodeTaints`.
fn taints(taints: &Value, list: Path<'_>, errors: &mut Errors) {
    let taints: Vec<&Value> = meta::list(taints).collect();
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
            let mut error = FieldError::duplicate(path, *taint);
            error.value = format!(
                r#"{{"Key":{},"Value":{},"Effect":{},"TimeAdded":{}}}"#,
                json!(text(taint, "key")),
                json!(text(taint, "value")),
                json!(text(taint, "effect")),
                taint["timeAdded"]
            );
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
}

/// Checks the amounts of a node's capacity and allocatable resources.
/// Follows `pkg/apis/core/validation/validation.go#ValidateNodeResources`.
fn amounts(node: &Value, errors: &mut Errors) {
    let status = Path::Root("status");
    for part in ["capacity", "allocatable"] {
        let list = status.child(part);
        for (name, amount) in node["status"][part].as_object().into_iter().flatten() {
            resources::quantity(name, amount, list.child(name), errors);
        }
    }
}
