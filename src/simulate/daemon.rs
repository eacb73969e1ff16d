//! Nodes that a daemon set runs on, and the affinity of its pods to them.
//!
//! Follows `pkg/controller/daemon/daemon_controller.go#NodeShouldRunDaemonPod` and
//! `pkg/controller/daemon/util/daemonset_util.go @v1.36.3`.

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::k8s::{
    Node, Pod,
    node_selector::RequiredNodeAffinity,
    tolerations::{do_not_schedule, find_untolerated_taint},
};

/// Taints that every daemon pod tolerates.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The taint that daemon pods on the host network tolerate in addition.
const HOST_NETWORK_TOLERATED: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Adds the tolerations that every daemon pod has. They replace tolerations with the same key and effect in the template.
pub(super) fn add_tolerations(pod: &mut Value) {
    let host_network = pod.pointer("/spec/hostNetwork") == Some(&Value::Bool(true));
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, effect) in TOLERATED.iter().chain(host_network.then_some(&HOST_NETWORK_TOLERATED)) {
        tolerations.retain(|toleration| toleration["key"] != *key || toleration["effect"] != *effect);
        tolerations.push(json!({"key": key, "operator": "Exists", "effect": effect}));
    }
    pod["spec"]["tolerations"] = tolerations.into();
}

/// Returns the names of the nodes on which the set runs a pod: the nodes that match the pod's node name, affinity and
/// tolerations. A pod that cannot be parsed gets all nodes, so that the API server rejects it.
pub(super) fn wanted_nodes(pod: &Value, nodes: &[Node]) -> Vec<String> {
    let Ok(pod) = Pod::deserialize(pod) else { return nodes.iter().map(|node| node.name().to_owned()).collect() };
    let affinity = RequiredNodeAffinity::new(&pod);
    let wants = |node: &&Node| {
        pod.node_name().is_none_or(|name| name == node.name())
            && affinity.matches(node).unwrap_or(false)
            && find_untolerated_taint(&node.spec.taints, &pod.spec.tolerations, do_not_schedule, false).is_none()
    };
    nodes.iter().filter(wants).map(|node| node.name().to_owned()).collect()
}

/// Adds a required affinity to the given node. It replaces the required node affinity of the template.
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

/// Returns the node that a daemon pod is on, or has affinity to.
pub(super) fn node_of(pod: &Value) -> Option<String> {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let tied = pod.pointer(&format!("{terms}/0/matchFields/0/values/0"));
    let name = pod.pointer("/spec/nodeName").filter(|name| *name != "").or(tied)?;
    name.as_str().map(str::to_owned)
}
