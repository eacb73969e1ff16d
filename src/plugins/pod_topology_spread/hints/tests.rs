//! Tests of every branch of the hints.

use QueueingHint::{Queue, Skip};
use serde_json::{Value, json};

use super::*;
use crate::config::{FeatureGates, Gate};
use crate::model::Object;
use crate::plugins::pod_topology_spread::factory;
use crate::plugins::pod_topology_spread::tests::{constraint, spreading, system};
use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

fn harness(hints: bool) -> Harness {
    let gates =
        if hints { FeatureGates::default() } else { FeatureGates::at(33).with(Gate::SchedulerQueueingHints, false) };
    Harness::build(gates, system(), Ok(()), factory).expect("the plugin can be built")
}

fn waiting(more: &Value) -> PodFixture {
    spreading(&[constraint("zone", more), constraint("rack", &json!({"labelSelector": {"matchLabels": {"app": "b"}}}))])
}

fn running(app: &str) -> PodFixture {
    pod("q").label("app", app).on("n")
}

#[track_caller]
fn check_pod(waiting: &PodFixture, old: Option<PodFixture>, new: Option<PodFixture>, expected: QueueingHint) {
    let object = |pod: Option<PodFixture>| pod.map(|pod| Object::Pod(pod.build()));
    assert_eq!(harness(true).hint(waiting, 0, object(old), object(new)), expected);
}

#[track_caller]
fn check_node(waiting: &PodFixture, old: Option<NodeFixture>, new: Option<NodeFixture>, expected: QueueingHint) {
    let object = |node: Option<NodeFixture>| node.map(|node| Object::Node(node.build()));
    assert_eq!(harness(true).hint(waiting, 1, object(old), object(new)), expected);
}

#[test]
fn added_or_deleted_selected_pods_requeue() {
    let check = |pod: PodFixture, expected: QueueingHint| {
        check_pod(&waiting(&json!({})), None, Some(pod.clone()), expected);
        check_pod(&waiting(&json!({})), Some(pod), None, expected);
    };
    check(running("a"), Queue);
    check(running("b"), Queue);
    check(running("c"), Skip);
    check(running("a").namespace("other"), Skip);
    check(pod("q").label("app", "a"), Skip);
    check(pod("q").label("app", "a").nominated("n"), Queue);
}

#[test]
fn label_changes_that_change_the_selection_requeue() {
    let check = |old: PodFixture, new: PodFixture, expected: QueueingHint| {
        check_pod(&waiting(&json!({})), Some(old), Some(new), expected);
    };
    check(running("a"), running("c"), Queue);
    check(running("c"), running("b"), Queue);
    check(running("c"), running("d"), Skip);
    check(running("a"), running("a").label("x", "y"), Skip);
    check(running("a"), running("a"), Skip);
    check(running("a").namespace("other"), running("c").namespace("other"), Skip);
    check(pod("q").label("app", "a"), running("a"), Skip);
    // The waiting pod itself has no node.
    check(waiting(&json!({})), waiting(&json!({})).label("app", "c"), Queue);
}

#[test]
fn own_toleration_requeues_with_taints_policy_honor() {
    let check = |more: Value, by: PodFixture, tolerates: bool, expected: QueueingHint| {
        let new = if tolerates { by.clone().toleration("t", "", "NoSchedule") } else { by.clone() };
        check_pod(&waiting(&more), Some(by), Some(new), expected);
    };
    let honor = || json!({"nodeTaintsPolicy": "Honor"});
    check(honor(), waiting(&honor()), true, Queue);
    check(honor(), waiting(&honor()), false, Skip);
    check(json!({}), waiting(&json!({})), true, Skip);
    check(honor(), running("a"), true, Skip);
    // Empty and absent text are equal.
    let spelled = |more: Value| waiting(&honor()).set("spec.tolerations", json!([more]));
    let (short, long) = (json!({"key": "t"}), json!({"key": "t", "operator": "", "value": ""}));
    check_pod(&waiting(&honor()), Some(spelled(short.clone())), Some(spelled(long)), Skip);
    check_pod(&waiting(&honor()), Some(spelled(short)), Some(spelled(json!({"key": "u"}))), Queue);
}

#[test]
fn nodes_with_every_topology_key_requeue() {
    let both = || node("n").label("zone", "x").label("rack", "1");
    let waits = || waiting(&json!({}));
    check_node(&waits(), None, Some(both()), Queue);
    check_node(&waits(), None, Some(node("n").label("zone", "x")), Skip);
    check_node(&waits(), Some(both()), None, Queue);
    check_node(&waits(), Some(node("n")), None, Skip);
    let check = |old: NodeFixture, new: NodeFixture, expected: QueueingHint| {
        check_node(&waits(), Some(old), Some(new), expected);
    };
    check(both(), node("n").label("zone", "x"), Queue);
    check(node("n"), both(), Queue);
    check(both(), both().label("zone", "y"), Queue);
    check(both(), both().label("other", "y"), Skip);
    check(both(), both().taint("t", "", "NoSchedule"), Queue);
    check(node("n"), node("n").taint("t", "", "NoSchedule"), Skip);
    check(node("n"), node("n").label("zone", "x"), Skip);
    let spelled = |more: Value| both().set("spec.taints", json!([more]));
    let (short, long) =
        (json!({"key": "t", "effect": "NoSchedule"}), json!({"key": "t", "effect": "NoSchedule", "value": ""}));
    check(spelled(short), spelled(long), Skip);
}

#[test]
fn malformed_selectors_and_wrong_objects_are_errors() {
    let error = |waiting: &PodFixture, at: usize, objects: EventObjects| {
        let harness = harness(true);
        let hint = harness.registered[at].hint.as_ref().expect("a hint");
        hint(&waiting.clone().info(), &objects).expect_err("it fails").to_string()
    };
    let broken = spreading(&[constraint("zone", &json!({"labelSelector": {"matchLabels": {"app": "not a value!"}}}))]);
    let of_a_node = || EventObjects { old: None, new: Some(Object::Node(node("n").build())) };
    let of_a_pod = || EventObjects { old: None, new: Some(Object::Pod(running("a").build())) };
    assert_eq!(error(&broken, 0, of_a_pod()), error(&broken, 1, of_a_node()));
    let waits = waiting(&json!({}));
    assert_eq!(error(&waits, 0, of_a_node()), "expected a pod, but got another object");
    assert_eq!(error(&waits, 1, of_a_pod()), "expected a node, but got another object");
}

#[test]
fn registered_events_depend_on_hints() {
    let actions = |hints: bool| {
        let registered = harness(hints).registered;
        registered.iter().map(|entry| entry.event.action).collect::<Vec<ActionType>>()
    };
    let nodes = ActionType::ADD | ActionType::DELETE | ActionType::UPDATE_NODE_LABEL | ActionType::UPDATE_NODE_TAINT;
    let pods = ActionType::ADD | ActionType::DELETE | ActionType::UPDATE_POD_LABEL;
    assert_eq!(actions(true), [pods | ActionType::UPDATE_POD_TOLERATION, nodes]);
    assert_eq!(actions(false), [pods, nodes]);
}
