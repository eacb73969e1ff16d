//! Room: resources, numbers of pods, host ports.

use serde_json::json;

use super::{Trial, allocatable, label, none, port, resize, running, seen};

/// All of them.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "node-added",
        setting: |stage| {
            stage.node("a", "1", &none())?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.node("b", "1", &none()),
        helps: |stage| stage.node("c", "4", &none()),
        node: "c",
    },
    Trial {
        name: "allocatable-grown",
        setting: |stage| {
            stage.node("a", "1", &none())?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
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
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"pods": "1"}}}))?;
            running(stage, "only", "a", "0", "other")?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "Too many pods",
        useless: |stage| stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"memory": "16Gi"}}})),
        helps: |stage| stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"pods": "2"}}})),
        node: "a",
    },
    Trial {
        name: "pod-deleted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "large", "a", "3", "other")?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.delete_now("large"),
        node: "a",
    },
    Trial {
        name: "pod-leaves-slowly",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "large", "a", "3", "other")?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
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
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "large", "a", "3", "other")?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.patch("pods", "large", "/status", &json!({"status": {"phase": "Running"}})),
        helps: |stage| stage.patch("pods", "large", "/status", &json!({"status": {"phase": "Succeeded"}})),
        node: "a",
    },
    Trial {
        name: "pod-scaled-down",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "large", "a", "3", "other")?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.patch("pods", "large", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| resize(stage, "large", "1"),
        node: "a",
    },
    Trial {
        name: "port-freed",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.pod("eighty", "1", json!({"spec": {"nodeName": "a", "containers": port(80)}}))?;
            stage.pod("ninety", "1", json!({"spec": {"nodeName": "a", "containers": port(90)}}))?;
            seen(stage)?;
            stage.pod("p", "1", json!({"spec": {"containers": port(80)}}))
        },
        refused: "node(s) didn't have free ports",
        useless: |stage| stage.delete_now("ninety"),
        helps: |stage| stage.delete_now("eighty"),
        node: "a",
    },
    Trial {
        name: "port-on-another-node",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.pod("eighty", "1", json!({"spec": {"nodeName": "a", "containers": port(80)}}))?;
            seen(stage)?;
            stage.pod("p", "1", json!({"spec": {"containers": port(80)}}))
        },
        refused: "node(s) didn't have free ports",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.node("b", "4", &none()),
        node: "b",
    },
    Trial {
        name: "shrinks-itself",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "6", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.patch("pods", "p", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| resize(stage, "p", "2"),
        node: "a",
    },
];
