//! Trials about the location of other pods: affinity, anti-affinity, spreading.

use serde_json::json;

use super::{HOST, Trial, ZONE, label, none, running, seen, spread, taint, term};

/// All of them.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "friend-added",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", HOST))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| running(stage, "web", "a", "1", "web"),
        helps: |stage| running(stage, "db", "a", "1", "db"),
        node: "a",
    },
    Trial {
        name: "friend-labelled",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "web", "a", "1", "web")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", HOST))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| stage.patch("pods", "web", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| stage.patch("pods", "web", "", &json!({"metadata": {"labels": {"app": "db"}}})),
        node: "a",
    },
    Trial {
        name: "friend-bound",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.pod("db", "1", json!({"spec": {"schedulerName": "somebody-else"}}))?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", HOST))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| stage.patch("pods", "db", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| {
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "db"}, "target": {"kind": "Node", "name": "a"},
            });
            stage.create("pods/db/binding", &binding)
        },
        node: "a",
    },
    Trial {
        name: "friend-in-a-new-place",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &none())?;
            label(stage, "a", ZONE, "y")?;
            label(stage, "b", ZONE, "z")?;
            running(stage, "db", "a", "4", "db")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", ZONE))
        },
        // The friend's own node is full.
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| label(stage, "b", ZONE, "y"),
        node: "b",
    },
    Trial {
        name: "enemy-deleted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "web", "a", "1", "web")?;
            running(stage, "db", "a", "1", "db")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAntiAffinity", "web", HOST))
        },
        refused: "node(s) didn't match pod anti-affinity rules",
        useless: |stage| stage.delete_now("db"),
        helps: |stage| stage.delete_now("web"),
        node: "a",
    },
    Trial {
        name: "enemy-of-others-deleted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            let mut hates = term("podAntiAffinity", "p", HOST);
            hates["spec"]["nodeName"] = "a".into();
            stage.pod("hates", "1", hates)?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) didn't satisfy existing pods anti-affinity rules",
        useless: |stage| stage.patch("pods", "hates", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| stage.delete_now("hates"),
        node: "a",
    },
    Trial {
        name: "enemy-in-a-new-place",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &none())?;
            label(stage, "a", ZONE, "z")?;
            label(stage, "b", ZONE, "z")?;
            running(stage, "web", "a", "4", "web")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAntiAffinity", "web", ZONE))
        },
        refused: "node(s) didn't match pod anti-affinity rules",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| label(stage, "b", ZONE, "y"),
        node: "b",
    },
    Trial {
        name: "no-friend-of-itself",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", HOST))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.patch("pods", "p", "", &json!({"metadata": {"labels": {"app": "db"}}})),
        node: "a",
    },
    Trial {
        name: "topology-key-added",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "db", "a", "1", "db")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", ZONE))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| label(stage, "a", ZONE, "z"),
        node: "a",
    },
    Trial {
        name: "less-skew",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &taint())?;
            running(stage, "same", "a", "1", "p")?;
            running(stage, "other", "a", "1", "other")?;
            seen(stage)?;
            stage.pod("p", "1", spread(HOST))
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| stage.delete_now("other"),
        helps: |stage| stage.delete_now("same"),
        node: "a",
    },
    Trial {
        name: "counted-no-more",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &taint())?;
            running(stage, "same", "a", "1", "p")?;
            seen(stage)?;
            stage.pod("p", "1", spread(HOST))
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| stage.patch("pods", "same", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| stage.patch("pods", "same", "", &json!({"metadata": {"labels": {"app": "else"}}})),
        node: "a",
    },
    Trial {
        name: "domain-added",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &taint())?;
            running(stage, "same", "a", "1", "p")?;
            seen(stage)?;
            stage.pod("p", "1", spread(HOST))
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.node("c", "4", &none()),
        node: "c",
    },
    Trial {
        name: "domain-labelled",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", spread(ZONE))
        },
        refused: "node(s) didn't match pod topology spread constraints (missing required label)",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| label(stage, "a", ZONE, "z"),
        node: "a",
    },
    Trial {
        name: "domain-removed",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &taint())?;
            running(stage, "same", "a", "1", "p")?;
            seen(stage)?;
            stage.pod("p", "1", spread(HOST))
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| stage.remove_node("b"),
        node: "a",
    },
    Trial {
        name: "domain-tainted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "1", &none())?;
            running(stage, "same", "a", "1", "p")?;
            seen(stage)?;
            let mut pod = spread(HOST);
            pod["spec"]["topologySpreadConstraints"][0]["nodeTaintsPolicy"] = "Honor".into();
            stage.pod("p", "2", pod)
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| stage.patch("nodes", "b", "", &json!({"spec": taint()})),
        node: "a",
    },
];
