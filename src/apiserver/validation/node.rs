//! Validation of new and updated nodes.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::label_name;
use super::{resources, scheduling};
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::k8s::names;

/// Checks a new node. Follows `pkg/apis/core/validation/validation.go#ValidateNode @v1.36.3`.
pub(super) fn check(node: &Value, errors: &mut Errors) {
    taints(node, errors);
    amounts(node, errors);
    let (spec, cidrs) = (Path::Root("spec"), &node["spec"]["podCIDRs"]);
    let list = spec.child("podCIDRs");
    let families: Vec<Option<bool>> =
        meta::list(cidrs).map(|cidr| is_ipv6_cidr(cidr.as_str().unwrap_or_default())).collect();
    for (at, cidr) in meta::list(cidrs).enumerate().filter(|(at, _)| families[*at].is_none()) {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(FieldError::invalid(list.index(at), cidr, detail));
    }
    if families.len() > 1 && (families.len() > 2 || families[0] == families[1]) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(list, cidrs, detail));
    }
}

/// Checks an updated node. Follows `pkg/apis/core/validation/validation.go#ValidateNodeUpdate`.
pub(super) fn check_update(node: &Value, before: &Value, errors: &mut Errors) {
    amounts(node, errors);
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
    taints(node, errors);
}

/// Returns whether a text is an IPv6 CIDR, or `None` if it is not a CIDR.
fn is_ipv6_cidr(text: &str) -> Option<bool> {
    let (address, bits) = text.split_once('/')?;
    let (address, bits): (std::net::IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    (bits <= if address.is_ipv6() { 128 } else { 32 }).then_some(address.is_ipv6())
}

fn taints(node: &Value, errors: &mut Errors) {
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
