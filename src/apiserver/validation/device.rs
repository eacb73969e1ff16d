//! Validation of new resource claims, resource claim templates, resource slices and device classes. CEL expressions are not
//! checked.
//!
//! Follows `pkg/apis/resource/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::container;
use super::field::{Errors, Path, text};
use super::metadata::{invalid_each, required_name};
use crate::apimachinery::FieldError;
use crate::apiserver::kinds::{DEVICE_CLASSES, Kind, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RESOURCE_SLICES};
use crate::apiserver::meta;
use crate::k8s::names;

/// Checks a new object of one of this module's kinds. Accepts objects of other kinds.
pub(super) fn on_create(kind: &Kind, value: &Value, errors: &mut Errors) {
    let (spec, path) = (&value["spec"], Path::Root("spec"));
    let is = |other: &Kind| kind.slot == other.slot;
    if is(&RESOURCE_CLAIMS) {
        claim(&spec["devices"], path.child("devices"), errors);
    } else if is(&RESOURCE_CLAIM_TEMPLATES) {
        let inner = path.child("spec");
        claim(&spec["spec"]["devices"], inner.child("devices"), errors);
    } else if is(&RESOURCE_SLICES) {
        slice(spec, path, errors);
    } else if is(&DEVICE_CLASSES)
        && let Some(name) = spec["extendedResourceName"].as_str()
        && !names::is_extended_resource(name)
    {
        let detail = "must be a valid extended resource name";
        errors.push(FieldError::invalid(path.child("extendedResourceName"), &json!(name), detail));
    }
}

/// Checks the device requests and constraints of a claim. Follows `#validateDeviceClaim`.
fn claim(devices: &Value, path: Path<'_>, errors: &mut Errors) {
    let list = path.child("requests");
    let mut known: Vec<String> = Vec::new();
    for (at, request) in meta::list(&devices["requests"]).enumerate() {
        let path = list.index(at);
        let name = text(request, "name");
        request_name(name, path.child("name"), errors);
        match (request["exactly"].is_null(), meta::is_empty(&request["firstAvailable"])) {
            (true, true) => {
                let detail = "exactly one of `exactly` or `firstAvailable` is required";
                errors.push(FieldError::required(path, detail));
            }
            (false, false) => {
                let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
                errors.push(FieldError::invalid(path, &Value::Null, detail));
            }
            (false, true) => one_request(&request["exactly"], path.child("exactly"), errors),
            (true, false) => {
                let list = path.child("firstAvailable");
                for (at, sub) in meta::list(&request["firstAvailable"]).enumerate() {
                    let path = list.index(at);
                    request_name(text(sub, "name"), path.child("name"), errors);
                    one_request(sub, path, errors);
                    known.push(format!("{name}/{}", text(sub, "name")));
                }
            }
        }
        if known.iter().any(|known| known == name) {
            errors.push(FieldError::duplicate(path, &json!(name)));
        }
        known.push(name.to_owned());
    }
    let list = path.child("constraints");
    for (at, constraint) in meta::list(&devices["constraints"]).enumerate() {
        let path = list.index(at);
        let list = path.child("requests");
        for (at, request) in meta::list(&constraint["requests"]).enumerate() {
            let name = request.as_str().unwrap_or_default();
            if !known.iter().any(|known| known == name) {
                let detail = "must be the name of a request in the claim or the name of a request and a subrequest \
                              separated by '/'";
                errors.push(FieldError::invalid(list.index(at), request, detail));
            }
        }
        let attribute = text(constraint, "matchAttribute");
        if !attribute.is_empty() && !attribute.contains('/') {
            let detail = "a fully qualified name must be a domain and a name separated by a slash";
            errors.push(FieldError::invalid(path.child("matchAttribute"), &json!(attribute), detail));
        }
    }
}

fn request_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    required_name(name, names::dns1123_label_errors, path, errors);
}

/// Checks an exact request, or one of the alternatives of a request. Follows `#validateExactDeviceRequest`.
fn one_request(request: &Value, path: Path<'_>, errors: &mut Errors) {
    let class = text(request, "deviceClassName");
    required_name(class, names::dns1123_subdomain_errors, path.child("deviceClassName"), errors);
    let count = request["count"].as_i64().unwrap_or(0);
    match text(request, "allocationMode") {
        "ExactCount" if count <= 0 => {
            errors.push(FieldError::invalid(path.child("count"), &json!(count), "must be greater than zero"));
        }
        "All" if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            errors.push(FieldError::invalid(path.child("count"), &json!(count), detail));
        }
        "ExactCount" | "All" => {}
        _ => container::one_of(request, "allocationMode", &["All", "ExactCount"], path, errors),
    }
}

/// Checks the spec of a resource slice. Follows `#ValidateResourceSlice`.
fn slice(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let driver = text(spec, "driver");
    required_name(driver, names::dns1123_subdomain_errors, path.child("driver"), errors);
    let (pool, here) = (&spec["pool"], path.child("pool"));
    if text(pool, "name").is_empty() {
        errors.push(FieldError::required(here.child("name"), ""));
    }
    let count = pool["resourceSliceCount"].as_i64().unwrap_or(0);
    if count <= 0 {
        errors.push(FieldError::invalid(here.child("resourceSliceCount"), &json!(count), "must be greater than zero"));
    }
    let fields = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    let set: Vec<String> =
        fields.iter().filter(|key| !meta::is_empty(&spec[**key])).map(|key| format!("`{key}`")).collect();
    let detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match set.len() {
        0 => errors.push(FieldError::required(path, detail)),
        1 => {}
        _ => {
            let shown = json!(format!("{{{}}}", set.join(", ")));
            errors.push(FieldError::invalid(path, &shown, format!("{detail}, but multiple fields are set")));
        }
    }
    let (list, mut known) = (path.child("devices"), Vec::new());
    for (at, device) in meta::list(&spec["devices"]).enumerate() {
        let (name, path) = (text(device, "name"), list.index(at));
        invalid_each(path.child("name"), name, names::dns1123_label_errors(name), errors);
        if known.contains(&name) {
            errors.push(FieldError::duplicate(path, &json!(name)));
        }
        known.push(name);
    }
}
