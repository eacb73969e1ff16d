//! From `Reserve` to `PostBind`: what is called in which order, what is taken back, and who is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use kube_scheduler::framework::{BindOutcome, PermitOutcome, PluginError, Rejection, Verdict};
use kube_scheduler::model::{ActionType, ClusterEvent, EventResource};
use kube_scheduler::queue::Place;
use kube_scheduler::testing::pod;

use crate::world::probe::{Probe, probe, ready};
use crate::world::{World, world};

fn reserves(name: &str) -> Probe {
    probe(name).reserve(|_| Ok(Verdict::Pass))
}

fn scheduled(probes: impl IntoIterator<Item = Probe>) -> World {
    let mut world = world(probes).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    world
}

#[test]
fn extension_points_run_in_order() {
    let all = |name: &str| {
        reserves(name).permit(|_| Ok(PermitOutcome::Allow)).pre_bind(|_| ready(Ok(Verdict::Pass))).post_bind(|_| ())
    };
    let binds = |name: &str, outcome: BindOutcome| probe(name).bind(move |_| ready(Ok(outcome.clone())));
    let world = scheduled([all("A"), all("B"), binds("C", BindOutcome::Skip), binds("D", BindOutcome::Bound)]);
    let order = [
        "Reserve A",
        "Reserve B",
        "Permit A",
        "Permit B",
        "PreBind A",
        "PreBind B",
        "Bind C",
        "Bind D",
        "PostBind A",
        "PostBind B",
    ];
    assert_eq!(world.take_log(), order.map(|line| format!("{line} p a")));
    assert_eq!(world.events(), ["Normal Scheduled/Binding p: Successfully assigned default/p to a"]);
    assert!(world.take_writes().iter().all(|write| !write.what.starts_with("POST")), "D has bound it");
}

#[test]
fn binding_has_the_pods_uid_and_node() {
    let world = scheduled([]);
    let writes = world.take_writes();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert_eq!(writes[0].what, "POST /api/v1/namespaces/default/pods/p/binding");
    let body = r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","namespace":"default","uid":"p"},"#;
    assert_eq!(writes[0].body, format!(r#"{body}"target":{{"kind":"Node","name":"a"}}}}"#));
    assert_eq!(world.node_of("p"), "a");
    assert_eq!(world.engine.shared.cache.counts().assumed_pods, 0, "the informers have confirmed it");
}

/// All are unreserved, last first, also those that were never asked to reserve.
fn check_unreserved(second: Probe, before: &[&str]) {
    let world = scheduled([reserves("A"), second, reserves("C")]);
    let log = world.take_log();
    let (called, unreserved) = log.split_at(before.len());
    assert_eq!(called, before.iter().map(|line| format!("{line} p a")).collect::<Vec<_>>());
    assert_eq!(unreserved, ["Unreserve C p a", "Unreserve B p a", "Unreserve A p a"]);
    assert_eq!(world.engine.shared.cache.counts().pods, 0);
    assert!(world.in_flight().is_empty());
}

#[test]
fn failure_after_reserve_unreserves_in_reverse_order() {
    let no = || Rejection::unschedulable("no");
    let boom = || PluginError::new("boom");
    check_unreserved(probe("B").reserve(move |_| Ok(Verdict::Reject(no()))), &["Reserve A", "Reserve B"]);
    check_unreserved(probe("B").reserve(move |_| Err(boom())), &["Reserve A", "Reserve B"]);
    let reserved = ["Reserve A", "Reserve B", "Reserve C"];
    let with = |last: &'static str| [&reserved[..], &[last]].concat();
    check_unreserved(reserves("B").permit(move |_| Ok(PermitOutcome::Reject(no()))), &with("Permit B"));
    check_unreserved(reserves("B").permit(move |_| Err(boom())), &with("Permit B"));
    check_unreserved(
        reserves("B").pre_flight(move |_| Err(boom())).pre_bind(|_| ready(Ok(Verdict::Pass))),
        &with("PreBindPreFlight B"),
    );
    check_unreserved(reserves("B").pre_bind(move |_| ready(Ok(Verdict::Reject(no())))), &with("PreBind B"));
    check_unreserved(reserves("B").bind(move |_| ready(Err(boom()))), &with("Bind B"));
}

#[test]
fn writes_of_unreserve_are_sent() {
    let check = |fails: fn(Probe) -> Probe| {
        let written = Arc::new(AtomicBool::new(false));
        let writes = written.clone();
        let reserves = reserves("A").unreserve(move |_| {
            let written = writes.clone();
            Some(async move { written.store(true, Ordering::Relaxed) }.boxed())
        });
        scheduled([fails(reserves)]);
        assert!(written.load(Ordering::Relaxed));
    };
    check(|probe| probe.permit(|_| Err(PluginError::new("boom"))));
    check(|probe| probe.bind(|_| ready(Err(PluginError::new("boom")))));
}

#[test]
fn all_bind_plugins_skipping_is_a_silent_error() {
    let skips = probe("A").bind(|_| ready(Ok(BindOutcome::Skip)));
    let mut world = world([skips]).without_binder().start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    // As upstream: a failure of which nothing is said.
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
    assert!(world.take_writes().is_empty() && world.events().is_empty());
    let series = |result: &str| {
        format!("scheduler_schedule_attempts_total{{profile=\"default-scheduler\",result=\"{result}\"}}")
    };
    assert_eq!(world.metric(&series("error")), Some(1.0));
    assert_eq!(world.metric(&series("scheduled")), None);
}

/// Schedules a pod that no node can take and that a pod which leaves its node may help, and then one for which a plugin
/// `fails`. Checks where they are.
fn check_woken(fails: Probe, other: Place, itself: Place) {
    let left = ClusterEvent::new(EventResource::AssignedPod, ActionType::DELETE);
    let picky = probe("F")
        .filter(|seen| Ok(if seen.pod.name() == "other" { Verdict::unschedulable("full") } else { Verdict::Pass }))
        .events([left]);
    let mut world = world([picky, fails]).start();
    world.nodes(["a"]).pod(pod("other")).schedule();
    assert_eq!(world.waits("other").expect("it waits").0, Place::Unschedulable);
    world.pod(pod("p")).schedule();
    assert_eq!(world.waits("other").expect("it waits").0, other);
    assert_eq!(world.waits("p").expect("it waits").0, itself);
}

#[test]
fn failed_binding_requeues_other_pods() {
    check_woken(probe("B").pre_bind(|_| ready(Err(PluginError::new("boom")))), Place::Backoff, Place::ErrorBackoff);
    check_woken(probe("B").pre_bind(|_| ready(Ok(Verdict::unschedulable("no")))), Place::Backoff, Place::ErrorBackoff);
    // No other pod's attempt can have seen what was given up within one cycle.
    let reserve = probe("B").reserve(|_| Ok(Verdict::unschedulable("no")));
    check_woken(reserve, Place::Unschedulable, Place::Unschedulable);
}

/// Two pods wait without hope; plugins name them while a third is scheduled.
#[test]
fn activated_pods_move_after_permit_and_post_bind() {
    let picky = probe("F").filter(|seen| {
        Ok(if seen.pod.name().starts_with("waits") { Verdict::unschedulable("full") } else { Verdict::Pass })
    });
    let names = probe("A")
        .permit(|seen| {
            seen.activate("waits-1");
            Ok(PermitOutcome::Allow)
        })
        .post_bind(|seen| seen.activate("waits-2"));
    let mut world = world([picky, names]).start();
    world.nodes(["a"]).pod(pod("waits-1")).pod(pod("waits-2")).schedule_all();
    let places = |world: &World| ["waits-1", "waits-2"].map(|pod| world.waits(pod).expect("it waits").0);
    assert_eq!(places(&world), [Place::Unschedulable; 2]);
    world.pod(pod("p"));
    assert!(world.cycle());
    assert_eq!(places(&world), [Place::Active, Place::Unschedulable]);
    world.settle();
    assert_eq!(places(&world), [Place::Active; 2]);
}

#[test]
fn rejected_attempt_activates_no_pods() {
    let picky = probe("F")
        .filter(|seen| Ok(if seen.pod.name() == "waits" { Verdict::unschedulable("full") } else { Verdict::Pass }));
    let names = probe("A").permit(|seen| {
        seen.activate("waits");
        Ok(PermitOutcome::Reject(Rejection::unschedulable("no")))
    });
    let mut world = world([picky, names]).start();
    world.nodes(["a"]).pod(pod("waits")).schedule_all();
    world.pod(pod("p")).schedule();
    assert_eq!(world.waits("waits").expect("it waits").0, Place::Unschedulable);
}
