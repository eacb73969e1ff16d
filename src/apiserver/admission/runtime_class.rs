//! Admission by runtime class: adds the overhead, node selector and tolerations of the class to its pods.
//!
//! Follows `plugin/pkg/admission/runtimeclass/admission.go @v1.36.3`.

use serde_json::{Value, json};

use crate::apimachinery::Status;
use crate::apiserver::kinds::{PODS, RUNTIME_CLASSES};
use crate::apiserver::meta;
use crate::apiserver::store::State;

/// Adds the fields of the runtime class to a new pod. Rejects a pod whose class does not exist or conflicts with the pod.
pub(super) fn on_pod(state: &State, pod: &mut Value) -> Result<(), Status> {
    let pod_name = meta::text(pod, "name").to_owned();
    let refuse = |why: String| Status::forbidden(&PODS, &pod_name, why);
    let class = match pod["spec"]["runtimeClassName"].as_str() {
        None => Value::Null,
        Some("") => return Err(Status::unknown("resource name may not be empty")),
        Some(name) => match state.find(&RUNTIME_CLASSES, name) {
            Some(class) => class.value(),
            None => return Err(refuse(format!("pod rejected: RuntimeClass {name:?} not found"))),
        },
    };
    let fixed = &class["overhead"]["podFixed"];
    let own = &pod["spec"]["overhead"];
    if !class["overhead"].is_null() {
        if !meta::is_empty(own) && own != fixed {
            let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return Err(refuse(why.to_owned()));
        }
        if !fixed.is_null() {
            pod["spec"]["overhead"] = fixed.clone();
        }
    }
    let spec = meta::child(pod, "spec");
    for (key, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
        let Some(selector) = selector.as_object_mut() else { continue };
        let known = selector.entry(key).or_insert_with(|| value.clone());
        if known != value {
            return Err(refuse(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                value.as_str().unwrap_or_default(),
                known.as_str().unwrap_or_default()
            )));
        }
    }
    if !meta::is_empty(&class["scheduling"]["tolerations"]) {
        let own = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
        let added = meta::list(&class["scheduling"]["tolerations"]).cloned();
        spec.insert("tolerations".to_owned(), json!(merge(&own.into_iter().chain(added).collect::<Vec<_>>())));
    }
    Ok(())
}

/// Rejects a pod that sets an overhead but has no runtime class that defines one.
pub(super) fn check_pod(state: &State, pod: &Value) -> Result<(), Status> {
    let class = pod["spec"]["runtimeClassName"].as_str().and_then(|name| state.find(&RUNTIME_CLASSES, name));
    let has_overhead = class.is_some_and(|class| !class.value()["overhead"].is_null());
    if has_overhead || pod["spec"]["overhead"].is_null() {
        return Ok(());
    }
    let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    Err(Status::forbidden(&PODS, meta::text(pod, "name"), why))
}

/// Returns the tolerations without those that another toleration covers.
/// Follows `pkg/util/tolerations/tolerations.go#MergeTolerations @v1.36.3`.
fn merge(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let by_former = merged.iter().any(|other| covers(other, toleration));
        let by_later = all[at + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !by_former && !by_later {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether `wide` tolerates every taint that `narrow` tolerates. Follows `pkg/util/tolerations/tolerations.go#isSuperset`.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |toleration: &Value, key: &str| toleration[key].as_str().unwrap_or_default().to_owned();
    let (wide_key, wide_operator, wide_effect) = (text(wide, "key"), text(wide, "operator"), text(wide, "effect"));
    if text(narrow, "key") != wide_key && !(wide_key.is_empty() && wide_operator == "Exists") {
        return false;
    }
    if text(narrow, "effect") != wide_effect && !wide_effect.is_empty() {
        return false;
    }
    if wide_effect == "NoExecute"
        && let Some(limit) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|seconds| seconds > limit)
    {
        return false;
    }
    match &*wide_operator {
        "Exists" => true,
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_toleration_replaces_a_narrower_one() {
        let narrow = json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"});
        let wide = json!({"key": "a", "operator": "Exists"});
        assert_eq!(merge(&[narrow.clone(), wide.clone()]), vec![wide.clone()]);
        assert_eq!(merge(&[wide.clone(), narrow.clone()]), vec![wide]);
        assert_eq!(merge(&[narrow.clone(), narrow.clone()]), vec![narrow]);
    }
}
