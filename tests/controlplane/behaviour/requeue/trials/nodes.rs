//! Which nodes a pod may be on, and whether it may be tried.

use serde_json::json;

use super::{Trial, allocatable, label, none, seen, taint, tolerate};

/// All of them.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "uncordoned",
        setting: |stage| {
            stage.node("a", "4", &json!({"unschedulable": true}))?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) were unschedulable",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.patch("nodes", "a", "", &json!({"spec": {"unschedulable": null}})),
        node: "a",
    },
    Trial {
        name: "taint-removed",
        setting: |stage| {
            stage.node("a", "4", &taint())?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
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
        setting: |stage| {
            stage.node("a", "4", &taint())?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) had untolerated taint(s)",
        useless: |stage| stage.patch("pods", "p", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| tolerate(stage, "team"),
        node: "a",
    },
    Trial {
        name: "node-label",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", json!({"spec": {"nodeSelector": {"disk": "ssd"}}}))
        },
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
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod(
                "p",
                "1",
                json!({"spec": {"schedulingGates": [{"name": "example.com/x"}, {"name": "example.com/y"}]}}),
            )
        },
        refused: "",
        useless: |stage| {
            stage.patch("pods", "p", "", &json!({"spec": {"schedulingGates": [{"name": "example.com/y"}]}}))?;
            stage.patch("pods", "p", "", &json!({"metadata": {"labels": {"other": "1"}}}))?;
            label(stage, "a", "other", "1")
        },
        helps: |stage| stage.patch("pods", "p", "", &json!({"spec": {"schedulingGates": null}})),
        node: "a",
    },
    Trial {
        name: "tolerates-a-cordon",
        setting: |stage| {
            stage.node("a", "4", &json!({"unschedulable": true}))?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) were unschedulable",
        useless: |stage| tolerate(stage, "team"),
        helps: |stage| tolerate(stage, "node.kubernetes.io/unschedulable"),
        node: "a",
    },
    Trial {
        name: "feature-declared",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
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
        setting: |stage| {
            stage.node("a", "1", &taint())?;
            seen(stage)?;
            stage.pod("p", "2", json!({"spec": {"nodeSelector": {"disk": "ssd"}}}))
        },
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
