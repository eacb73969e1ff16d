//! Scenarios, each of which ends when what it is about has been written.

use serde_json::{Value, json};

use crate::stage::Stage;

type Scenario = fn(&mut Stage<'_>) -> Result<(), String>;

/// All of them, each with the name of its namespace.
pub(super) const ALL: &[(&str, Scenario)] = &[
    ("binds", binds),
    ("no-nodes", no_nodes),
    ("room-later", room_later),
    ("another-reason", another_reason),
    ("gates", gates),
    ("profiles", profiles),
    ("long-message", long_message),
    ("leaves-early", leaves_early),
    ("placed-by-others", placed_by_others),
    ("preempts", preempts),
    ("never-preempts", never_preempts),
    ("outbid", outbid),
];

fn none() -> Value {
    json!({})
}

fn binds(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    stage.pod("p", "1", none())?;
    stage.wait_bound("p", "a")
}

fn no_nodes(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.pod("p", "1", none())?;
    stage.wait_refused("p", "no nodes available to schedule pods")?;
    stage.node("a", "4", &none())?;
    stage.wait_bound("p", "a")
}

fn room_later(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("p", "2", none())?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"cpu": "4"}}}))?;
    stage.wait_bound("p", "a")
}

/// The condition is written again with another message, and the event is another one, too.
fn another_reason(stage: &mut Stage<'_>) -> Result<(), String> {
    let taint = json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]});
    stage.known_node("a", "1", &taint)?;
    stage.known_node("b", "1", &none())?;
    stage.pod("p", "2", none())?;
    stage.wait_refused("p", "1 Insufficient cpu, 1 node(s) had untolerated taint(s)")?;
    stage.patch("nodes", "a", "", &json!({"spec": {"taints": null}}))?;
    stage.wait_refused("p", "2 Insufficient cpu")?;
    stage.node("c", "2", &none())?;
    stage.wait_bound("p", "c")
}

/// Nothing is written while a gate is there.
fn gates(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    stage.pod("gated", "1", json!({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}}))?;
    stage.pod("other", "1", none())?;
    stage.wait_bound("other", "a")?;
    stage.patch("pods", "gated", "", &json!({"spec": {"schedulingGates": null}}))?;
    stage.wait_bound("gated", "a")
}

/// Each profile speaks for its own pods, and nobody for those of others.
fn profiles(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    stage.pod("foreign", "1", json!({"spec": {"schedulerName": "somebody-else"}}))?;
    stage.pod("big", "9", json!({"spec": {"schedulerName": "second-scheduler"}}))?;
    stage.pod("small", "1", json!({"spec": {"schedulerName": "second-scheduler"}}))?;
    stage.wait_refused("big", "1 Insufficient cpu")?;
    stage.wait_bound("small", "a")
}

/// More than an event's note holds.
fn long_message(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    let names = (0..30).map(|at| (format!("example.com/a-resource-with-a-long-name-{at}"), Value::from("1")));
    let amounts: Value = names.chain([("cpu".to_owned(), "1".into())]).collect::<serde_json::Map<_, _>>().into();
    let container = json!({
        "name": "main", "image": "registry.example/app:v1", "resources": {"requests": amounts, "limits": amounts},
    });
    stage.pod("p", "1", json!({"spec": {"containers": [container]}}))?;
    stage.wait_refused("p", "0/1 nodes are available: 1 Insufficient example.com/a-resource-with-a-long-name-")
}

/// A pod that waits and is being deleted meanwhile is not scheduled when there is room.
fn leaves_early(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("p", "2", json!({"metadata": {"finalizers": ["example.com/held"]}}))?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    stage.delete("p")?;
    stage.wait_terminating("p")?;
    stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"cpu": "4"}}}))?;
    stage.wait_event("p", "FailedScheduling", "skip schedule deleting pod")
}

/// A pod that waits and is put on a node by somebody else, and one that came with its node.
fn placed_by_others(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("waits", "2", none())?;
    stage.wait_refused("waits", "1 Insufficient cpu")?;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits"}, "target": {"kind": "Node", "name": "a"},
    });
    stage.create("pods/waits/binding", &binding)?;
    stage.pod("placed", "2", json!({"spec": {"nodeName": "a"}}))?;
    stage.node("b", "4", &none())?;
    stage.pod("last", "4", none())?;
    stage.wait_bound("last", "b")
}

fn classes(stage: &Stage<'_>, classes: &[(&str, i32)]) -> Result<(), String> {
    for (name, value) in classes {
        let policy = if *name == "meek" { "Never" } else { "PreemptLowerPriority" };
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value, "preemptionPolicy": policy,
            "metadata": {"name": format!("{}-{name}", stage.namespace)},
        });
        stage.create("priorityclasses", &class)?;
    }
    Ok(())
}

fn class(stage: &Stage<'_>, name: &str) -> Value {
    json!({"spec": {"priorityClassName": format!("{}-{name}", stage.namespace), "terminationGracePeriodSeconds": 30}})
}

/// Of two victims the one without a budget goes, in its own time; then the pod gets its place.
fn preempts(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("high", 1000)])?;
    stage.known_node("a", "4", &none())?;
    let (low, high) = (class(stage, "low"), class(stage, "high"));
    for victim in ["guarded", "loose"] {
        stage.pod(victim, "2", low.clone())?;
        stage.wait_bound(victim, "a")?;
    }
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    });
    stage.create("poddisruptionbudgets", &budget)?;
    stage.pod("high", "2", high)?;
    stage.wait_terminating("loose")?;
    stage.wait_event("loose", "Preempted", "Preempted by pod")?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("loose")?;
    stage.wait_bound("high", "a")
}

fn never_preempts(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("meek", 1000)])?;
    stage.known_node("a", "4", &none())?;
    stage.pod("low", "3", class(stage, "low"))?;
    stage.wait_bound("low", "a")?;
    stage.pod("meek", "2", class(stage, "meek"))?;
    stage.wait_refused("meek", "not eligible due to preemptionPolicy=Never.")
}

/// While the victims of one pod end, a more important one takes the node that is held for it.
fn outbid(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("middle", 500), ("high", 1000)])?;
    stage.known_node("a", "4", &none())?;
    stage.pod("low", "4", class(stage, "low"))?;
    stage.wait_bound("low", "a")?;
    stage.pod("middle", "4", class(stage, "middle"))?;
    stage.wait_terminating("low")?;
    stage.wait_event("low", "Preempted", "Preempted by pod")?;
    stage.wait_refused("middle", "1 Insufficient cpu")?;
    stage.pod("high", "4", class(stage, "high"))?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("low")?;
    stage.wait_bound("high", "a")?;
    stage.wait_refused("middle", "No preemption victims found")
}
