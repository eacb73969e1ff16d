//! Preparation of pods before they are stored: initial status, conditions, quality of service.
//!
//! Follows `pkg/registry/core/pod/strategy.go @v1.36.3`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::origin::Origin;
use super::{decode, meta};
use crate::apimachinery::Status;
use crate::config::{FeatureGates, Gate};

const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// Prepares a new pod. Follows `#podStrategy.PrepareForCreate`. `keeps_status` is set for a pod that was loaded with its status.
pub(super) fn prepare_create(
    now: Timestamp,
    gates: &FeatureGates,
    pod: &mut Value,
    origin: Origin,
    keeps_status: bool,
) -> Result<(), Status> {
    let typed = decode::pod(pod)?;
    if !keeps_status {
        let class = typed.qos_class(gates.enabled(Gate::PodLevelResources));
        pod["status"] = json!({"phase": "Pending", "qosClass": class.to_string()});
    }
    if !meta::is_empty(&pod["spec"]["schedulingGates"]) {
        let known = meta::list(&pod["status"]["conditions"]).any(|condition| condition["type"] == "PodScheduled");
        if !known {
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": GATED,
                "lastTransitionTime": meta::time_text(now),
            });
            push(&mut pod["status"]["conditions"], condition);
        }
    }
    // The server of a dump has merged the keys already, with the labels that the pod had then.
    if origin != Origin::Dump || !keeps_status {
        add_label_keys(pod, keeps_status || origin == Origin::Dump, gates);
    }
    Ok(())
}

/// Prepares an update of a pod's status. Follows `#podStatusStrategy.PrepareForUpdate`.
pub(super) fn prepare_status_update(pod: &mut Value, old: &Value) {
    let status = meta::child(pod, "status");
    // `podIP` repeats the first of `podIPs`. If they differ, `podIP` wins. `pkg/apis/core/v1/conversion.go @v1.36.3`.
    let first = status.get("podIPs").and_then(|list| list[0]["ip"].as_str()).unwrap_or_default().to_owned();
    match status.get("podIP").and_then(Value::as_str).filter(|ip| !ip.is_empty()).map(str::to_owned) {
        Some(ip) if ip != first => {
            status.insert("podIPs".to_owned(), json!([{"ip": ip}]));
        }
        None if !first.is_empty() => {
            status.insert("podIP".to_owned(), json!(first));
        }
        _ => {}
    }
    for (key, absent) in [("qosClass", json!("")), ("observedGeneration", json!(0))] {
        if status.get(key).is_none_or(|value| value.is_null() || *value == absent) {
            meta::set(status, key, old["status"][key].clone());
        }
    }
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
    let mut unused: Vec<&Value> = meta::list(&old["status"]["conditions"]).collect();
    for condition in conditions {
        let Some(at) = unused.iter().position(|old| old["type"] == condition["type"]) else { continue };
        let before = &unused.remove(at)["observedGeneration"];
        if meta::is_empty(&condition["observedGeneration"])
            && !before.is_null()
            && let Some(condition) = condition.as_object_mut()
        {
            condition.insert("observedGeneration".to_owned(), before.clone());
        }
    }
}

/// Merges `matchLabelKeys` and `mismatchLabelKeys` into their label selectors. This happens only when the pod is created.
/// With `was_stored`, a selector may have the expression of a key already, because the pod comes from another server.
/// Follows `#mutatePodAffinity` and `#mutateTopologySpreadConstraints`.
fn add_label_keys(pod: &mut Value, was_stored: bool, gates: &FeatureGates) {
    let labels = pod["metadata"]["labels"].clone();
    let Some(spec) = pod["spec"].as_object_mut() else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.get_mut("affinity").and_then(|affinity| affinity.get_mut(kind)) else { continue };
        for (list, nested) in [
            ("preferredDuringSchedulingIgnoredDuringExecution", true),
            ("requiredDuringSchedulingIgnoredDuringExecution", false),
        ] {
            for term in affinity.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                let term = if nested { term.get_mut("podAffinityTerm") } else { Some(term) };
                if let Some(term) = term {
                    merge_keys(term, "matchLabelKeys", "In", &labels, was_stored);
                    merge_keys(term, "mismatchLabelKeys", "NotIn", &labels, was_stored);
                }
            }
        }
    }
    let needed = [Gate::MatchLabelKeysInPodTopologySpread, Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge];
    if needed.iter().any(|gate| !gates.enabled(*gate)) {
        return;
    }
    for constraint in spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten() {
        merge_keys(constraint, "matchLabelKeys", "In", &labels, was_stored);
    }
}

fn merge_keys(term: &mut Value, list: &str, operator: &str, labels: &Value, was_stored: bool) {
    if !term["labelSelector"].is_object() {
        return;
    }
    let wanted: Vec<Value> = meta::list(&term[list])
        .filter_map(Value::as_str)
        .filter_map(|key| Some((key, labels.get(key)?)))
        .map(|(key, value)| json!({"key": key, "operator": operator, "values": [value]}))
        .collect();
    for requirement in wanted {
        if was_stored && meta::list(&term["labelSelector"]["matchExpressions"]).any(|known| *known == requirement) {
            continue;
        }
        push(&mut term["labelSelector"]["matchExpressions"], requirement);
    }
}

fn push(list: &mut Value, item: Value) {
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => *list = json!([item]),
    }
}

/// Sets the condition `PodScheduled` to true, without reason or message, as a binding does.
/// Follows `pkg/api/v1/pod/util.go#UpdatePodCondition @v1.36.3`.
pub(super) fn set_scheduled(conditions: &mut Value, now: Timestamp) {
    let known = conditions.as_array_mut().into_iter().flatten().find(|condition| condition["type"] == "PodScheduled");
    let was_true = known.as_ref().is_some_and(|condition| condition["status"] == "True");
    let since = match &known {
        Some(condition) if was_true => condition["lastTransitionTime"].clone(),
        _ => json!(meta::time_text(now)),
    };
    let condition =
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": since});
    match known {
        Some(known) => *known = condition,
        None => push(conditions, condition),
    }
}
