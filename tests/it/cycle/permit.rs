//! Pods that wait at Permit.

use std::time::Duration;

use kube_scheduler::framework::PermitOutcome;
use kube_scheduler::queue::Place;
use kube_scheduler::testing::pod;

use crate::world::probe::{Probe, probe};
use crate::world::{World, world};

fn waits(name: &str, seconds: u64) -> Probe {
    let timeout = Duration::from_secs(seconds);
    probe(name)
        .permit(move |_| Ok(PermitOutcome::Wait(timeout, "a reason that nobody sees".into())))
        .reserve(|_| Ok(kube_scheduler::framework::Verdict::Pass))
}

/// A pod that waits at Permit for A, 3 s, and B, 5 s.
fn waiting() -> World {
    let mut world = world([waits("A", 3), waits("B", 5)]).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    assert_eq!(world.in_flight(), ["p"]);
    assert_eq!(world.engine.shared.cache.counts().assumed_pods, 1);
    world.take_log();
    world
}

fn permit_waits(world: &World, result: &str) -> Option<f64> {
    let series = format!("scheduler_permit_wait_duration_seconds_count{{result=\"{result}\"}}");
    world.metric(&series)
}

#[test]
fn waiting_pod_is_bound_once_all_plugins_allow_it() {
    let mut world = waiting();
    let writes = world.take_writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert_eq!(writes[0].what, "PATCH /api/v1/namespaces/default/pods/p/status");
    assert_eq!(writes[0].body, r#"{"status":{"nominatedNodeName":"a"}}"#);
    let pod = world.handle().waiting_pods().get("p").expect("the pod waits");
    pod.allow("A");
    // A's time is over, but A has allowed the pod.
    world.advance(Duration::from_secs(4));
    assert_eq!(world.node_of("p"), "");
    assert_eq!(pod.pending_plugins(), ["B".into()]);
    pod.allow("B");
    world.settle();
    assert_eq!(world.node_of("p"), "a");
    assert_eq!(world.nominated("p"), "");
    assert!(world.handle().waiting_pods().all().is_empty() && world.in_flight().is_empty());
    assert_eq!(permit_waits(&world, "Success"), Some(1.0));
    let sum = "scheduler_permit_wait_duration_seconds_sum{result=\"Success\"}";
    assert_eq!(world.metric(sum), Some(4.0));
}

/// Ends the wait, and checks what is said then, that everything was taken back, and where the pod is.
fn check_end(end: impl FnOnce(&mut World), condition: &str, result: &str, waits: (Place, &[&str])) {
    let mut world = waiting();
    end(&mut world);
    world.settle();
    assert_eq!(world.condition("p"), condition);
    assert_eq!(world.take_log(), ["Unreserve B p a", "Unreserve A p a"]);
    let rejectors = waits.1.iter().map(ToString::to_string).collect();
    assert_eq!(world.waits("p"), Some((waits.0, rejectors)), "{condition}");
    assert_eq!(world.nominated("p"), "", "a failed binding clears the nomination");
    assert_eq!(world.engine.shared.cache.counts().assumed_pods, 0);
    assert!(world.handle().waiting_pods().all().is_empty() && world.in_flight().is_empty());
    assert_eq!(permit_waits(&world, result), Some(1.0));
}

#[test]
fn rejected_waiting_pod_is_unschedulable() {
    let reject = |world: &mut World| {
        let pod = world.handle().waiting_pods().get("p").expect("the pod waits");
        assert!(pod.reject("B", "no") && !pod.reject("A", "too late"));
    };
    let message = "Unschedulable: 0/1 nodes are available: 1 no.";
    check_end(reject, message, "Unschedulable", (Place::Unschedulable, &["B"]));
}

#[test]
fn permit_timeout_makes_the_pod_unschedulable() {
    let message = "Unschedulable: 0/1 nodes are available: 1 rejected due to timeout after waiting 3s at plugin A.";
    let wait = |world: &mut World| {
        world.advance(Duration::from_secs(3));
    };
    check_end(wait, message, "Unschedulable", (Place::Unschedulable, &["A"]));
}

#[test]
fn preempted_waiting_pod_fails_with_an_error() {
    let preempt = |world: &mut World| {
        let pod = world.handle().waiting_pods().get("p").expect("the pod waits");
        assert!(pod.preempt("A", "preempted"));
    };
    let message = "SchedulerError: waiting on permit for pod: preempted";
    check_end(preempt, message, "Error", (Place::ErrorBackoff, &[]));
}

#[test]
fn deleted_waiting_pod_is_unreserved_and_forgotten() {
    let mut world = waiting();
    world.delete("p");
    assert_eq!(world.take_log(), ["Unreserve B p a", "Unreserve A p a"]);
    assert!(world.queued("p").is_none() && world.in_flight().is_empty());
    assert_eq!(world.engine.shared.cache.counts().pods, 0);
    assert_eq!(world.events(), ["Warning FailedScheduling/Scheduling p: 0/1 nodes are available: 1 removed."]);
}

#[test]
fn permit_rejection_stops_further_plugins() {
    use kube_scheduler::framework::Rejection;
    let rejects = probe("R").permit(|_| Ok(PermitOutcome::Reject(Rejection::unschedulable("no"))));
    let mut world = world([waits("A", 3), rejects, waits("B", 3)]).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    let log = world.take_log();
    assert_eq!(log[2..], ["Permit A p a", "Permit R p a", "Unreserve B p a", "Unreserve A p a"]);
    assert!(world.handle().waiting_pods().all().is_empty());
    assert_eq!(world.condition("p"), "Unschedulable: 0/1 nodes are available: 1 no.");
}

#[test]
fn event_during_the_permit_wait_requeues_the_pod() {
    use kube_scheduler::model::{ActionType, ClusterEvent, EventResource};
    let added = ClusterEvent::new(EventResource::Node, ActionType::ADD);
    let mut world = world([waits("A", 3).events([added])]).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    world.nodes(["b"]);
    world.handle().waiting_pods().get("p").expect("the pod waits").reject("A", "no");
    world.settle();
    // In flight until now, so the event is looked at as the pod comes back: it waits for its backoff only.
    assert_eq!(world.waits("p").expect("the pod waits").0, Place::Backoff);
}
