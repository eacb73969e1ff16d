//! Validation of limit ranges and runtime classes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field::{Errors, Path, immutable, text};
use super::metadata::{labels, required_name};
use super::{resources, scheduling};
use crate::apimachinery::FieldError;
use crate::apiserver::amounts;
use crate::apiserver::meta;
use crate::k8s::{Quantity, names};

/// Checks a new or updated limit range. Follows `pkg/apis/core/validation/validation.go#ValidateLimitRange @v1.36.3`.
pub(super) fn on_range(range: &Value, errors: &mut Errors) {
    let spec = Path::Root("spec");
    let list = spec.child("limits");
    let mut known: Vec<&str> = Vec::new();
    for (at, limit) in meta::list(&range["spec"]["limits"]).enumerate() {
        let path = list.index(at);
        let scope = text(limit, "type");
        if !scope.contains('/') && !matches!(scope, "Container" | "Pod" | "PersistentVolumeClaim") {
            let detail = "must be a standard limit type or fully qualified";
            errors.push(FieldError::invalid(path.child("type"), &json!(scope), detail));
        }
        if known.contains(&scope) {
            errors.push(FieldError::duplicate(path.child("type"), &json!(scope)));
        }
        known.push(scope);
        names_of(limit, scope, path, errors);
        bounds(limit, path, errors);
    }
}

/// Checks the resource names in a limit's lists. Also checks that the limit has no lists that its type forbids, and has the
/// amounts that its type requires.
fn names_of(limit: &Value, scope: &str, path: Path<'_>, errors: &mut Errors) {
    for list in ["max", "min", "default", "defaultRequest"] {
        if scope == "Pod" && list.starts_with("default") {
            if !meta::is_empty(&limit[list]) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(path.child(list), detail));
            }
            continue;
        }
        resource_names(limit, list, scope, path, errors);
    }
    if scope == "PersistentVolumeClaim" && limit["min"]["storage"].is_null() && limit["max"]["storage"].is_null() {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(path.child("limits"), detail));
    }
    resource_names(limit, "maxLimitRequestRatio", scope, path, errors);
}

fn resource_names(limit: &Value, list: &str, scope: &str, path: Path<'_>, errors: &mut Errors) {
    let list_path = path.child(list);
    for (name, _) in limit[list].as_object().into_iter().flatten() {
        let path = list_path.key(name);
        if matches!(scope, "Pod" | "Container") {
            resources::container_resource_name(name, path, errors);
        } else {
            resources::resource_name(name, path, errors);
        }
    }
}

/// Checks that the amounts of the same resource in different lists are consistent, such as `min` not above `max`.
fn bounds(limit: &Value, path: Path<'_>, errors: &mut Errors) {
    let lists = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"];
    let keys: BTreeSet<&String> =
        lists.iter().filter_map(|list| limit[*list].as_object()).flatten().map(|(name, _)| name).collect();
    for key in keys {
        let amount = |list: &str| amounts::quantity(&limit[list][key.as_str()]);
        let mut refuse = |list: &str, value: Quantity, detail: String| {
            let list = path.child(list);
            errors.push(FieldError::invalid(list.key(key), &json!(value.to_string()), detail));
        };
        let (min, max, default, request) = (amount("min"), amount("max"), amount("default"), amount("defaultRequest"));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            refuse("min", min, format!("min value {min} is greater than max value {max}"));
        }
        if let (Some(request), Some(min)) = (request, min)
            && min > request
        {
            refuse(
                "defaultRequest",
                request,
                format!("min value {min} is greater than default request value {request}"),
            );
        }
        if let (Some(request), Some(max)) = (request, max)
            && request > max
        {
            refuse(
                "defaultRequest",
                request,
                format!("default request value {request} is greater than max value {max}"),
            );
        }
        if let (Some(request), Some(default)) = (request, default)
            && request > default
        {
            let detail = format!("default request value {request} is greater than default limit value {default}");
            refuse("defaultRequest", request, detail);
        }
        if let (Some(default), Some(min)) = (default, min)
            && min > default
        {
            refuse("default", min, format!("min value {min} is greater than default value {default}"));
        }
        if let (Some(default), Some(max)) = (default, max)
            && default > max
        {
            refuse("default", max, format!("default value {default} is greater than max value {max}"));
        }
        if let Some(ratio) = amount("maxLimitRequestRatio") {
            if ratio < Quantity::from_milli(1000) {
                refuse("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let (Some(min), Some(max)) = (min, max) {
                let most = max.approximate_f64() / min.approximate_f64();
                if ratio.approximate_f64() > most {
                    let detail = format!("ratio {ratio} is greater than max/min = {most:.6}");
                    refuse("maxLimitRequestRatio", ratio, detail);
                }
            }
        }
        if let (Some(request), Some(default)) = (request, default)
            && request != default
            && !names::is_overcommit_allowed(key)
        {
            let detail = format!("default value {default} must equal to defaultRequest value {request} in {key}");
            refuse("defaultRequest", request, detail);
        }
    }
}

/// Checks a new runtime class. Follows `pkg/apis/node/validation/validation.go#ValidateRuntimeClass @v1.36.3`.
pub(super) fn on_runtime_class(class: &Value, errors: &mut Errors) {
    let handler = text(class, "handler");
    required_name(handler, names::dns1123_label_errors, Path::Root("handler"), errors);
    resources::overhead(&class["overhead"]["podFixed"], Path::Root("overhead"), errors);
    let (scheduling, path) = (&class["scheduling"], Path::Root("scheduling"));
    labels(&scheduling["nodeSelector"], path.child("nodeSelector"), errors);
    let list = path.child("tolerations");
    let tolerations: Vec<&Value> = meta::list(&scheduling["tolerations"]).collect();
    for (at, toleration) in tolerations.iter().enumerate() {
        // Upstream checks these tolerations without feature gates.
        scheduling::toleration(toleration, false, list.index(at), errors);
        if tolerations[..at].contains(toleration) {
            let mut error = FieldError::duplicate(list.index(at), *toleration);
            let shown = |key: &str| json!(text(toleration, key));
            error.value = format!(
                r#"{{"Key":{},"Operator":{},"Value":{},"Effect":{},"TolerationSeconds":{}}}"#,
                shown("key"),
                shown("operator"),
                shown("value"),
                shown("effect"),
                toleration["tolerationSeconds"]
            );
            errors.push(error);
        }
    }
}

/// Checks an updated runtime class. Follows `pkg/apis/node/validation/validation.go#ValidateRuntimeClassUpdate`.
pub(super) fn on_runtime_class_update(class: &Value, before: &Value, errors: &mut Errors) {
    immutable("handler", &class["handler"], &before["handler"], errors);
    on_runtime_class(class, errors);
}
