//! Which nodes a daemon set wants, and how its pods are tied to them.
//!
//! Follows `pkg/controller/daemon/daemon_controller.go#NodeShouldRunDaemonPod` and
//! `pkg/controller/daemon/util/daemonset_util.go @v1.36.3`.

use k8s_openapi::api::core::v1::Toleration;
use serde_json::{Value, json};

use crate::k8s::{
    Node, Pod,
    node_selector::RequiredNodeAffinity,
    tolerations::{do_not_schedule, find_untolerated_taint},
};

/// Taints that every daemon pod puts up with.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The taint that daemon pods on the host's network put up with, too.
const HOST_NETWORK_TOLERATED: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Adds the tolerations that every daemon pod has; one with the same key and effect in the template is replaced.
pub(super) fn add_tolerations(pod: &mut Value) {
    let host_network = pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true));
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, effect) in TOLERATED.iter().chain(host_network.then_some(&HOST_NETWORK_TOLERATED)) {
        tolerations.retain(|toleration| toleration["key"] != *key || toleration["effect"] != *effect);
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
    pod["spec"]["tolerations"] = tolerations.into();
}

/// Whether the set runs a pod on this node: its name, its affinity and its tolerations fit. What cannot be read is left to
/// the API server to refuse.
pub(super) fn wants(pod: &Value, node: &Value) -> bool {
    let (Ok(pod), Ok(node)) = (decode::<Pod>(pod), decode::<Node>(node)) else { return true };
    let tolerations: &[Toleration] = &pod.spec.tolerations;
    pod.node_name().is_none_or(|name| name == node.name())
        && RequiredNodeAffinity::new(&pod).matches(&node).unwrap_or(false)
        && find_untolerated_taint(&node.spec.taints, tolerations, do_not_schedule, false).is_none()
}

fn decode<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(value.clone())
}

/// Ties the pod to a node, in place of the template's required terms.
pub(super) fn pin(pod: &mut Value, node: &str) {
    let terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
    let affinity = &mut pod["spec"]["affinity"];
    if !affinity.is_object() {
        *affinity = json!({});
    }
    if !affinity["nodeAffinity"].is_object() {
        affinity["nodeAffinity"] = json!({});
    }
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({"nodeSelectorTerms": terms});
}

/// The node that a daemon pod is on, or tied to.
pub(super) fn node_of(pod: &Value) -> Option<String> {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let tied = pod.pointer(&format!("{terms}/0/matchFields/0/values/0"));
    let name = pod.pointer("/spec/nodeName").filter(|name| *name != "").or(tied)?;
    name.as_str().map(str::to_owned)
}
