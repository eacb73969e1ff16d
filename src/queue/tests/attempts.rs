//! Tests of attempts: pop, events during the attempt, and the pod's return.

use super::fixture::{Answer, Bench, NODE_ADD, NODE_LABEL, NODE_TAINT, POD_DELETE, fake, setup};
use crate::config::Gate;
use crate::queue::Place;
use crate::testing::pod;

/// Creates a queue with four plugins. The hints of A and B return `Queue` for new nodes. The hint of L returns `Queue` for
/// changed node labels. The hints of S return `Skip` for new nodes and for changed taints.
fn queue() -> Bench {
    setup([
        fake("A").on(NODE_ADD, Answer::Queue),
        fake("B").on(NODE_ADD, Answer::Queue),
        fake("L").on(NODE_LABEL, Answer::Queue),
        fake("S").on(NODE_ADD, Answer::Skip).on(NODE_TAINT, Answer::Skip),
    ])
    .build()
}

/// Checks the place of a pod that comes back from an attempt during which these events arrived.
#[track_caller]
fn check_return(events: &[&crate::model::ClusterEvent], plugins: &[&str], pending: &[&str], calls: &str, to: &str) {
    let mut q = queue();
    q.add(pod("a"));
    assert_eq!(q.pop(), "a");
    for event in events {
        q.event(event);
    }
    assert_eq!(q.calls(), "");
    q.fail_pending("a", plugins, pending);
    assert_eq!(q.calls(), calls);
    q.check(to);
}

#[test]
fn events_during_the_attempt_decide_where_the_pod_goes() {
    check_return(&[], &["A"], &[], "", "unschedulable: a");
    check_return(&[&NODE_ADD], &["A"], &[], "A a", "backoff: a");
    check_return(&[&NODE_ADD], &["S"], &[], "S a", "unschedulable: a");
    check_return(&[&NODE_ADD], &["L"], &[], "", "unschedulable: a");
    check_return(&[&NODE_ADD], &[], &["A"], "A a", "active: a");
    check_return(&[&NODE_ADD, &NODE_LABEL], &["L"], &[], "L a", "backoff: a");
    // The first event makes the pod worth a retry, the second one makes it urgent.
    check_return(&[&NODE_ADD, &NODE_LABEL], &["A"], &["L"], "A a, L a", "active: a");
    check_return(&[&NODE_ADD, &NODE_ADD], &["A"], &[], "A a", "backoff: a");
    // No plugin rejected the pod, so an error did.
    check_return(&[], &[], &[], "", "error: a");
    check_return(&[&NODE_ADD], &[], &[], "", "error: a");
}

#[test]
fn event_counts_for_pods_popped_before_it() {
    let mut q = queue();
    for name in ["a", "b", "c"] {
        q.add(pod(name));
    }
    assert_eq!(q.pop(), "a");
    q.event(&NODE_ADD);
    assert_eq!(q.pop(), "b");
    q.event(&NODE_LABEL);
    assert_eq!(q.pop(), "c");
    q.check("in flight: a b c");
    assert_eq!(q.queue.dump().in_flight_events, 2);
    q.fail("b", &["A"]);
    q.fail("c", &["L"]);
    q.check("unschedulable: b c; in flight: a");
    assert_eq!(q.queue.dump().in_flight_events, 2);
    q.fail("a", &["A"]);
    q.check("backoff: a; unschedulable: b c");
    assert_eq!(q.queue.dump().in_flight_events, 0);
}

#[test]
fn in_flight_events_are_dropped_with_the_last_pod() {
    let mut q = queue();
    q.event(&NODE_ADD);
    assert_eq!(q.queue.dump().in_flight_events, 0);
    for name in ["a", "b"] {
        q.add(pod(name));
        q.pop();
        q.event(&NODE_ADD);
        // No plugin registered for this event.
        q.event(&POD_DELETE);
    }
    assert_eq!(q.queue.dump().in_flight_events, 2);
    q.queue.done("a");
    assert_eq!(q.queue.dump().in_flight_events, 1);
    q.queue.done("a");
    q.queue.done("nobody");
    q.check("in flight: b");
    q.queue.done("b");
    assert_eq!(q.queue.dump().in_flight_events, 0);
    q.check("");
}

#[test]
fn activation_during_the_attempt_requeues_only_that_pod() {
    let mut q = queue();
    for name in ["a", "b"] {
        q.add(pod(name));
        q.pop();
    }
    q.activate(&["a", "nobody"]);
    q.fail("a", &["S"]);
    q.fail("b", &["S"]);
    q.check("backoff: a; unschedulable: b");
}

#[test]
fn activation_by_name_means_the_pod_popped_last() {
    let mut q = queue();
    q.add(pod("a").uid("old"));
    q.pop();
    let old = q.popped("a").clone();
    q.add(pod("a").uid("new"));
    q.pop();
    q.activate(&["a"]);
    q.queue.done("old");
    q.fail("a", &["S"]);
    q.check("backoff: a");
    assert_eq!(old.pod.uid(), "old");
}

#[test]
fn rejections_reset_the_error_count() {
    let mut q = queue();
    q.add(pod("a"));
    let outcomes: [&[&str]; 6] = [&["A"], &[], &[], &["A"], &["A"], &[]];
    let mut counts = Vec::new();
    for plugins in outcomes {
        q.activate(&["a"]);
        assert_eq!(q.pop(), "a");
        let info = q.popped("a");
        counts.push((info.attempts, info.unschedulable_count, info.consecutive_errors_count));
        q.fail("a", plugins);
    }
    assert_eq!(counts, [(1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 1, 2), (5, 2, 0), (6, 3, 0)]);
}

#[test]
fn initial_attempt_timestamp_is_kept() {
    let mut q = queue();
    q.advance_ms(70);
    q.add(pod("a"));
    q.advance_ms(30);
    q.pop();
    q.fail("a", &["A"]);
    q.advance_ms(5000);
    q.activate(&["a"]);
    q.pop();
    assert_eq!(q.popped("a").initial_attempt_timestamp, Some(super::fixture::ms(70)));
    assert_eq!(q.popped("a").timestamp, super::fixture::ms(100));
}

/// Checks that a pod that is queued already is not taken back, and nevertheless is no longer in flight.
#[track_caller]
fn check_present(queue_it: impl FnOnce(&mut Bench), place: Place, message: &str) {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    let info = q.popped("a").clone();
    queue_it(&mut q);
    let error = q.queue.add_unschedulable_if_not_present(info, q.now()).expect_err("it is queued");
    assert_eq!((error.place, error.to_string().as_str()), (place, message));
    assert_eq!(q.queue.in_flight_pods().len(), 0);
    assert_eq!(q.queue.locate("a"), Some(place));
}

#[test]
fn returning_a_queued_pod_is_an_error() {
    check_present(|q| q.add(pod("a")), Place::Active, "Pod default/a is already present in the active queue");
    check_present(
        |q| q.fail("a", &["A"]),
        Place::Unschedulable,
        "Pod default/a is already present in unschedulable queue",
    );
    let backoff = "Pod default/a is already present in the backoff queue";
    check_present(
        |q| {
            q.event(&NODE_ADD);
            q.fail("a", &["A"]);
        },
        Place::Backoff,
        backoff,
    );
    check_present(|q| q.fail("a", &[]), Place::ErrorBackoff, backoff);
}

#[test]
fn pod_returned_without_pop_is_requeued() {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    q.queue.done("a");
    q.fail("a", &["A"]);
    q.check("backoff: a");
}

#[test]
fn pop_skips_a_pod_already_in_flight() {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    q.add(pod("a"));
    q.add(pod("b").priority(-1));
    q.check("active: a b; in flight: a");
    assert_eq!(q.pop(), "b");
    q.check("in flight: a b");
    assert_eq!(q.queue.scheduling_cycle(), 2);
}

#[test]
fn rejected_pod_group_member_goes_to_backoff_q() {
    let group = || pod("a").set("spec.schedulingGroup", serde_json::json!({"podGroupName": "g"}));
    let check = |on: bool, to: &str| {
        let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).gate(Gate::GenericWorkload, on).build();
        q.reject(group(), &["A"]);
        q.check(to);
    };
    check(true, "backoff: a");
    check(false, "unschedulable: a");
}

#[test]
fn closed_queue_clears_in_flight_and_ends_pop() {
    let mut q = queue();
    q.add(pod("a"));
    q.pop();
    q.event(&NODE_ADD);
    q.queue.close();
    q.check("");
    assert_eq!(q.queue.dump().in_flight_events, 0);
    q.add(pod("b"));
    assert!(q.queue.pop_blocking(&q.clock.clock()).is_none());
}

#[test]
fn blocking_pop_ends_with_a_pod_or_close() {
    let q = queue();
    let popped = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let clock = q.clock.clock();
            let names = std::iter::from_fn(|| q.queue.pop_blocking(&clock));
            names.map(|info| info.pod.name().to_owned()).collect::<Vec<_>>()
        });
        for name in ["a", "b", "c"] {
            q.add(pod(name));
            while q.queue.in_flight_pods().iter().all(|pod| pod.name() != name) {
                std::thread::yield_now();
            }
        }
        q.queue.close();
        waiter.join().expect("the waiter ends")
    });
    assert_eq!(popped, ["a", "b", "c"]);
}
