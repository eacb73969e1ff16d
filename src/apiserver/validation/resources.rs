//! Validation of resource requests and limits, resource claims and overhead.
//!
//! A symbol cited without a path is in `pkg/apis/core/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::invalid_each;
use crate::apimachinery::FieldError;
use crate::apiserver::amounts;
use crate::apiserver::meta;
use crate::k8s::requests::is_pod_level_resource;
use crate::k8s::{Quantity, names};

/// Resource names without a domain that are valid in the API, besides huge pages.
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

/// Resources whose amounts must be integers, besides extended resources.
/// `pkg/apis/core/helper/helpers.go#integerResources @v1.36.3`.
const INTEGERS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Checks the resources of a container.
/// Follows `pkg/apis/core/validation/validation.go#ValidateContainerResourceRequirements @v1.36.3`.
pub(super) fn of_container(resources: &Value, pod_claims: &Value, path: Path<'_>, errors: &mut Errors) {
    requirements(resources, container_resource_name, path, errors);
    claim_names(resources, pod_claims, path, errors);
}

/// Checks that the claims in `resources` are unique and are among the pod's claims. Follows `#validateResourceClaimNames`.
fn claim_names(resources: &Value, pod_claims: &Value, path: Path<'_>, errors: &mut Errors) {
    let mut known: Vec<&str> = meta::list(pod_claims).map(|claim| text(claim, "name")).collect();
    known.sort_unstable();
    let list = path.child("claims");
    let name_of = |claim: &Value| (text(claim, "name").to_owned(), text(claim, "request").to_owned());
    let claims: Vec<(String, String)> = meta::list(&resources["claims"]).map(name_of).collect();
    for (at, (name, request)) in claims.iter().enumerate() {
        let path = list.index(at);
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let shown = if request.is_empty() { name.clone() } else { format!("{name}/{request}") };
        let covers = |other: &(String, String)| other.0 == *name && (other.1.is_empty() || other.1 == *request);
        if claims[..at].iter().any(covers) {
            errors.push(FieldError::duplicate(path, &json!(shown)));
        }
        if !known.contains(&name.as_str()) {
            let mut error = FieldError::not_found(path, &json!(name));
            error.detail = if known.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                format!("must be one of the names in pod.spec.resourceClaims: {}", known.join(", "))
            };
            errors.push(error);
        }
    }
}

/// Checks requests and limits. `name_rule` checks the resource names. Follows `#validateResourceRequirements`.
fn requirements(resources: &Value, name_rule: fn(&str, Path<'_>, &mut Errors), path: Path<'_>, errors: &mut Errors) {
    let (mut has_compute, mut has_huge_pages) = (false, false);
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    for (part, list) in [("limits", limits), ("requests", requests)] {
        let list_path = path.child(part);
        for (name, amount) in list.as_object().into_iter().flatten() {
            let entry = list_path.key(name);
            name_rule(name, entry, errors);
            quantity(name, amount, entry, errors);
            has_compute |= matches!(&**name, "cpu" | "memory");
            if part == "requests" {
                against_limit(name, amount, &limits[name], path, errors);
            }
            if names::is_huge_page_resource(name) {
                has_huge_pages = true;
                huge_pages(name, amount, entry, errors);
            }
        }
    }
    if has_huge_pages && !has_compute {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

/// Checks that an amount of huge pages is a multiple of the page size. Follows `#validateResourceQuantityHugePageValue`.
fn huge_pages(name: &str, amount: &Value, path: Path<'_>, errors: &mut Errors) {
    let size = name.strip_prefix(names::HUGE_PAGES_PREFIX).and_then(|size| Quantity::parse(size).ok());
    let (Some(size), Some(quantity)) = (size, amounts::quantity(amount)) else { return };
    if size.value() > 0 && quantity.value() % size.value() != 0 {
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        errors.push(FieldError::invalid(path, &json!(quantity.to_string()), detail));
    }
}

/// Checks the pod-level resources of a pod spec. Follows `#validatePodResources`.
pub(super) fn of_pod(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let resources = &spec["resources"];
    if resources.is_null() {
        return;
    }
    if !resources["claims"].is_null() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(path.child("claims"), detail));
    }
    requirements(resources, pod_resource_name, path, errors);
    claim_names(resources, &spec["resourceClaims"], path, errors);
    let Some(map) = spec.as_object() else { return };
    let list = path.child("requests");
    for (name, sum) in amounts::of_containers(map, "requests") {
        if let Some(own) = amounts::quantity(&resources["requests"][&name]).filter(|own| sum > *own) {
            let sum = sum_as_given(spec, &name, sum);
            let detail = format!("must be greater than or equal to aggregate container requests of {sum}");
            let own = as_given(&resources["requests"][&name], own);
            errors.push(FieldError::invalid(list.key(&name), &json!(own), detail));
        }
    }
    let containers = path.child("containers");
    for (at, container) in meta::list(&spec["containers"]).enumerate() {
        let path = containers.index(at);
        for (name, limit) in amounts::of_list(&container["resources"]["limits"]) {
            if let Some(own) = amounts::quantity(&resources["limits"][&name]).filter(|own| limit > *own) {
                let own = as_given(&resources["limits"][&name], own);
                let detail = format!("must be less than or equal to pod limits of {own}");
                let limit = as_given(&container["resources"]["limits"][&name], limit);
                errors.push(FieldError::invalid(path.key(&name).child("limits"), &json!(limit), detail));
            }
        }
    }
}

/// Checks the overhead of a pod or a runtime class. Follows `#validateOverhead`.
pub(super) fn overhead(overhead: &Value, path: Path<'_>, errors: &mut Errors) {
    let Some(list) = overhead.as_object() else { return };
    let limits = path.child("limits");
    for (name, amount) in list {
        let entry = limits.key(name);
        container_resource_name(name, entry, errors);
        quantity(name, amount, entry, errors);
    }
}

/// Checks the resource claims of a pod spec. Follows `#validatePodResourceClaims`.
pub(super) fn claims(claims: &Value, path: Path<'_>, errors: &mut Errors) {
    let mut known: Vec<&str> = Vec::new();
    for (at, claim) in meta::list(claims).enumerate() {
        let path = path.index(at);
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path.child("name"), ""));
        } else if known.contains(&name) {
            errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
        } else {
            invalid_each(path.child("name"), name, names::dns1123_label_errors(name), errors);
            known.push(name);
        }
        let (own, template) = (&claim["resourceClaimName"], &claim["resourceClaimTemplateName"]);
        let detail = match (own.is_null(), template.is_null()) {
            (false, false) => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            (true, true) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !detail.is_empty() {
            let mut error = FieldError::invalid(path, claim, detail);
            error.value = format!(
                "{{\"Name\":{},\"ResourceClaimName\":{own},\"ResourceClaimTemplateName\":{template}}}",
                json!(name)
            );
            errors.push(error);
        }
        for (key, value) in [("resourceClaimName", own), ("resourceClaimTemplateName", template)] {
            if let Some(value) = value.as_str() {
                invalid_each(path.child(key), value, names::dns1123_subdomain_errors(value), errors);
            }
        }
    }
}

/// Checks that a request does not exceed its limit, or equals it if the resource cannot be overcommitted.
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
    let detail = format!("{rule} {name} limit of {}", as_given(limit, bound));
    errors.push(FieldError::invalid(path.child("requests"), &json!(as_given(request, amount)), detail));
}

/// Returns an amount as it is written in the object. Go keeps the original text of a quantity until the quantity is changed.
fn as_given(given: &Value, amount: Quantity) -> String {
    given.as_str().map_or_else(|| amount.to_string(), str::to_owned)
}

/// Formats a sum over containers as Go does. If only one container requests the resource, the sum has the text of its request.
fn sum_as_given(spec: &Value, name: &str, sum: Quantity) -> String {
    let all = ["containers", "initContainers"].into_iter().flat_map(|list| meta::list(&spec[list]));
    let mut amounts = all.map(|container| &container["resources"]["requests"][name]).filter(|amount| !amount.is_null());
    match (amounts.next(), amounts.next()) {
        (Some(only), None) => as_given(only, sum),
        _ => sum.to_string(),
    }
}

/// Checks the name of a pod-level resource. Follows `#validatePodResourceName`.
fn pod_resource_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before && !is_pod_level_resource(name) {
        let known = ["cpu", "hugepages-", "memory"];
        errors.push(FieldError::not_supported(path, &json!(name), &known));
    }
}

/// Checks the name of a container's resource. Follows `#validateContainerResourceName`.
pub(super) fn container_resource_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    let is_huge = names::is_huge_page_resource(name);
    if errors.len() > before && name.contains('/') {
        return;
    }
    if !name.contains('/') && !is_huge && !matches!(name, "cpu" | "memory" | "ephemeral-storage") {
        errors.push(FieldError::invalid(path, &json!(name), "must be a standard resource for containers"));
    } else if name.contains('/') && !names::is_native_resource(name) && !names::is_extended_resource(name) {
        errors.push(FieldError::invalid(path, &json!(name), "doesn't follow extended resource name standard"));
    }
}

/// Checks a resource name. Follows `#validateResourceName`.
pub(super) fn resource_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    let complaints = names::qualified_name_errors(name);
    if !complaints.is_empty() {
        invalid_each(path, name, complaints, errors);
        return;
    }
    if !name.contains('/') && !names::is_huge_page_resource(name) && !STANDARD.contains(&name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}

/// Checks an amount of the resource `name`. Follows `#ValidateResourceQuantityValue`.
pub(super) fn quantity(name: &str, amount: &Value, path: Path<'_>, errors: &mut Errors) {
    let Some(quantity) = amounts::quantity(amount) else { return };
    if quantity.signum() < 0 {
        let shown = json!(quantity.to_string());
        errors.push(FieldError::invalid(path, &shown, "must be greater than or equal to 0"));
    }
    if (names::is_extended_resource(name) || INTEGERS.contains(&name)) && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, &json!(quantity.to_string()), "must be an integer"));
    }
}
