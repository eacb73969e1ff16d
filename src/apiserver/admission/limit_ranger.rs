//! Admission by limit ranges: defaults for containers, and bounds for containers, pods and claims.
//!
//! Follows `plugin/pkg/admission/limitranger/admission.go @v1.36.3`.

use serde_json::{Map, Value, json};

use crate::apimachinery::Status;
use crate::apimachinery::field_error::aggregate;
use crate::apiserver::amounts::{self, Amounts};
use crate::apiserver::kinds::{Kind, LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS};
use crate::apiserver::meta;
use crate::apiserver::store::State;
use crate::k8s::Quantity;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const CONTAINERS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];

/// Fills in the requests and limits of a new pod's containers.
pub(super) fn on_pod(state: &State, pod: &mut Value) {
    for range in &ranges(state, meta::text(pod, "namespace")) {
        fill(range, pod);
    }
}

/// Rejects a new pod that is outside the bounds of its namespace's limit ranges.
pub(super) fn check_pod(state: &State, pod: &Value) -> Result<(), Status> {
    let ranges = ranges(state, meta::text(pod, "namespace"));
    let empty = Map::new();
    let spec = pod["spec"].as_object().unwrap_or(&empty);
    for range in &ranges {
        let mut errors = Vec::new();
        for limit in meta::list(&range["spec"]["limits"]) {
            match limit["type"].as_str() {
                Some("Container") => {
                    for (list, _) in CONTAINERS {
                        for container in spec.get(list).map(meta::list).into_iter().flatten() {
                            let of = |part: &str| amounts::of_list(&container["resources"][part]);
                            check_all("Container", limit, &of("requests"), &of("limits"), &mut errors);
                        }
                    }
                }
                Some("Pod") => {
                    let of = |part: &str| amounts::of_pod(spec, part);
                    check_all("Pod", limit, &of("requests"), &of("limits"), &mut errors);
                }
                _ => {}
            }
        }
        refuse(&PODS, pod, &errors)?;
    }
    Ok(())
}

/// Rejects a new claim that requests too little or too much storage.
pub(super) fn on_claim(state: &State, claim: &Value) -> Result<(), Status> {
    const TYPE: &str = "PersistentVolumeClaim";
    let requests = amounts::of_list(&claim["spec"]["resources"]["requests"]);
    for range in ranges(state, meta::text(claim, "namespace")) {
        let mut errors = Vec::new();
        for limit in meta::list(&range["spec"]["limits"]).filter(|limit| limit["type"] == TYPE) {
            for (name, bound) in amounts::of_list(&limit["min"]) {
                errors.extend(below_minimum(TYPE, &name, bound, requests.get(&name).copied(), None));
            }
            for (name, bound) in amounts::of_list(&limit["max"]) {
                errors.extend(above_request_maximum(TYPE, &name, bound, requests.get(&name).copied()));
            }
        }
        refuse(&PERSISTENT_VOLUME_CLAIMS, claim, &errors)?;
    }
    Ok(())
}

fn ranges(state: &State, namespace: &str) -> Vec<Value> {
    let all = state.shelf(&LIMIT_RANGES).objects.values();
    all.filter(|range| range.namespace() == namespace).map(|range| range.value()).collect()
}

fn refuse(kind: &Kind, value: &Value, errors: &[String]) -> Result<(), Status> {
    let name = meta::text(value, "name");
    if errors.is_empty() { Ok(()) } else { Err(Status::forbidden(kind, name, aggregate(errors))) }
}

/// Fills in the requests and limits of a pod's containers from one limit range, and lists them in an annotation.
/// Follows `#PodMutateLimitFunc`.
fn fill(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    for limit in meta::list(&range["spec"]["limits"]).filter(|limit| limit["type"] == "Container") {
        extend(&mut requests, &limit["defaultRequest"]);
        extend(&mut limits, &limit["default"]);
    }
    let mut notes: Vec<String> = Vec::new();
    for (list, title) in CONTAINERS {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            let resources = meta::child(container, "resources");
            let set_limits = fill_list(resources, "limits", &limits);
            let set_requests = fill_list(resources, "requests", &requests);
            for (set, what) in [(set_requests, "request"), (set_limits, "limit")] {
                if !set.is_empty() {
                    notes.push(format!("{} {what} for {title} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let annotations = meta::metadata(pod).entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(ANNOTATION.to_owned(), json!(format!("LimitRanger plugin set: {}", notes.join("; "))));
        }
    }
}

fn extend(target: &mut Map<String, Value>, list: &Value) {
    target.extend(list.as_object().into_iter().flatten().map(|(name, amount)| (name.clone(), amount.clone())));
}

/// Adds the defaults that a container lacks, and returns their names, sorted.
fn fill_list(resources: &mut Map<String, Value>, list: &str, defaults: &Map<String, Value>) -> Vec<String> {
    let own = resources.get(list).and_then(Value::as_object);
    let missing: Vec<(String, Value)> = defaults
        .iter()
        .filter(|(name, _)| own.is_none_or(|own| !own.contains_key(*name)))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    let names: Vec<String> = missing.iter().map(|(name, _)| name.clone()).collect();
    if !missing.is_empty()
        && let Some(map) = resources.entry(list).or_insert_with(|| json!({})).as_object_mut()
    {
        map.extend(missing);
    }
    names
}

/// Checks requests and limits against one entry of a limit range. Follows `#PodValidateLimitFunc`.
fn check_all(scope: &str, limit: &Value, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    for (name, bound) in amounts::of_list(&limit["min"]) {
        errors.extend(below_minimum(scope, &name, bound, requests.get(&name).copied(), limits.get(&name).copied()));
    }
    for (name, bound) in amounts::of_list(&limit["max"]) {
        errors.extend(above_maximum(scope, &name, bound, requests.get(&name).copied(), limits.get(&name).copied()));
    }
    for (name, bound) in amounts::of_list(&limit["maxLimitRequestRatio"]) {
        errors.extend(above_ratio(scope, &name, bound, requests.get(&name).copied(), limits.get(&name).copied()));
    }
}

type Amount = Option<Quantity>;

/// Returns an error if a request or limit is below the minimum. Follows `#minConstraint`.
fn below_minimum(scope: &str, name: &str, bound: Quantity, request: Amount, limit: Amount) -> Option<String> {
    let head = format!("minimum {name} usage per {scope} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{head}.  No request is specified")),
        (Some(request), _) if request < bound => Some(format!("{head}, but request is {request}")),
        (_, Some(limit)) if limit < bound => Some(format!("{head}, but limit is {limit}")),
        _ => None,
    }
}

/// Returns an error if a request or limit is above the maximum. Follows `#maxConstraint`.
fn above_maximum(scope: &str, name: &str, bound: Quantity, request: Amount, limit: Amount) -> Option<String> {
    let head = format!("maximum {name} usage per {scope} is {bound}");
    match (request, limit) {
        (_, None) => Some(format!("{head}.  No limit is specified")),
        (_, Some(limit)) if limit > bound => Some(format!("{head}, but limit is {limit}")),
        (Some(request), _) if request > bound => Some(format!("{head}, but request is {request}")),
        _ => None,
    }
}

/// Returns an error if a request is above the maximum. Follows `#maxRequestConstraint`.
fn above_request_maximum(scope: &str, name: &str, bound: Quantity, request: Amount) -> Option<String> {
    let head = format!("maximum {name} usage per {scope} is {bound}");
    match request {
        None => Some(format!("{head}.  No request is specified")),
        Some(request) if request > bound => Some(format!("{head}, but request is {request}")),
        Some(_) => None,
    }
}

/// Returns an error if the ratio of limit to request is above the maximum. Follows `#limitRequestRatioConstraint`.
fn above_ratio(scope: &str, name: &str, bound: Quantity, request: Amount, limit: Amount) -> Option<String> {
    let head = format!("{name} max limit to request ratio per {scope} is {bound}");
    let Some(request) = request.filter(|request| !request.is_zero()) else {
        return Some(format!("{head}, but no request is specified or request is 0"));
    };
    let Some(limit) = limit.filter(|limit| !limit.is_zero()) else {
        return Some(format!("{head}, but no limit is specified or limit is 0"));
    };
    let ratio = limit.approximate_f64() / request.approximate_f64();
    (ratio > bound.approximate_f64()).then(|| format!("{head}, but provided ratio is {ratio:.6}"))
}
