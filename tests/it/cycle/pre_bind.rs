//! The extension points `PreBindPreFlight` and `PreBind`.

use std::sync::Arc;

use futures::FutureExt as _;
use kube_scheduler::config::Gate;
use kube_scheduler::framework::{PluginError, PreBindPreFlight, Verdict};
use kube_scheduler::queue::Place;
use kube_scheduler::testing::pod;
use tokio::sync::Notify;

use crate::world::probe::{Probe, probe, ready};
use crate::world::{World, world};

/// Works until it is told to end.
fn works(name: &str, parallel: bool) -> (Probe, Arc<Notify>) {
    let end = Arc::new(Notify::new());
    let told = end.clone();
    let probe = probe(name).pre_flight(move |_| Ok(PreBindPreFlight::Work { parallel })).pre_bind(move |_| {
        let told = told.clone();
        async move {
            told.notified().await;
            Ok(Verdict::Pass)
        }
        .boxed()
    });
    (probe, end)
}

fn skips(name: &str, parallel: bool) -> Probe {
    let unasked = probe(name).pre_bind(|_| panic!("PreBind is asked although it has nothing to do"));
    unasked.pre_flight(move |_| Ok(PreBindPreFlight::Skip { parallel }))
}

fn scheduled(probes: impl IntoIterator<Item = Probe>) -> World {
    let mut world = world(probes).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    world
}

fn started(world: &World) -> Vec<String> {
    let log = world.take_log().into_iter();
    log.filter_map(|line| Some(line.strip_prefix("PreBind ")?.trim_end_matches(" p a").to_owned())).collect()
}

#[test]
fn consecutive_parallel_plugins_run_concurrently() {
    let plugins = [("A", true), ("B", true), ("C", false), ("D", true), ("E", true)];
    let (working, ends): (Vec<Probe>, Vec<Arc<Notify>>) =
        plugins.map(|(name, parallel)| works(name, parallel)).into_iter().unzip();
    let mut probes = working;
    probes.insert(4, skips("L", false));
    probes.insert(1, skips("K", true));
    let mut world = scheduled(probes);
    assert_eq!(started(&world), ["A", "B"]);
    let mut end = |notify: &Notify| {
        notify.notify_one();
        world.settle();
        started(&world)
    };
    assert_eq!(end(&ends[1]), [""; 0]);
    assert_eq!(end(&ends[0]), ["C"]);
    assert_eq!(end(&ends[2]), ["D"]);
    assert_eq!(end(&ends[3]), ["E"], "one that is skipped and may not run beside others parts them");
    assert_eq!(end(&ends[4]), [""; 0]);
    assert_eq!(world.node_of("p"), "a");
}

#[test]
fn first_failure_cancels_a_parallel_group() {
    let (a, _never) = works("A", true);
    let fails = probe("B").pre_bind(|_| ready(Err(PluginError::new("boom"))));
    let world = scheduled([a, fails.pre_flight(|_| Ok(PreBindPreFlight::Work { parallel: true }))]);
    assert_eq!(world.condition("p"), "SchedulerError: running PreBind plugin \"B\": boom");
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
    assert_eq!(world.metric("scheduler_goroutines{operation=\"PreBind\"}"), Some(0.0));
}

#[test]
fn nominated_node_is_patched_only_if_pre_bind_has_work() {
    let world = scheduled([skips("A", false)]);
    let writes: Vec<String> = world.take_writes().into_iter().map(|write| write.what).collect();
    assert_eq!(writes, ["POST /api/v1/namespaces/default/pods/p/binding"]);

    let mut world = scheduled([probe("A").pre_bind(|_| ready(Ok(Verdict::Pass)))]);
    world.settle();
    assert_eq!(world.node_of("p"), "a");
    let (a, end) = works("A", false);
    let mut world = scheduled([a, skips("B", false)]);
    assert_eq!(world.nominated("p"), "a");
    let writes = world.take_writes();
    assert_eq!(writes[0].body, r#"{"status":{"nominatedNodeName":"a"}}"#);
    end.notify_one();
    world.settle();
    assert_eq!((world.node_of("p"), world.nominated("p")), ("a".into(), String::new()));
}

#[test]
fn pod_leaves_in_flight_before_pre_bind() {
    let (a, end) = works("A", false);
    let mut world = scheduled([a]);
    assert!(world.in_flight().is_empty());
    assert_eq!(world.engine.shared.cache.counts().assumed_pods, 1);
    end.notify_one();
    world.settle();
    assert_eq!(world.node_of("p"), "a");
}

fn check_cancelled(gate: bool) {
    let (a, _never) = works("A", false);
    let mut world = world([a]).gate(Gate::NominatedNodeNameForExpectation, gate).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    let on_its_way = world.handle().pods_in_pre_bind().get("p").expect("the pod can be cancelled");
    assert!(on_its_way.cancel("preempted by X"));
    world.settle();
    assert_eq!(world.condition("p"), "SchedulerError: running PreBind plugin \"A\": preempted by X");
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
    assert!(world.handle().pods_in_pre_bind().get("p").is_none());
    let series = "scheduler_framework_extension_point_duration_seconds_count{extension_point=\"PreBind\",\
                  profile=\"default-scheduler\",status=\"Error\"}";
    assert_eq!(world.metric(series), Some(1.0));
}

#[test]
fn pod_can_be_cancelled_during_pre_bind() {
    check_cancelled(true);
    // Without the gate nobody is asked beforehand, so every pod can be.
    check_cancelled(false);
}

#[test]
fn pod_without_pre_bind_work_cannot_be_cancelled() {
    let binds = probe("B").bind(|_| futures::future::pending().boxed());
    let world = scheduled([skips("A", false), binds]);
    assert_eq!(world.take_log(), ["PreBindPreFlight A p a", "Bind B p a"]);
    assert!(world.handle().pods_in_pre_bind().get("p").is_none());
}

#[test]
fn without_the_gate_pre_bind_plugins_run_sequentially() {
    let (a, end) = works("A", true);
    let (b, _never) = works("B", true);
    let mut world = world([a, b]).gate(Gate::NominatedNodeNameForExpectation, false).start();
    world.nodes(["a"]).pod(pod("p")).schedule();
    assert_eq!(world.take_log(), ["PreBind A p a"]);
    end.notify_one();
    world.settle();
    assert_eq!(world.take_log(), ["PreBind B p a"]);
    assert!(world.take_writes().is_empty());
}
