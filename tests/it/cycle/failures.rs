//! Failed attempts of pods that changed meanwhile, and what is written of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use http::Method;
use kube_scheduler::apiserver::faults::Fault;
use kube_scheduler::framework::{PluginError, Verdict};
use kube_scheduler::queue::Place;
use kube_scheduler::testing::pod;
use serde_json::json;
use tokio::sync::Notify;

use crate::world::probe::{Probe, probe};
use crate::world::{World, world};

/// A pod whose binding hangs until the test lets it fail.
fn hanging() -> (World, Arc<Notify>) {
    let fail = Arc::new(Notify::new());
    let told = fail.clone();
    let binds = probe("B").bind(move |_| {
        let told = told.clone();
        async move {
            told.notified().await;
            Err(PluginError::new("boom"))
        }
        .boxed()
    });
    let mut world = world([binds]).start();
    world.nodes(["a", "b"]).pod(pod("p")).schedule();
    (world, fail)
}

const BOOM: &str = "Warning FailedScheduling/Scheduling p: running Bind plugin \"B\": boom";

#[test]
fn failed_binding_of_a_deleted_pod_is_not_requeued() {
    let (mut world, fail) = hanging();
    world.delete("p");
    fail.notify_one();
    world.settle();
    assert!(world.queued("p").is_none() && world.in_flight().is_empty());
    assert_eq!(world.engine.shared.cache.counts().pods, 0);
    assert_eq!(world.events(), [BOOM], "it is still reported");
    let writes: Vec<String> = world.take_writes().into_iter().map(|write| write.what).collect();
    assert_eq!(writes, ["PATCH /api/v1/namespaces/default/pods/p/status"], "and still written, in vain");
}

#[test]
fn failed_binding_of_a_recreated_pod_is_not_reported() {
    let (mut world, fail) = hanging();
    world.delete("p").pod(pod("p").uid("another"));
    fail.notify_one();
    world.settle();
    assert!(world.events().is_empty(), "nothing is said of the pod that is gone");
    assert!(world.take_writes().is_empty());
    let queued = world.queued("p").expect("the new pod is queued");
    assert_eq!((queued.pod.uid(), queued.place, queued.attempts), ("another", Place::Active, 0));
    assert!(world.in_flight().is_empty());
}

#[test]
fn failed_binding_of_a_pod_bound_elsewhere_is_not_requeued() {
    let (mut world, fail) = hanging();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "b"}});
    world.server.bind("default", &binding).expect("somebody else binds the pod");
    world.settle();
    fail.notify_one();
    world.settle();
    assert!(world.queued("p").is_none() && world.in_flight().is_empty());
    assert_eq!(world.node_of("p"), "b");
    let counts = world.engine.shared.cache.counts();
    assert_eq!((counts.pods, counts.assumed_pods), (1, 0));
    assert_eq!(world.events(), [BOOM]);
}

#[test]
fn terminating_pod_is_skipped() {
    let mut world = world([]).start();
    world.nodes(["a"]).pod(pod("p").terminating().set("metadata.finalizers", json!(["example.com/hold"])));
    world.schedule_all();
    assert_eq!(world.node_of("p"), "");
    assert!(world.in_flight().is_empty() && world.queued("p").is_none());
    assert_eq!(world.events(), ["Warning FailedScheduling/Scheduling p: skip schedule deleting pod: default/p"]);
    assert!(world.take_writes().is_empty());
}

#[test]
fn binding_conflict_is_retried_after_backoff() {
    let mut world = world([]).start();
    let asked = AtomicUsize::new(0);
    world.server.faults().set(move |request| {
        let binds = request.method == Method::POST && request.uri.path().ends_with("/binding");
        (binds && asked.fetch_add(1, Ordering::Relaxed) == 0).then_some(Fault::Status(409, None))
    });
    world.nodes(["a"]).pod(pod("p")).schedule();
    assert!(world.condition("p").starts_with("SchedulerError: running Bind plugin \"DefaultBinder\": "));
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
    let writes: Vec<String> = world.take_writes().into_iter().map(|write| write.what).collect();
    let path = "/api/v1/namespaces/default/pods/p";
    assert_eq!(writes, [format!("POST {path}/binding"), format!("PATCH {path}/status")]);
    assert!(!world.schedule(), "it waits for its backoff");
    world.advance(Duration::from_secs(2)).schedule_all();
    assert_eq!(world.node_of("p"), "a");
    let bound = "scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"2\"}";
    assert_eq!(world.metric(bound), Some(1.0));
    assert_eq!(world.metric("scheduler_pod_scheduling_attempts_bucket{le=\"1\"}"), Some(0.0));
    assert_eq!(world.metric("scheduler_pod_scheduling_attempts_bucket{le=\"2\"}"), Some(1.0));
}

/// A filter whose reason counts the attempts, in steps.
fn says(reasons: &'static [&'static str]) -> Probe {
    let attempt = AtomicUsize::new(0);
    probe("F").filter(move |_| {
        let at = attempt.fetch_add(1, Ordering::Relaxed);
        Ok(Verdict::unschedulable(reasons[at.min(reasons.len() - 1)]))
    })
}

fn bodies(world: &World) -> Vec<String> {
    let writes = world.take_writes();
    assert!(writes.iter().all(|write| write.what == "PATCH /api/v1/namespaces/default/pods/p/status"), "{writes:?}");
    writes.into_iter().map(|write| write.body).collect()
}

/// Tries the pod again, as somebody who activates it.
fn retry(world: &mut World) {
    world.advance(Duration::from_mins(1));
    world.handle().activate(&["default/p".to_owned()]);
    assert!(world.schedule());
}

#[test]
fn condition_is_patched_only_when_it_changes() {
    let mut world = world([says(&["full", "full", "fuller"])]).start();
    world.nodes(["a"]).pod(pod("p").nominated("a").set("metadata.generation", json!(3)));
    // The try of the nominated node and the search both ask: "full" twice, and "fuller" from then on.
    world.schedule();
    let message = |reason: &str| format!("0/1 nodes are available: 1 {reason}.");
    assert_eq!(
        bodies(&world),
        [format!(
            r#"{{"status":{{"conditions":[{{"lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z","message":"{}","observedGeneration":3,"reason":"Unschedulable","status":"False","type":"PodScheduled"}}],"nominatedNodeName":null}}}}"#,
            message("full")
        )]
    );
    let held = world.held("p");
    let conditions = held["status"]["conditions"].as_array().expect("conditions");
    assert_eq!(conditions.len(), 1);
    let fields =
        ["type", "status", "reason", "message", "lastTransitionTime"].map(|field| conditions[0][field].clone());
    assert_eq!(fields, ["PodScheduled", "False", "Unschedulable", &message("full"), "2026-01-01T00:00:00Z"]);
    assert_eq!(conditions[0]["observedGeneration"], 3);
    assert_eq!(world.nominated("p"), "");

    retry(&mut world);
    assert_eq!(
        bodies(&world),
        [format!(
            r#"{{"status":{{"$setElementOrder/conditions":[{{"type":"PodScheduled"}}],"conditions":[{{"message":"{}","type":"PodScheduled"}}]}}}}"#,
            message("fuller")
        )],
        "the time of transition stays"
    );
    assert_eq!(world.held("p")["status"]["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    retry(&mut world);
    assert_eq!(bodies(&world), [""; 0], "nothing has changed");
    let attempts = "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"unschedulable\"}";
    assert_eq!(world.metric(attempts), Some(3.0));
}

#[test]
fn long_message_is_truncated_only_in_the_event() {
    let long: &'static str = "x".repeat(2000).leak();
    let mut world = world([probe("F").filter(move |_| Ok(Verdict::unschedulable(long)))]).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    assert_eq!(world.condition("p"), format!("Unschedulable: 0/1 nodes are available: 1 {long}."));
    let head = "0/1 nodes are available: 1 ";
    let note = format!("{head}{} ...", "x".repeat(1020 - head.len()));
    assert_eq!(world.events(), [format!("Warning FailedScheduling/Scheduling p: {note}")]);
}

#[test]
fn conflicting_status_patch_is_retried() {
    let mut world = world([says(&["full"])]).start();
    let asked = AtomicUsize::new(0);
    world.server.faults().set(move |request| {
        let patches = request.method == Method::PATCH && request.uri.path().ends_with("/p/status");
        (patches && asked.fetch_add(1, Ordering::Relaxed) == 0).then_some(Fault::Status(409, None))
    });
    world.nodes(["a"]).pod(pod("p")).schedule();
    assert_eq!(world.condition("p"), ": ");
    world.advance(Duration::from_millis(20));
    assert_eq!(world.condition("p"), "Unschedulable: 0/1 nodes are available: 1 full.");
    assert_eq!(bodies(&world).len(), 2);
}
