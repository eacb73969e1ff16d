//! Requests and limits.

use serde_json::{Value, json};

use super::metadata::invalid_each;
use super::{Errors, Path};
use crate::apiserver::amounts;
use crate::apiserver::field_error::FieldError;
use crate::k8s::names;

/// Resources without a domain that the API knows, beside huge pages.
/// `pkg/apis/core/helper/helpers.go#standardResources @v1.36.3`.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Follows `pkg/apis/core/validation/validation.go#validateResourceRequirements @v1.36.3` for a container.
pub(super) fn requirements(resources: &Value, path: Path<'_>, errors: &mut Errors) {
    let (mut has_compute, mut has_huge_pages) = (false, false);
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    for (part, list) in [("limits", limits), ("requests", requests)] {
        let list_path = path.child(part);
        for (name, amount) in list.as_object().into_iter().flatten() {
            let entry = list_path.key(name);
            resource_name(name, entry, errors);
            quantity(name, amount, entry, errors);
            has_compute |= matches!(&**name, "cpu" | "memory");
            has_huge_pages |= names::is_huge_page_resource(name);
            if part == "requests" {
                against_limit(name, amount, &limits[name], path, errors);
            }
        }
    }
    if has_huge_pages && !has_compute {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// A request against its limit.
fn against_limit(name: &str, request: &Value, limit: &Value, path: Path<'_>, errors: &mut Errors) {
    let is_overcommitted = names::is_overcommit_allowed(name);
    let (Some(amount), Some(bound)) = (amounts::quantity(request), amounts::quantity(limit)) else {
        if limit.is_null() && !is_overcommitted {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(path.child("limits"), detail));
        }
        return;
    };
    let rule = if amount != bound && !is_overcommitted {
        "must be equal to"
    } else if amount > bound {
        "must be less than or equal to"
    } else {
        return;
    };
    let detail = format!("{rule} {name} limit of {bound}");
    errors.push(FieldError::invalid(path.child("requests"), &json!(amount.to_string()), detail));
}

/// Follows `#validateContainerResourceName`.
fn resource_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    let complaints = names::qualified_name_errors(name);
    if !complaints.is_empty() {
        invalid_each(path, name, complaints, errors);
        return;
    }
    let invalid = |detail: &str| FieldError::invalid(path, &json!(name), detail);
    if !name.contains('/') {
        let is_huge = names::is_huge_page_resource(name);
        if !is_huge && !STANDARD.contains(&name) {
            errors.push(invalid("must be a standard resource type or fully qualified"));
        }
        if !is_huge && !matches!(name, "cpu" | "memory" | "ephemeral-storage") {
            errors.push(invalid("must be a standard resource for containers"));
        }
    } else if !names::is_native_resource(name) && !names::is_extended_resource(name) {
        errors.push(invalid("doesn't follow extended resource name standard"));
    }
}

/// Follows `#ValidateResourceQuantityValue`.
pub(super) fn quantity(name: &str, amount: &Value, path: Path<'_>, errors: &mut Errors) {
    let Some(quantity) = amounts::quantity(amount) else { return };
    if quantity.signum() < 0 {
        let shown = json!(quantity.to_string());
        errors.push(FieldError::invalid(path, &shown, "must be greater than or equal to 0"));
    }
    if names::is_extended_resource(name) && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, &json!(quantity.to_string()), "must be an integer"));
    }
}
