//! Tests of pods that change or are deleted while they are queued or being scheduled.

use serde_json::json;

use super::fixture::{Answer, Bench, NODE_ADD, fake, setup};
use crate::config::Gate;
use crate::framework::{NominatingInfo, Nominator};
use crate::model::{ActionType, ClusterEvent, EventResource};
use crate::testing::{PodFixture, pod};

const LABEL: ClusterEvent = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_LABEL);
const TOLERATION: ClusterEvent = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_TOLERATION);
const ANY: ClusterEvent = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE);

fn queue() -> Bench {
    setup([
        fake("A").on(NODE_ADD, Answer::Queue),
        fake("Any").on(ANY, Answer::Queue),
        fake("L").on(LABEL, Answer::Queue),
        fake("S").on(LABEL, Answer::Skip),
        fake("T").on(TOLERATION, Answer::Queue),
    ])
    .build()
}

fn labelled() -> PodFixture {
    pod("a").label("x", "y")
}

/// Checks the place of a pod in unschedulablePods after it changed.
#[track_caller]
fn check_change(plugins: &[&str], pending: &[&str], new: PodFixture, calls: &str, to: &str) {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    q.fail_pending("a", plugins, pending);
    q.update(pod("a"), new);
    assert_eq!(q.calls(), calls);
    q.check(to);
}

#[test]
fn own_update_requeues_the_pod_by_hint() {
    check_change(&["L"], &[], labelled(), "L a", "backoff: a");
    check_change(&["S"], &[], labelled(), "S a", "unschedulable: a");
    check_change(&["T"], &[], labelled(), "", "unschedulable: a");
    check_change(&[], &["L"], labelled(), "L a", "active: a");
    check_change(&["Any"], &[], labelled(), "Any a", "backoff: a");
    check_change(&["A"], &[], labelled(), "", "unschedulable: a");
    // This change has no event of its own.
    check_change(&["Any"], &[], pod("a").set("metadata.annotations", json!({"x": "y"})), "Any a", "backoff: a");
    check_change(&["L"], &[], pod("a").set("metadata.annotations", json!({"x": "y"})), "", "unschedulable: a");
    // The changes are checked one by one, until one helps.
    check_change(&["S", "T"], &[], labelled().toleration("k", "", ""), "S a, T a", "backoff: a");
    check_change(&["L", "T"], &[], labelled().toleration("k", "", ""), "L a", "backoff: a");
}

#[test]
fn skipped_update_still_replaces_the_pod() {
    let mut q = queue();
    q.reject(pod("a"), &["A"]);
    q.update(pod("a"), labelled());
    q.activate(&["a"]);
    q.pop();
    assert_eq!(q.popped("a").pod.pod().labels()["x"], "y");
}

#[test]
fn without_popping_backoff_q_the_most_urgent_hint_wins() {
    let plugins = [fake("L").on(LABEL, Answer::Queue), fake("T").on(TOLERATION, Answer::Queue)];
    let check = |pop_from_backoff: bool, to: &str| {
        let mut q = setup(plugins.clone()).gate(Gate::SchedulerPopFromBackoffQ, pop_from_backoff).build();
        q.add(pod("a"));
        q.pop();
        q.fail_pending("a", &["L"], &["T"]);
        q.update(pod("a"), labelled().toleration("k", "", ""));
        q.check(to);
    };
    check(true, "backoff: a");
    check(false, "active: a");
}

#[test]
fn update_in_flight_counts_when_the_pod_returns() {
    let check = |plugins: &[&str], to: &str| {
        let mut q = queue();
        q.add(pod("a"));
        q.pop();
        q.update(pod("a"), labelled());
        q.check("in flight: a");
        assert_eq!(q.queue.dump().in_flight_events, 1);
        q.fail("a", plugins);
        q.check(to);
    };
    check(&["L"], "backoff: a");
    check(&["T"], "unschedulable: a");
}

#[test]
fn update_in_active_or_backoff_q_replaces_in_place() {
    let mut q = queue();
    q.add(pod("c"));
    q.add(pod("a"));
    q.update(pod("a"), pod("a").priority(7).label("new", "a"));
    assert_eq!(q.pop(), "a");
    assert_eq!(q.popped("a").pod.pod().labels()["new"], "a");
    q.fail("a", &[]);
    q.check("active: c; error: a");
    q.update(pod("a").priority(7), pod("a").label("new", "b"));
    q.check("active: c; error: a");
    assert_eq!(q.queue.places()[1].0.pod().labels()["new"], "b");
    // The priority changes the order of podBackoffQ, too.
    assert_eq!(q.pop(), "c");
    q.event(&NODE_ADD);
    q.fail("c", &["A"]);
    q.reject(pod("d"), &["A"]);
    q.event(&NODE_ADD);
    q.check("backoff: c d; error: a");
    q.update(pod("d"), pod("d").priority(7));
    assert_eq!(q.pop(), "d");
}

#[test]
fn update_of_an_unknown_pod_adds_it() {
    let q = queue();
    q.update(pod("a"), labelled());
    q.check("active: a");
    q.check_metric("scheduler_queue_incoming_pods_total{event=\"UnschedulablePodUpdate\",queue=\"active\"}", Some("1"));
}

#[test]
fn deleted_pod_leaves_every_queue() {
    let mut q = queue();
    q.reject(pod("unschedulable"), &["A"]);
    q.reject(pod("error"), &[]);
    q.add(pod("backoff"));
    q.pop();
    q.event(&NODE_ADD);
    q.fail("backoff", &["A"]);
    q.add(pod("active"));
    q.add(pod("flying").priority(1));
    q.pop();
    q.check("active: active; backoff: backoff unschedulable; error: error; in flight: flying");
    for name in ["unschedulable", "error", "backoff", "active", "flying", "nobody"] {
        q.delete(pod(name));
    }
    q.check("in flight: flying");
    q.check_pending([0, 0, 0, 0]);
}

#[test]
fn update_renews_the_signature() {
    let signature = |on: bool, change: bool| {
        let mut q = setup([]).gate(Gate::OpportunisticBatching, on).build();
        q.add(pod("a"));
        if change {
            q.update(pod("a"), labelled());
        }
        q.pop();
        q.popped("a").signature.clone()
    };
    // A filter plugin that cannot sign makes all pods unsignable. The profile in `signature` has no such plugin, and the profile
    // below has one.
    assert_eq!(signature(false, false), None);
    let (plain, changed) = (signature(true, false), signature(true, true));
    assert!(plain.is_some() && changed.is_some() && plain != changed, "{plain:?} {changed:?}");
    let mut q = setup([fake("A")]).build();
    q.add(pod("a"));
    q.pop();
    assert_eq!(q.popped("a").signature, None);
}

#[test]
fn update_and_delete_change_the_nomination() {
    let nominated = |q: &Bench, node: &str| -> Vec<String> {
        q.queue.nominator().nominated_pods_for_node(node).iter().map(|pod| pod.name().to_owned()).collect()
    };
    let mut q = queue();
    q.add(pod("a").nominated("n1"));
    assert_eq!(nominated(&q, "n1"), ["a"]);
    q.update(pod("a").nominated("n1"), pod("a").nominated("n2"));
    assert_eq!((nominated(&q, "n1"), nominated(&q, "n2")), (vec![], vec!["a".to_owned()]));
    q.delete(pod("a"));
    assert_eq!(nominated(&q, "n2"), [""; 0]);
    // A nomination by preemption survives updates that do not change it.
    q.reject(pod("b"), &["A"]);
    let held = q.info(pod("b"));
    q.queue.nominator().add_nominated_pod(&held, &NominatingInfo::Override("n3".into()));
    q.update(pod("b"), pod("b").label("x", "y"));
    assert_eq!(nominated(&q, "n3"), ["b"]);
    assert_eq!(q.queue.nominator().nominated_pods_for_node("n3")[0].pod().labels()["x"], "y");
    // Other moves between queues do not read the nominated node from the status.
    q.queue.nominator().delete_nominated_pod_if_exists(&held);
    q.event(&NODE_ADD);
    q.check("backoff: b");
    assert!(!q.queue.nominator().has_nominated_pods());
}

#[test]
fn gated_pod_is_not_nominated() {
    let q = setup([fake("G").gates().on(NODE_ADD, Answer::Queue)]).build();
    q.close("G", "a");
    q.add(pod("a").nominated("n1"));
    q.check("unschedulable: a");
    assert!(!q.queue.nominator().has_nominated_pods());
}
