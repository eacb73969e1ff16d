//! Tests of the queue's metrics.

use super::fixture::{Answer, NODE_ADD, NODE_LABEL, NODE_TAINT, fake, setup};
use crate::config::Gate;
use crate::testing::pod;

fn incoming(queue: &str, event: &str) -> String {
    format!("scheduler_queue_incoming_pods_total{{event=\"{event}\",queue=\"{queue}\"}}")
}

fn rejected(plugin: &str) -> String {
    format!("scheduler_unschedulable_pods{{plugin=\"{plugin}\",profile=\"default-scheduler\"}}")
}

fn in_flight(event: &str) -> String {
    format!("scheduler_inflight_events{{event=\"{event}\"}}")
}

#[test]
fn pending_pods_metric_counts_by_queue() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue), fake("G").gates().on(NODE_LABEL, Answer::Queue)]).build();
    q.check_pending([0, 0, 0, 0]);
    q.close("G", "gated");
    q.add(pod("gated"));
    q.check_pending([0, 0, 0, 1]);
    q.reject(pod("error"), &[]);
    q.check_pending([0, 1, 0, 1]);
    q.reject(pod("unschedulable"), &["A"]);
    q.add(pod("active"));
    q.check_pending([1, 1, 1, 1]);
    q.event(&NODE_ADD);
    q.check_pending([1, 2, 0, 1]);
    // An update of a gated pod that does not open the gate is not counted twice.
    q.update(pod("gated"), pod("gated").label("x", "y"));
    q.check_pending([1, 2, 0, 1]);
    q.open("G", "gated");
    q.event(&NODE_LABEL);
    q.check_pending([2, 2, 0, 0]);
    assert_eq!(q.pop(), "gated");
    q.check_pending([1, 2, 0, 0]);
    assert_eq!(q.queue.pending_pods().1, "activeQ:1; backoffQ:2; unschedulablePods:0");
    let names: Vec<String> = q.queue.pending_pods().0.iter().map(|pod| pod.name().to_owned()).collect();
    assert_eq!(names, ["active", "unschedulable", "error"]);
}

#[test]
fn incoming_pods_metric_counts_by_event() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue), fake("G").gates().on(NODE_LABEL, Answer::Queue)]).build();
    q.queue.run(q.now());
    q.add(pod("a"));
    q.pop();
    q.fail("a", &["A"]);
    q.event(&NODE_ADD);
    q.pop();
    q.fail("a", &[]);
    q.flush_at_ms(5000);
    q.pop();
    q.fail("a", &["A"]);
    q.activate(&["a"]);
    q.pop();
    q.fail("a", &["A"]);
    q.flush_at_ms(600_000);
    q.close("G", "g");
    q.add(pod("g"));
    // The activation leaves the gated pod in unschedulablePods, and is not counted. The event first takes the pod out of the
    // queue, so the return of the gated pod is counted as incoming.
    q.activate(&["g"]);
    q.event(&NODE_LABEL);
    let check = |queue: &str, event: &str, count: Option<&str>| q.check_metric(&incoming(queue, event), count);
    check("active", "UnschedulablePodAdd", Some("1"));
    check("unschedulable", "UnschedulablePodAdd", Some("1"));
    check("unschedulable", "ScheduleAttemptFailure", Some("3"));
    check("backoff", "ScheduleAttemptFailure", Some("1"));
    check("backoff", "NodeAdd", Some("1"));
    check("active", "PopFromBackoffQ", Some("1"));
    check("active", "BackoffComplete", Some("1"));
    check("active", "ForceActivate", Some("1"));
    check("active", "UnschedulableTimeout", Some("1"));
    check("unschedulable", "ForceActivate", None);
    check("unschedulable", "NodeUpdateNodeLabel", Some("1"));
    check("active", "NodeAdd", None);
}

#[test]
fn unschedulable_pods_metric_counts_by_plugin() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue), fake("G").gates().on(NODE_LABEL, Answer::Queue)])
        .profile("other", [])
        .build();
    q.check_metric(&rejected("A"), None);
    q.reject(pod("a"), &["A", "X"]);
    q.add(pod("b"));
    q.pop();
    q.fail_pending("b", &["A"], &["A", "P"]);
    q.check_metric(&rejected("A"), Some("2"));
    q.check_metric(&rejected("X"), Some("1"));
    q.check_metric(&rejected("P"), Some("1"));
    // Rejected pods count until they are popped for the next attempt.
    q.event(&NODE_ADD);
    q.check_metric(&rejected("A"), Some("2"));
    assert_eq!(q.pop(), "b");
    q.check_metric(&rejected("A"), Some("1"));
    q.check_metric(&rejected("P"), Some("0"));
    q.delete(pod("a"));
    q.check_metric(&rejected("A"), Some("0"));
    q.check_metric(&rejected("X"), Some("0"));
    // Gating plugins count, too. Each counts once per pod, even if it runs several times.
    q.close("G", "g");
    q.add(pod("g"));
    q.activate(&["g"]);
    q.event(&NODE_LABEL);
    q.check_metric(&rejected("G"), Some("1"));
    q.open("G", "g");
    q.event(&NODE_LABEL);
    q.check_metric(&rejected("G"), Some("1"));
    assert_eq!(q.pop(), "g");
    q.check_metric(&rejected("G"), Some("0"));
    q.reject(pod("o").scheduler("other"), &["A"]);
    q.check_metric("scheduler_unschedulable_pods{plugin=\"A\",profile=\"other\"}", Some("1"));
}

#[test]
fn in_flight_events_metric_counts_pods_and_events() {
    let mut q = setup([fake("A").on(NODE_ADD, Answer::Queue)]).build();
    q.check_metric(&in_flight("PodPopped"), None);
    for name in ["a", "b"] {
        q.add(pod(name));
        q.pop();
        q.event(&NODE_ADD);
    }
    q.update(pod("a"), pod("a").label("x", "y"));
    q.check_metric(&in_flight("PodPopped"), Some("2"));
    q.check_metric(&in_flight("NodeAdd"), Some("2"));
    q.check_metric(&in_flight("UnschedulablePodUpdatePodLabel"), Some("1"));
    q.fail("a", &["A"]);
    q.check_metric(&in_flight("PodPopped"), Some("1"));
    q.check_metric(&in_flight("NodeAdd"), Some("1"));
    q.queue.close();
    q.check_metric(&in_flight("PodPopped"), Some("0"));
    q.check_metric(&in_flight("NodeAdd"), Some("0"));
    q.check_metric(&in_flight("UnschedulablePodUpdatePodLabel"), Some("0"));
}

#[test]
fn hint_duration_is_observed() {
    let mut q = setup([
        fake("A").on(NODE_ADD, Answer::Queue),
        fake("E").on(NODE_ADD, Answer::Error),
        fake("N").on(NODE_ADD, Answer::None),
        fake("S").on(NODE_ADD, Answer::Skip).on(NODE_TAINT, Answer::Skip),
    ])
    .build();
    for plugin in ["A", "E", "N", "S"] {
        q.reject(pod(&plugin.to_lowercase()), &[plugin]);
    }
    q.event(&NODE_ADD);
    q.event(&NODE_TAINT);
    let check = |plugin: &str, event: &str, hint: &str, count: Option<&str>| {
        let labels = format!("event=\"{event}\",hint=\"{hint}\",plugin=\"{plugin}\"");
        q.check_metric(&format!("scheduler_queueing_hint_execution_duration_seconds_count{{{labels}}}"), count);
    };
    check("A", "NodeAdd", "Queue", Some("1"));
    check("E", "NodeAdd", "Error", Some("1"));
    check("N", "NodeAdd", "Queue", Some("1"));
    check("S", "NodeAdd", "QueueSkip", Some("1"));
    check("S", "NodeUpdateNodeTaint", "QueueSkip", Some("1"));
    check("A", "NodeUpdateNodeTaint", "Queue", None);
}

#[test]
fn pre_enqueue_and_sign_durations_are_observed() {
    let count = |point: &str| {
        let labels = format!("extension_point=\"{point}\",profile=\"default-scheduler\",status=\"Success\"");
        format!("scheduler_framework_extension_point_duration_seconds_count{{{labels}}}")
    };
    let check = |batching: bool, sign: Option<&str>| {
        let mut q = setup([fake("G").gates().on(NODE_LABEL, Answer::Queue)])
            .gate(Gate::OpportunisticBatching, batching)
            .build();
        q.close("G", "g");
        q.add(pod("g"));
        q.add(pod("a"));
        q.check_metric(&count("PreEnqueue"), Some("2"));
        q.pop();
        // A pod in flight is not signed again.
        q.update(pod("a"), pod("a").label("x", "y"));
        q.update(pod("g"), pod("g").label("x", "y"));
        q.check_metric(&count("PreEnqueue"), Some("2"));
        q.check_metric(&count("Sign"), sign);
    };
    check(true, Some("3"));
    check(false, None);
}
