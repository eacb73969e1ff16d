//! Trials about the location of other pods: affinity, anti-affinity, spreading.

use serde_json::json;

use super::{HOST, Trial, ZONE, label, label_pod, none, one_node, running, spread, taint, term, unrelated_label};
use crate::support::stage::Stage;

/// All of them.
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "friend-added",
        cluster: one_node,
        pod: |stage| stage.pod("p", "1", term("podAffinity", "db", HOST)),
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| running(stage, "web", "a", "1", "web"),
        helps: |stage| running(stage, "db", "a", "1", "db"),
        node: "a",
    },
    Trial {
        name: "friend-labelled",
        cluster: |stage| {
            one_node(stage)?;
            running(stage, "web", "a", "1", "web")
        },
        pod: |stage| stage.pod("p", "1", term("podAffinity", "db", HOST)),
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label_pod(stage, "web", "other", "1"),
        helps: |stage| label_pod(stage, "web", "app", "db"),
        node: "a",
    },
    Trial {
        name: "friend-bound",
        cluster: |stage| {
            one_node(stage)?;
            stage.pod("db", "1", json!({"spec": {"schedulerName": "somebody-else"}}))
        },
        pod: |stage| stage.pod("p", "1", term("podAffinity", "db", HOST)),
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label_pod(stage, "db", "other", "1"),
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
        cluster: |stage| {
            nodes_in_zones(stage, "y", "z")?;
            running(stage, "db", "a", "4", "db")
        },
        pod: |stage| stage.pod("p", "1", term("podAffinity", "db", ZONE)),
        // The friend's own node is full.
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| label(stage, "b", ZONE, "y"),
        node: "b",
    },
    Trial {
        name: "enemy-deleted",
        cluster: |stage| {
            one_node(stage)?;
            running(stage, "web", "a", "1", "web")?;
            running(stage, "db", "a", "1", "db")
        },
        pod: |stage| stage.pod("p", "1", term("podAntiAffinity", "web", HOST)),
        refused: "node(s) didn't match pod anti-affinity rules",
        useless: |stage| stage.delete_now("db"),
        helps: |stage| stage.delete_now("web"),
        node: "a",
    },
    Trial {
        name: "enemy-of-others-deleted",
        cluster: |stage| {
            one_node(stage)?;
            let mut hates = term("podAntiAffinity", "p", HOST);
            hates["spec"]["nodeName"] = "a".into();
            stage.pod("hates", "1", hates)
        },
        pod: |stage| stage.pod("p", "1", none()),
        refused: "node(s) didn't satisfy existing pods anti-affinity rules",
        useless: |stage| label_pod(stage, "hates", "other", "1"),
        helps: |stage| stage.delete_now("hates"),
        node: "a",
    },
    Trial {
        name: "enemy-in-a-new-place",
        cluster: |stage| {
            nodes_in_zones(stage, "z", "z")?;
            running(stage, "web", "a", "4", "web")
        },
        pod: |stage| stage.pod("p", "1", term("podAntiAffinity", "web", ZONE)),
        refused: "node(s) didn't match pod anti-affinity rules",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| label(stage, "b", ZONE, "y"),
        node: "b",
    },
    Trial {
        name: "no-friend-of-itself",
        cluster: one_node,
        pod: |stage| stage.pod("p", "1", term("podAffinity", "db", HOST)),
        refused: "node(s) didn't match pod affinity rules",
        useless: unrelated_label,
        helps: |stage| label_pod(stage, "p", "app", "db"),
        node: "a",
    },
    Trial {
        name: "topology-key-added",
        cluster: |stage| {
            one_node(stage)?;
            running(stage, "db", "a", "1", "db")
        },
        pod: |stage| stage.pod("p", "1", term("podAffinity", "db", ZONE)),
        refused: "node(s) didn't match pod affinity rules",
        useless: unrelated_label,
        helps: |stage| label(stage, "a", ZONE, "z"),
        node: "a",
    },
    Trial {
        name: "less-skew",
        cluster: |stage| {
            skewed_nodes(stage)?;
            running(stage, "other", "a", "1", "other")
        },
        pod: |stage| stage.pod("p", "1", spread(HOST)),
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| stage.delete_now("other"),
        helps: |stage| stage.delete_now("same"),
        node: "a",
    },
    Trial {
        name: "counted-no-more",
        cluster: skewed_nodes,
        pod: |stage| stage.pod("p", "1", spread(HOST)),
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| label_pod(stage, "same", "other", "1"),
        helps: |stage| label_pod(stage, "same", "app", "else"),
        node: "a",
    },
    Trial {
        name: "domain-added",
        cluster: skewed_nodes,
        pod: |stage| stage.pod("p", "1", spread(HOST)),
        refused: "node(s) didn't match pod topology spread constraints",
        useless: unrelated_label,
        helps: |stage| stage.node("c", "4", &none()),
        node: "c",
    },
    Trial {
        name: "domain-labelled",
        cluster: one_node,
        pod: |stage| stage.pod("p", "1", spread(ZONE)),
        refused: "node(s) didn't match pod topology spread constraints (missing required label)",
        useless: unrelated_label,
        helps: |stage| label(stage, "a", ZONE, "z"),
        node: "a",
    },
    Trial {
        name: "domain-removed",
        cluster: skewed_nodes,
        pod: |stage| stage.pod("p", "1", spread(HOST)),
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| label(stage, "b", "other", "1"),
        helps: |stage| stage.remove_node("b"),
        node: "a",
    },
    Trial {
        name: "domain-tainted",
        cluster: |stage| {
            one_node(stage)?;
            stage.node("b", "1", &none())?;
            running(stage, "same", "a", "1", "p")
        },
        pod: |stage| {
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

/// Adds nodes `a` and `b` in these zones.
fn nodes_in_zones(stage: &Stage<'_>, zone_of_a: &str, zone_of_b: &str) -> Result<(), String> {
    for (node, zone) in [("a", zone_of_a), ("b", zone_of_b)] {
        stage.node(node, "4", &none())?;
        label(stage, node, ZONE, zone)?;
    }
    Ok(())
}

/// Adds node `a` with a pod that counts for [`spread`], and node `b` with a taint and without pods.
fn skewed_nodes(stage: &mut Stage<'_>) -> Result<(), String> {
    one_node(stage)?;
    stage.node("b", "4", &taint())?;
    running(stage, "same", "a", "1", "p")
}
