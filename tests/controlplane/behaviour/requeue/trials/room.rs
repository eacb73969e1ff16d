//! Room: resources, numbers of pods, host ports.

use serde_json::json;

use super::{Trial, allocatable, label, label_pod, none, one_node, port, resize, running, unrelated_label};
use crate::support::stage::Stage;

/// All of them.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "node-added",
        cluster: small_node,
        pod: |stage| stage.pod("p", "2", none()),
        refused: "Insufficient cpu",
        useless: |stage| stage.node("b", "1", &none()),
        helps: |stage| stage.node("c", "4", &none()),
        node: "c",
    },
    Trial {
        name: "allocatable-grown",
        cluster: small_node,
        pod: |stage| stage.pod("p", "2", none()),
        refused: "Insufficient cpu",
        useless: |stage| {
            allocatable(stage, "a", "1500m")?;
            label(stage, "a", "other", "1")
        },
        helps: |stage| allocatable(stage, "a", "4"),
        node: "a",
    },
    Trial {
        name: "room-for-one-more-pod",
        cluster: |stage| {
            one_node(stage)?;
            stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"pods": "1"}}}))?;
            running(stage, "only", "a", "0", "other")
        },
        pod: |stage| stage.pod("p", "1", none()),
        refused: "Too many pods",
        useless: |stage| stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"memory": "16Gi"}}})),
        helps: |stage| stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"pods": "2"}}})),
        node: "a",
    },
    Trial {
        name: "pod-deleted",
        cluster: node_with_large_pod,
        pod: |stage| stage.pod("p", "2", none()),
        refused: "Insufficient cpu",
        useless: unrelated_label,
        helps: |stage| stage.delete_now("large"),
        node: "a",
    },
    Trial {
        name: "pod-leaves-slowly",
        cluster: node_with_large_pod,
        pod: |stage| stage.pod("p", "2", none()),
        refused: "Insufficient cpu",
        useless: |stage| {
            stage.delete("large")?;
            stage.wait_terminating("large")
        },
        helps: |stage| stage.delete_now("large"),
        node: "a",
    },
    Trial {
        name: "pod-finished",
        cluster: node_with_large_pod,
        pod: |stage| stage.pod("p", "2", none()),
        refused: "Insufficient cpu",
        useless: |stage| stage.patch("pods", "large", "/status", &json!({"status": {"phase": "Running"}})),
        helps: |stage| stage.patch("pods", "large", "/status", &json!({"status": {"phase": "Succeeded"}})),
        node: "a",
    },
    Trial {
        name: "pod-scaled-down",
        cluster: node_with_large_pod,
        pod: |stage| stage.pod("p", "2", none()),
        refused: "Insufficient cpu",
        useless: |stage| label_pod(stage, "large", "other", "1"),
        helps: |stage| resize(stage, "large", "1"),
        node: "a",
    },
    Trial {
        name: "port-freed",
        cluster: |stage| {
            one_node(stage)?;
            stage.pod("eighty", "1", json!({"spec": {"nodeName": "a", "containers": port(80)}}))?;
            stage.pod("ninety", "1", json!({"spec": {"nodeName": "a", "containers": port(90)}}))
        },
        pod: |stage| stage.pod("p", "1", json!({"spec": {"containers": port(80)}})),
        refused: "node(s) didn't have free ports",
        useless: |stage| stage.delete_now("ninety"),
        helps: |stage| stage.delete_now("eighty"),
        node: "a",
    },
    Trial {
        name: "port-on-another-node",
        cluster: |stage| {
            one_node(stage)?;
            stage.pod("eighty", "1", json!({"spec": {"nodeName": "a", "containers": port(80)}}))
        },
        pod: |stage| stage.pod("p", "1", json!({"spec": {"containers": port(80)}})),
        refused: "node(s) didn't have free ports",
        useless: unrelated_label,
        helps: |stage| stage.node("b", "4", &none()),
        node: "b",
    },
    Trial {
        name: "shrinks-itself",
        cluster: one_node,
        pod: |stage| stage.pod("p", "6", none()),
        refused: "Insufficient cpu",
        useless: |stage| label_pod(stage, "p", "other", "1"),
        helps: |stage| resize(stage, "p", "2"),
        node: "a",
    },
];

/// Adds node `a` with one CPU.
fn small_node(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.node("a", "1", &none())
}

/// Adds node `a` with four CPUs, of which pod `large` requests three.
fn node_with_large_pod(stage: &mut Stage<'_>) -> Result<(), String> {
    one_node(stage)?;
    running(stage, "large", "a", "3", "other")
}
