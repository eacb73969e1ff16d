//! Tests with `SchedulerQueueingHints` off, as when an older version is emulated.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use super::fixture::{Answer, Bench, NODE_ADD, NODE_LABEL, NODE_TAINT, POD_DELETE, fake, setup};
use crate::config::Gate;
use crate::model::{ActionType, ClusterEvent, EventResource};
use crate::testing::{PodFixture, pod};

const POD_ALL: ClusterEvent = ClusterEvent::new(EventResource::Pod, ActionType::ALL);

fn queue() -> Bench {
    setup([
        fake("A").on(NODE_ADD, Answer::Skip),
        fake("G").gates().on(NODE_LABEL, Answer::Skip),
        fake("P").on(POD_ALL, Answer::Skip),
        fake("PodTopologySpread").on(POD_ALL, Answer::Skip),
    ])
    .gate(Gate::SchedulerQueueingHints, false)
    .build()
}

#[test]
fn hints_are_not_called() {
    let mut q = queue();
    q.reject(pod("a"), &["A"]);
    q.calls();
    q.event(&NODE_ADD);
    // Only `PreEnqueue` runs, before the pod enters podBackoffQ.
    assert_eq!(q.calls(), "G a");
    q.check("backoff: a");
    q.reject(pod("b"), &["A"]);
    q.event(&NODE_LABEL);
    q.event(&NODE_TAINT);
    q.check("backoff: a b");
}

#[test]
fn in_flight_pods_are_not_tracked() {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    q.event(&NODE_ADD);
    q.check("");
    assert_eq!(q.queue.dump().in_flight_events, 0);
    q.queue.done("a");
    // A second pod of the same UID is not noticed.
    q.add(pod("a"));
    assert_eq!(q.pop(), "a");
}

/// Checks the place of a rejected pod after something happened during its attempt.
#[track_caller]
fn check_return(happens: impl FnOnce(&Bench), plugins: &[&str], to: &str) {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    happens(&q);
    q.fail("a", plugins);
    q.check(to);
}

#[test]
fn any_move_during_the_attempt_requeues_the_pod() {
    check_return(|_| {}, &["A"], "unschedulable: a");
    check_return(|_| {}, &[], "error: a");
    check_return(|q| q.event(&NODE_ADD), &["A"], "backoff: a");
    check_return(|q| q.event(&NODE_ADD), &["P"], "backoff: a");
    check_return(|q| q.event(&NODE_LABEL), &["A"], "backoff: a");
    check_return(|q| q.activate(&["a"]), &["A"], "backoff: a");
    check_return(|q| q.activate(&["nobody"]), &["A"], "backoff: a");
    // No plugin registered for this event.
    check_return(|q| q.event(&ClusterEvent::new(EventResource::CsiNode, ActionType::ADD)), &["A"], "unschedulable: a");
}

#[test]
fn move_before_the_attempt_does_not_requeue_the_pod() {
    let mut q = queue();
    q.event(&NODE_ADD);
    q.reject(pod("a"), &["A"]);
    q.check("unschedulable: a");
}

/// Checks the place of a pod in unschedulablePods after it changed.
#[track_caller]
fn check_change(waited_ms: u64, new: PodFixture, to: &str) {
    let mut q = queue();
    q.reject(pod("a"), &["A"]);
    q.advance_ms(waited_ms);
    q.update(pod("a"), new);
    q.check(to);
    assert_eq!(q.queue.places()[0].0.pod().metadata.resource_version.as_deref(), Some("2"));
}

#[test]
fn changed_pod_is_requeued() {
    let changed = || pod("a").set("metadata.resourceVersion", json!("2"));
    check_change(0, changed(), "unschedulable: a");
    check_change(0, changed().nominated("n"), "unschedulable: a");
    check_change(0, changed().label("x", "y"), "backoff: a");
    check_change(3000, changed().label("x", "y"), "active: a");
}

#[test]
fn update_during_the_attempt_adds_the_pod_again() {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    // Upstream does not know that the pod is in flight, and adds it.
    q.update(pod("a"), pod("a").label("x", "y"));
    q.check("active: a");
}

#[test]
fn pre_enqueue_still_gates_pods() {
    let mut q = queue();
    q.close("G", "a");
    q.add(pod("a"));
    q.event(&NODE_ADD);
    q.check("unschedulable: a");
    q.open("G", "a");
    q.event(&NODE_LABEL);
    q.check("active: a");
    q.pop();
    q.close("G", "a");
    q.event(&NODE_ADD);
    q.fail("a", &["A"]);
    q.check("unschedulable: a");
}

fn affine(name: &str, term: &serde_json::Value) -> PodFixture {
    let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    pod(name).set("spec.affinity", affinity)
}

/// Checks which waiting pods the assigned pod `x` in namespace `ns` with label app=web moves.
#[track_caller]
fn check_assigned(event: Option<ActionType>, expected: &str) {
    let mut q = queue();
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "ns", "labels": {"team": "t"}}})).expect("a namespace");
    q.listers.put(Arc::new(namespace));
    let web = json!({"matchLabels": {"app": "web"}});
    let by_team = json!({"matchLabels": {"team": "t"}});
    let term = |selector: &serde_json::Value, more: serde_json::Value| {
        let mut built = json!({"topologyKey": "zone", "labelSelector": selector});
        built.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        built
    };
    q.reject(pod("plain"), &["P"]);
    q.reject(pod("spread-here").namespace("ns"), &["PodTopologySpread"]);
    q.reject(pod("spread-elsewhere"), &["PodTopologySpread"]);
    q.reject(affine("own-namespace", &term(&web, json!({}))).namespace("ns"), &["P"]);
    q.reject(affine("wrong-namespace", &term(&web, json!({}))), &["P"]);
    q.reject(affine("listed", &term(&web, json!({"namespaces": ["ns"]}))), &["P"]);
    q.reject(affine("selected", &term(&web, json!({"namespaceSelector": by_team}))), &["P"]);
    q.reject(affine("wrong-label", &term(&json!({"matchLabels": {"app": "db"}}), json!({}))).namespace("ns"), &["P"]);
    q.reject(affine("no-selector", &json!({"topologyKey": "zone"})).namespace("ns"), &["P"]);
    q.reject(affine("unreadable", &term(&json!({"matchLabels": {"!": "web"}}), json!({}))).namespace("ns"), &["P"]);
    let assigned = |labels: &str| pod("x").namespace("ns").label("app", labels).on("n").build();
    match event {
        None => q.queue.assigned_pod_added(&assigned("web"), q.now()),
        Some(action) => q.queue.assigned_pod_updated(
            &assigned("old"),
            &assigned("web"),
            &ClusterEvent::new(EventResource::AssignedPod, action),
            q.now(),
        ),
    }
    let moved: Vec<String> = q
        .queue
        .places()
        .into_iter()
        .filter(|(_, place)| *place == crate::queue::Place::Backoff)
        .map(|(pod, _)| pod.name().to_owned())
        .collect();
    assert_eq!(moved.join(" "), expected, "{event:?}");
}

#[test]
fn assigned_pod_moves_pods_with_affinity_or_spread_terms() {
    let crossing = "listed selected own-namespace spread-here";
    check_assigned(None, crossing);
    check_assigned(Some(ActionType::UPDATE_POD_LABEL), crossing);
    // A pod that is scaled down frees resources, which may help any pod.
    let everybody = "listed plain selected spread-elsewhere wrong-namespace no-selector own-namespace spread-here \
                     unreadable wrong-label";
    check_assigned(Some(ActionType::UPDATE_POD_SCALE_DOWN), everybody);
}

#[test]
fn assigned_pod_deletion_moves_every_pod() {
    let mut q = queue();
    q.reject(pod("plain"), &["P"]);
    q.event(&POD_DELETE);
    q.check("backoff: plain");
}

#[test]
fn with_hints_assigned_pods_follow_hints() {
    let mut q = setup([fake("P").on(POD_ALL, Answer::Queue)]).build();
    q.reject(pod("a"), &["P"]);
    q.reject(pod("b"), &["P"]);
    q.queue.assigned_pod_added(&pod("x").on("n").build(), q.now());
    q.check("backoff: a b");
    q.reject(pod("c"), &["P"]);
    let label = ClusterEvent::new(EventResource::AssignedPod, ActionType::UPDATE_POD_LABEL);
    q.queue.assigned_pod_updated(&pod("x").on("n").build(), &pod("x").on("n").build(), &label, q.now());
    q.check("backoff: a b c");
}
