//! Tests of the pods that events move, and of their new places.

use std::cell::RefCell;

use super::fixture::{Answer, Bench, Fake, NODE_ADD, NODE_LABEL, NODE_TAINT, POD_DELETE, fake, setup};
use crate::config::Gate;
use crate::model::{ClusterEvent, EventObjects, Object};
use crate::testing::{node, pod};

/// Creates a queue in which the attempt of pod `a` failed: the plugins `unschedulable` rejected it, and the plugins `pending`
/// returned `Pending`.
fn rejected(plugins: Vec<Fake>, unschedulable: &[&str], pending: &[&str]) -> Bench {
    let mut q = setup(plugins).build();
    q.add(pod("a"));
    q.pop();
    q.fail_pending("a", unschedulable, pending);
    q.calls();
    q
}

/// Checks the effect of a new node on a pod that is backing off, and which hints are called.
#[track_caller]
fn check_decision(answers: &[(&'static str, Answer)], unschedulable: &[&str], pending: &[&str], calls: &str, to: &str) {
    let plugins = answers.iter().map(|(name, answer)| fake(name).on(NODE_ADD, *answer).on(NODE_TAINT, Answer::Skip));
    let q = rejected(plugins.collect(), unschedulable, pending);
    q.event(&NODE_ADD);
    assert_eq!(q.calls(), calls);
    q.check(to);
}

#[test]
fn hints_decide_the_queue() {
    use Answer::{Error, None, Queue, Skip};
    let check = check_decision;
    check(&[("A", Queue)], &["A"], &[], "A a", "backoff: a");
    check(&[("A", Skip)], &["A"], &[], "A a", "unschedulable: a");
    check(&[("A", Error)], &["A"], &[], "A a", "backoff: a");
    check(&[("A", None)], &["A"], &[], "", "backoff: a");
    // Only plugins that rejected the pod are asked.
    check(&[("A", Skip), ("B", Queue)], &["A"], &[], "A a", "unschedulable: a");
    // The first `Queue` decides, unless a pending plugin could make the pod more urgent.
    check(&[("A", Queue), ("B", Queue)], &["A", "B"], &[], "A a", "backoff: a");
    check(&[("A", Skip), ("B", Queue)], &["A", "B"], &[], "A a, B a", "backoff: a");
    check(&[("A", Queue), ("B", Queue)], &["A"], &["B"], "A a, B a", "active: a");
    check(&[("A", Queue), ("B", Skip)], &["A"], &["B"], "A a, B a", "backoff: a");
    check(&[("A", Queue), ("B", Queue)], &["B"], &["A"], "A a", "active: a");
    check(&[("A", Error)], &[], &["A"], "A a", "active: a");
    check(&[("A", None)], &[], &["A"], "", "active: a");
    check(&[("A", Skip)], &[], &["A"], "A a", "unschedulable: a");
    // A pending plugin may also be among the rejecting ones.
    check(&[("A", Queue)], &["A"], &["A"], "A a", "active: a");
}

#[test]
fn unregistered_events_move_no_pod() {
    let q = rejected(vec![fake("A").on(NODE_ADD, Answer::Queue), fake("B").on(NODE_TAINT, Answer::Queue)], &["A"], &[]);
    q.event(&POD_DELETE);
    q.event(&NODE_LABEL);
    assert_eq!(q.calls(), "");
    q.check("unschedulable: a");
    // The event is registered, but not by the plugin that rejected the pod.
    let q = rejected(vec![fake("A").on(NODE_ADD, Answer::Queue), fake("B").on(NODE_LABEL, Answer::Queue)], &["A"], &[]);
    q.event(&NODE_LABEL);
    assert_eq!(q.calls(), "");
    q.check("unschedulable: a");
}

#[test]
fn node_add_registration_includes_taint_updates() {
    let check = |plugin: Fake, calls: &str, to: &str| {
        let q = rejected(vec![plugin], &["A"], &[]);
        q.event(&NODE_TAINT);
        assert_eq!(q.calls(), calls);
        q.check(to);
    };
    check(fake("A").on(NODE_ADD, Answer::Skip), "", "backoff: a");
    check(fake("A").on(NODE_ADD, Answer::Skip).on(NODE_TAINT, Answer::Skip), "A a", "unschedulable: a");
    check(fake("A").on(NODE_LABEL, Answer::Skip), "", "unschedulable: a");
}

#[test]
fn plugin_without_registration_gets_every_event() {
    for event in [NODE_ADD, NODE_LABEL, POD_DELETE] {
        let q = rejected(vec![fake("A").silent()], &["A"], &[]);
        q.event(&event);
        q.check("backoff: a");
    }
    // A plugin that registers an empty list of events gets none.
    for event in [NODE_ADD, NODE_LABEL, POD_DELETE] {
        let q = rejected(vec![fake("A"), fake("B").silent()], &["A"], &[]);
        q.event(&event);
        q.check("unschedulable: a");
    }
}

#[test]
fn any_event_requeues_pods_rejected_by_extenders() {
    let reject = |extenders: bool| {
        let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).options(|o| o.extenders = extenders).build();
        q.reject(pod("a"), &["Extender"]);
        q.event(&POD_DELETE);
        q
    };
    reject(true).check("backoff: a");
    reject(false).check("unschedulable: a");
}

#[test]
fn event_after_the_backoff_moves_the_pod_to_active_q() {
    let q = rejected(vec![fake("A").on(NODE_ADD, Answer::Queue)], &["A"], &[]);
    q.advance_ms(2000);
    q.event(&NODE_ADD);
    q.check("active: a");
}

#[test]
fn events_move_only_pods_that_pass_the_pre_check() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).build();
    for name in ["a", "b", "c"] {
        q.reject(pod(name), &["A"]);
    }
    let asked = RefCell::new(Vec::new());
    let check = |pod: &crate::model::PodInfo| {
        asked.borrow_mut().push(pod.name().to_owned());
        pod.name() != "b"
    };
    q.queue.move_all(&NODE_ADD, &EventObjects::default(), q.now(), Some(&check));
    assert_eq!(asked.into_inner(), ["a", "b", "c"]);
    q.check("backoff: a c; unschedulable: b");
}

#[test]
fn wildcard_event_moves_every_pod_or_its_own_pod() {
    let rejected = || rejected(vec![fake("A").on(NODE_ADD, Answer::Skip)], &["A"], &[]);
    let wildcard = ClusterEvent::FORCE_ACTIVATE;
    let meant = |object: Object| EventObjects { old: None, new: Some(object) };
    let check = |objects: EventObjects, to: &str| {
        let q = rejected();
        q.queue.move_all(&wildcard, &objects, q.now(), None);
        q.check(to);
    };
    check(EventObjects::default(), "backoff: a");
    check(meant(Object::Pod(pod("a").build())), "backoff: a");
    check(meant(Object::Pod(pod("a").uid("other").build())), "unschedulable: a");
    check(meant(Object::Node(node("a").build())), "unschedulable: a");
}

#[test]
fn hints_of_the_pods_profile_are_called() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)])
        .profile("other", [fake("A").on(NODE_ADD, Answer::Skip), fake("C").on(NODE_LABEL, Answer::Queue)])
        .build();
    q.reject(pod("a"), &["A"]);
    q.reject(pod("b").scheduler("other"), &["A"]);
    q.reject(pod("c").scheduler("other"), &["C"]);
    q.event(&NODE_ADD);
    q.check("backoff: a; unschedulable: b c");
    q.event(&NODE_LABEL);
    q.check("backoff: a c; unschedulable: b");
}

#[test]
fn activated_pods_skip_the_backoff() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).build();
    q.reject(pod("a"), &["A"]);
    q.reject(pod("b"), &["A"]);
    q.event(&NODE_ADD);
    q.reject(pod("c"), &["A"]);
    // Pods with errors back off, too, but are not popped early.
    q.add(pod("d").priority(1));
    assert_eq!(q.pop(), "d");
    q.fail("d", &[]);
    q.check("backoff: a b; error: d; unschedulable: c");
    q.activate(&["b", "c", "d", "nobody"]);
    q.check("active: b c d; backoff: a");
    q.activate(&["b"]);
    q.check("active: b c d; backoff: a");
}

#[test]
fn pop_specific_takes_any_pod_that_is_not_gated() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue).gates()]).build();
    q.reject(pod("a"), &["A"]);
    q.event(&NODE_ADD);
    q.reject(pod("b"), &["A"]);
    q.add(pod("c").priority(5));
    q.add(pod("d"));
    q.close("A", "gated");
    q.add(pod("gated"));
    q.check("active: c d; backoff: a; unschedulable: b gated");
    for name in ["a", "b", "d"] {
        assert_eq!(q.pop_specific(name), name);
    }
    for name in ["a", "gated", "nobody"] {
        assert_eq!(q.pop_specific(name), "");
    }
    q.check("active: c; unschedulable: gated; in flight: a b d");
    assert_eq!(q.queue.scheduling_cycle(), 5);
}

#[test]
fn pods_go_by_priority_then_by_arrival() {
    let mut q = setup([]).build();
    for (name, priority) in [("a", 1), ("b", 2), ("c", 1), ("d", 2)] {
        q.add(pod(name).priority(priority));
    }
    q.advance_ms(1);
    q.add(pod("e").priority(1));
    q.add(pod("f").priority(3));
    let order: Vec<String> = std::iter::from_fn(|| Some(q.pop()).filter(|name| !name.is_empty())).collect();
    assert_eq!(order, ["f", "b", "d", "a", "c", "e"]);
}

#[test]
fn backoff_q_is_ordered_by_expiry_window_then_as_active_q() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).build();
    // b and c expire in the same second, a one later.
    q.reject(pod("b"), &["A"]);
    q.advance_ms(200);
    q.reject(pod("c").priority(1), &["A"]);
    q.advance_ms(900);
    q.reject(pod("a").priority(9), &["A"]);
    q.event(&NODE_ADD);
    q.check("backoff: a b c");
    assert_eq!([q.pop(), q.pop(), q.pop(), q.pop()], ["c", "b", "a", ""]);
}

#[test]
fn without_popping_backoff_q_is_ordered_by_expiry_alone() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).gate(Gate::SchedulerPopFromBackoffQ, false).build();
    q.queue.run(q.now());
    q.reject(pod("b"), &["A"]);
    q.advance_ms(200);
    q.reject(pod("c").priority(1), &["A"]);
    q.event(&NODE_ADD);
    assert_eq!(q.pop(), "");
    q.check("backoff: b c");
    // b's backoff ends at 1000 ms, c's at 1200 ms; flushes are at whole seconds after the start.
    q.flush_at_ms(1000);
    q.check("backoff: b c");
    q.flush_at_ms(2000);
    q.check("active: b c");
}
