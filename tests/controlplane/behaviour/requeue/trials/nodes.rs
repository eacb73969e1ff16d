//! Which nodes a pod may be on, and whether it may be tried.

use serde_json::json;

use super::{Trial, allocatable, label, label_pod, none, one_node, taint, tolerate, unrelated_label};
use crate::support::stage::Stage;

/// All of them.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "uncordoned",
        cluster: cordoned_node,
        pod: |stage| stage.pod("p", "1", none()),
        refused: "node(s) were unschedulable",
        useless: unrelated_label,
        helps: |stage| stage.patch("nodes", "a", "", &json!({"spec": {"unschedulable": null}})),
        node: "a",
    },
    Trial {
        name: "taint-removed",
        cluster: tainted_node,
        pod: |stage| stage.pod("p", "1", none()),
        refused: "node(s) had untolerated taint(s)",
        useless: |stage| {
            label(stage, "a", "other", "1")?;
            allocatable(stage, "a", "5")
        },
        helps: |stage| stage.patch("nodes", "a", "", &json!({"spec": {"taints": null}})),
        node: "a",
    },
    Trial {
        name: "toleration-added",
        cluster: tainted_node,
        pod: |stage| stage.pod("p", "1", none()),
        refused: "node(s) had untolerated taint(s)",
        useless: |stage| label_pod(stage, "p", "other", "1"),
        helps: |stage| tolerate(stage, "team"),
        node: "a",
    },
    Trial {
        name: "node-label",
        cluster: one_node,
        pod: |stage| stage.pod("p", "1", json!({"spec": {"nodeSelector": {"disk": "ssd"}}})),
        refused: "node(s) didn't match Pod's node affinity/selector",
        useless: |stage| {
            label(stage, "a", "disk", "hdd")?;
            allocatable(stage, "a", "5")
        },
        helps: |stage| label(stage, "a", "disk", "ssd"),
        node: "a",
    },
    Trial {
        name: "gates-gone",
        cluster: one_node,
        pod: |stage| {
            stage.pod(
                "p",
                "1",
                json!({"spec": {"schedulingGates": [{"name": "example.com/x"}, {"name": "example.com/y"}]}}),
            )
        },
        refused: "",
        useless: |stage| {
            stage.patch("pods", "p", "", &json!({"spec": {"schedulingGates": [{"name": "example.com/y"}]}}))?;
            label_pod(stage, "p", "other", "1")?;
            label(stage, "a", "other", "1")
        },
        helps: |stage| stage.patch("pods", "p", "", &json!({"spec": {"schedulingGates": null}})),
        node: "a",
    },
    Trial {
        name: "tolerates-a-cordon",
        cluster: cordoned_node,
        pod: |stage| stage.pod("p", "1", none()),
        refused: "node(s) were unschedulable",
        useless: |stage| tolerate(stage, "team"),
        helps: |stage| tolerate(stage, "node.kubernetes.io/unschedulable"),
        node: "a",
    },
    Trial {
        name: "feature-declared",
        cluster: one_node,
        pod: |stage| {
            let rule = json!({"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [7]}});
            let container = json!({
                "name": "main", "image": "registry.example/app:v1", "restartPolicy": "Never", "restartPolicyRules": [rule],
            });
            stage.pod("p", "1", json!({"spec": {"containers": [container]}}))
        },
        refused: "node(s) didn't match Pod's required features",
        useless: |stage| {
            label(stage, "a", "other", "1")?;
            allocatable(stage, "a", "5")
        },
        helps: |stage| {
            let features = json!(["RestartAllContainersOnContainerExits"]);
            stage.patch("nodes", "a", "/status", &json!({"status": {"declaredFeatures": features}}))
        },
        node: "a",
    },
    Trial {
        name: "two-reasons",
        cluster: |stage| stage.node("a", "1", &taint()),
        pod: |stage| stage.pod("p", "2", json!({"spec": {"nodeSelector": {"disk": "ssd"}}})),
        refused: "node(s) had untolerated taint(s)",
        // Each lacks something else; the node's labels are no matter as long as it is tainted.
        useless: |stage| label(stage, "a", "disk", "ssd"),
        helps: |stage| {
            stage.node("b", "4", &taint())?;
            label(stage, "b", "disk", "ssd")?;
            stage.patch("nodes", "b", "", &json!({"spec": {"taints": null}}))
        },
        node: "b",
    },
];

/// Adds node `a`, which is cordoned.
fn cordoned_node(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.node("a", "4", &json!({"unschedulable": true}))
}

/// Adds node `a`, which has a taint.
fn tainted_node(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.node("a", "4", &taint())
}
