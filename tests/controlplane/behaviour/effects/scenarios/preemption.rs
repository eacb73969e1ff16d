//! Scenarios in which pods make room for others.

use serde_json::{Value, json};

use super::none;
use crate::support::stage::Stage;

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
pub(super) fn preempts(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("high", 1000)])?;
    // Nothing shows that a scheduler knows a budget; what follows takes it far longer than to hear of one.
    budget(stage, "guard", "guarded")?;
    stage.known_node("a", "4", &none())?;
    let (low, high) = (class(stage, "low"), class(stage, "high"));
    for victim in ["guarded", "loose"] {
        stage.pod(victim, "2", low.clone())?;
        stage.wait_bound(victim, "a")?;
    }
    stage.pod("high", "2", high)?;
    wait_preempted(stage, "loose")?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("loose")?;
    stage.wait_bound("high", "a")
}

pub(super) fn never_preempts(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("meek", 1000)])?;
    stage.known_node("a", "4", &none())?;
    stage.pod("low", "3", class(stage, "low"))?;
    stage.wait_bound("low", "a")?;
    stage.pod("meek", "2", class(stage, "meek"))?;
    stage.wait_refused("meek", "not eligible due to preemptionPolicy=Never.")
}

/// While the victims of one pod end, a more important one takes the node that is held for it.
pub(super) fn outbid(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("middle", 500), ("high", 1000)])?;
    stage.known_node("a", "4", &none())?;
    stage.pod("low", "4", class(stage, "low"))?;
    stage.wait_bound("low", "a")?;
    stage.pod("middle", "4", class(stage, "middle"))?;
    wait_preempted(stage, "low")?;
    stage.wait_refused("middle", "1 Insufficient cpu")?;
    stage.pod("high", "4", class(stage, "high"))?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("low")?;
    stage.wait_bound("high", "a")?;
    stage.wait_refused("middle", "No preemption victims found")
}

/// Waits until the pod is being deleted and an event says why.
fn wait_preempted(stage: &mut Stage<'_>, victim: &str) -> Result<(), String> {
    stage.wait_terminating(victim)?;
    stage.wait_event(victim, "Preempted", "Preempted by pod")
}

fn budget(stage: &Stage<'_>, name: &str, app: &str) -> Result<(), String> {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    });
    stage.create("poddisruptionbudgets", &budget)
}

/// Adds pods of one priority, one after the other, all on one node.
fn run(stage: &mut Stage<'_>, node: &str, pods: &[(&str, &str, &str)]) -> Result<(), String> {
    for (name, cpu, class_name) in pods {
        let pinned = json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}});
        let mut more = class(stage, class_name);
        crate::support::stage::merge(&mut more, pinned);
        stage.pod(name, cpu, more)?;
        stage.wait_bound(name, node)?;
    }
    Ok(())
}

/// Three pods go for one; a fourth, the most important of them, need not.
pub(super) fn several_victims(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("lower", 0), ("middle", 2), ("high", 1000)])?;
    stage.known_node("a", "4", &none())?;
    run(stage, "a", &[("one", "1", "middle"), ("two", "1", "lower"), ("three", "1", "lower"), ("four", "1", "low")])?;
    stage.pod("high", "3", class(stage, "high"))?;
    for victim in ["two", "three", "four"] {
        wait_preempted(stage, victim)?;
    }
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("two")?;
    stage.wait_refused("high", "not eligible due to a terminating pod on the nominated node.")?;
    stage.delete_now("three")?;
    stage.wait_events("high", "FailedScheduling", 3)?;
    stage.delete_now("four")?;
    stage.wait_bound("high", "a")
}

/// Nobody can go without a budget being broken: it is broken.
pub(super) fn breaks_a_budget(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("high", 1000)])?;
    stage.known_node("a", "2", &none())?;
    run(stage, "a", &[("only", "2", "low")])?;
    budget(stage, "guard", "only")?;
    stage.pod("high", "1", class(stage, "high"))?;
    wait_preempted(stage, "only")?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("only")?;
    stage.wait_bound("high", "a")
}

/// Of three nodes the one is taken whose victims matter least.
pub(super) fn least_important(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("middle", 2), ("high", 1000)])?;
    let taint = json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]});
    for name in ["a", "b", "c"] {
        stage.known_node(name, "2", &none())?;
    }
    stage.known_node("d", "8", &taint)?;
    run(stage, "a", &[("on-a", "2", "middle")])?;
    run(stage, "b", &[("on-b-1", "1", "low"), ("on-b-2", "1", "low")])?;
    run(stage, "c", &[("on-c", "2", "low")])?;
    stage.pod("high", "2", class(stage, "high"))?;
    wait_preempted(stage, "on-c")?;
    stage.wait_refused("high", "3 Insufficient cpu")?;
    stage.delete_now("on-c")?;
    stage.wait_bound("high", "c")
}

/// A pod of another scheduler makes room for one of the second profile, which is the one that says so.
pub(super) fn foreign_victim(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("high", 1000)])?;
    stage.known_node("a", "4", &none())?;
    let mut foreign = class(stage, "low");
    foreign["spec"]["schedulerName"] = "somebody-else".into();
    foreign["spec"]["nodeName"] = "a".into();
    stage.pod("foreign", "3", foreign)?;
    let mut high = class(stage, "high");
    high["spec"]["schedulerName"] = "second-scheduler".into();
    stage.pod("high", "2", high)?;
    wait_preempted(stage, "foreign")?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("foreign")?;
    stage.wait_bound("high", "a")
}

/// A pod whose victim has not gone yet is tried once more, and does not look for another victim.
pub(super) fn still_terminating(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("high", 1000)])?;
    stage.known_node("a", "4", &none())?;
    run(stage, "a", &[("tiny", "100m", "low"), ("large", "3", "low"), ("small", "500m", "high")])?;
    stage.pod("high", "3", class(stage, "high"))?;
    wait_preempted(stage, "large")?;
    stage.wait_refused("high", "1 Insufficient cpu")?;
    stage.delete_now("small")?;
    stage.wait_refused("high", "not eligible due to a terminating pod on the nominated node.")?;
    stage.delete_now("large")?;
    stage.wait_bound("high", "a")
}

/// The node that is held for a pod goes before its victim does.
pub(super) fn node_gone(stage: &mut Stage<'_>) -> Result<(), String> {
    classes(stage, &[("low", 1), ("high", 1000)])?;
    stage.known_node("a", "2", &none())?;
    stage.known_node("b", "1", &none())?;
    run(stage, "a", &[("low", "2", "low")])?;
    stage.pod("high", "2", class(stage, "high"))?;
    wait_preempted(stage, "low")?;
    stage.wait_refused("high", "2 Insufficient cpu")?;
    stage.remove_node("a")?;
    stage.delete_now("low")?;
    stage.wait_refused("high", "0/1 nodes are available: 1 Insufficient cpu.")?;
    stage.node("c", "2", &none())?;
    stage.wait_bound("high", "c")
}
