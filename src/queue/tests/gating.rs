//! Tests of pods that a plugin keeps out of activeQ.

use super::fixture::{Answer, Bench, Fake, NODE_ADD, NODE_LABEL, POD_DELETE, fake, ms, setup};
use crate::config::Gate;
use crate::model::ClusterEvent;
use crate::testing::pod;

/// Plugins of which G and H gate pods. G registers for labels, H for new nodes.
fn plugins() -> [Fake; 3] {
    [
        fake("A").on(NODE_ADD, Answer::Queue),
        fake("G").gates().on(NODE_LABEL, Answer::Queue),
        fake("H").gates().on(NODE_ADD, Answer::Queue),
    ]
}

/// A queue with the pod `a`, which `gate` gates.
fn gated(gate: &str) -> Bench {
    let q = setup(plugins()).build();
    q.close(gate, "a");
    q.add(pod("a"));
    q.check("unschedulable: a");
    q.calls();
    q
}

fn gate_of(q: &Bench) -> Option<String> {
    q.queue.dump().pods[0].gating_plugin.as_deref().map(str::to_owned)
}

#[test]
fn first_rejecting_pre_enqueue_plugin_gates_the_pod() {
    let q = setup(plugins()).build();
    q.close("H", "a");
    q.add(pod("a"));
    assert_eq!((q.calls().as_str(), gate_of(&q).as_deref()), ("G a, H a", Some("H")));
    q.close("G", "b");
    q.close("H", "b");
    q.add(pod("b"));
    assert_eq!(q.calls(), "G b");
    q.add(pod("c"));
    assert_eq!(q.calls(), "G c, H c");
    q.check("active: c; unschedulable: a b");
}

#[test]
fn only_events_of_the_gating_plugin_ungate() {
    let check = |event: &ClusterEvent, opened: bool, calls: &str, to: &str| {
        let q = gated("G");
        if opened {
            q.open("G", "a");
        }
        q.event(event);
        assert_eq!(q.calls(), calls);
        q.check(to);
    };
    // First G's hint is called for the event, then `PreEnqueue` of the plugins, beginning with the gating plugin.
    check(&NODE_LABEL, true, "G a, G a, H a", "active: a");
    check(&NODE_LABEL, false, "G a, G a", "unschedulable: a");
    check(&NODE_ADD, true, "", "unschedulable: a");
    check(&POD_DELETE, true, "", "unschedulable: a");
    check(&ClusterEvent::UNSCHEDULABLE_TIMEOUT, true, "", "unschedulable: a");
}

#[test]
fn gating_plugin_is_called_first() {
    let q = gated("H");
    q.open("H", "a");
    q.close("G", "a");
    q.event(&NODE_ADD);
    // H's hint is called, then `PreEnqueue` of H, and then `PreEnqueue` of G, which now rejects the pod.
    assert_eq!(q.calls(), "H a, H a, G a");
    assert_eq!(gate_of(&q).as_deref(), Some("G"));
    q.event(&NODE_ADD);
    assert_eq!(q.calls(), "");
    q.open("G", "a");
    q.event(&NODE_LABEL);
    q.check("active: a");
}

#[test]
fn activation_does_not_ungate_a_pod() {
    let q = gated("G");
    q.activate(&["a"]);
    q.check("unschedulable: a");
    assert_eq!(q.calls(), "G a");
    q.open("G", "a");
    q.activate(&["a"]);
    q.check("active: a");
}

#[test]
fn initial_attempt_timestamp_is_set_when_ungated() {
    let mut q = gated("G");
    q.advance_ms(500);
    q.open("G", "a");
    q.activate(&["a"]);
    assert_eq!(q.pop(), "a");
    let info = q.popped("a");
    assert_eq!((info.timestamp, info.initial_attempt_timestamp), (ms(0), Some(ms(500))));
    assert!(!info.is_gated());
}

#[test]
fn requeued_pod_may_be_gated() {
    for pop_from_backoff in [true, false] {
        let mut q = setup(plugins()).gate(Gate::SchedulerPopFromBackoffQ, pop_from_backoff).build();
        q.queue.run(q.now());
        q.add(pod("a"));
        q.pop();
        q.close("G", "a");
        q.event(&NODE_ADD);
        q.fail("a", &["A"]);
        if pop_from_backoff {
            // Pods in podBackoffQ may be popped at any time, so the gate is checked before they enter it.
            q.check("unschedulable: a");
        } else {
            // The gate is checked when the pod leaves podBackoffQ.
            q.check("backoff: a");
            q.flush_at_ms(3000);
            q.check("unschedulable: a");
        }
        assert_eq!(gate_of(&q).as_deref(), Some("G"));
    }
}

#[test]
fn leaving_backoff_q_runs_pre_enqueue_only_without_popping() {
    let check = |pop_from_backoff: bool, calls: &str| {
        let mut q = setup(plugins()).gate(Gate::SchedulerPopFromBackoffQ, pop_from_backoff).build();
        q.queue.run(q.now());
        q.reject(pod("a"), &["A"]);
        q.event(&NODE_ADD);
        q.check("backoff: a");
        q.calls();
        q.flush_at_ms(3000);
        q.check("active: a");
        assert_eq!(q.calls(), calls);
    };
    check(true, "");
    check(false, "G a, H a");
}

#[test]
fn gated_recreated_pod_does_not_replace_an_active_one() {
    let q = setup(plugins()).build();
    q.add(pod("a").uid("old"));
    q.close("G", "a");
    q.add(pod("a").uid("new"));
    q.check("active: a");
    assert_eq!(q.queue.places()[0].0.uid(), "old");
    q.open("G", "a");
    q.add(pod("a").uid("new"));
    q.check("active: a");
    assert_eq!(q.queue.places()[0].0.uid(), "new");
    q.check_pending([1, 0, 0, 0]);
}

#[test]
fn recreated_pod_replaces_an_unschedulable_one() {
    let mut q = setup(plugins()).build();
    q.reject(pod("a").uid("old"), &["A"]);
    q.add(pod("a").uid("new"));
    q.check("active: a");
    q.delete(pod("a"));
    q.reject(pod("a").uid("old"), &["A"]);
    q.close("G", "a");
    q.add(pod("a").uid("new"));
    q.check("unschedulable: a");
    assert_eq!(q.queue.places()[0].0.uid(), "new");
    q.check_pending([0, 0, 0, 1]);
}

#[test]
fn pods_of_a_profile_without_pre_enqueue_are_not_gated() {
    let q = setup(plugins()).profile("other", []).build();
    q.close("G", "a");
    q.add(pod("a").scheduler("other"));
    assert_eq!(q.calls(), "");
    q.check("active: a");
}
