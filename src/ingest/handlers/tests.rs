//! Tests of the handlers with a real cache and queue.

mod world;

use std::any::Any;
use std::sync::Arc;

use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;

use crate::cache::CacheError;
use crate::clock::Mono;
use crate::config::{FeatureGates, Gate};
use crate::framework::WaitDecision;
use crate::k8s::Pod;
use crate::listers::{AnyChange, Change};
use crate::model::{ActionType, EventResource, LabelClasses, NodeInfo, PodInfo};
use crate::testing::{PodFixture, node, pod};
use world::{World, change};

fn at(fixture: PodFixture, version: &str) -> Arc<Pod> {
    fixture.set("metadata.resourceVersion", version.into()).build()
}

#[test]
fn assigned_pods_are_cached_and_pending_pods_queued() {
    let world = World::new();
    world.pod(None, &pod("a").on("n").build());
    world.expect("a@n", "", "AssignedPodAdd");
    world.pod(None, &pod("b").scheduler("other").on("n").build());
    world.expect("a@n b@n", "", "AssignedPodAdd");
    world.pod(None, &pod("c").build());
    world.expect("a@n b@n c:Active", "", "UnschedulablePodAdd");
    world.pod(None, &pod("d").scheduler("other").build());
    world.expect("a@n b@n c:Active", "", "");
    world.pod_deleted(&pod("a").on("n").build(), false);
    world.expect("b@n c:Active", "", "AssignedPodDelete");
    world.pod_deleted(&pod("c").build(), false);
    world.expect("b@n", "", "UnschedulablePodDelete");
    world.pod_deleted(&pod("d").scheduler("other").build(), false);
    world.expect("b@n", "", "");
}

#[test]
fn assigned_pods_requeue_unschedulable_pods() {
    let world = World::new();
    world.rejected(pod("r"));
    world.pod(None, &pod("a").on("n").build());
    world.expect("a@n r:Unschedulable", "r: >a@n", "AssignedPodAdd");
    world.pod_deleted(&pod("a").on("n").build(), false);
    world.expect("r:Unschedulable", "r: a@n>", "AssignedPodDelete");
}

#[test]
fn update_moves_pods_once_per_changed_property() {
    let world = World::new();
    world.rejected(pod("r"));
    let first = at(pod("a").on("n").cpu("2"), "1");
    world.pod(None, &first);
    world.heard();
    world.counted();
    let second = at(pod("a").on("n").cpu("1").label("x", "y"), "2");
    world.pod(Some(&first), &second);
    let labels = "AssignedPodUpdate AssignedPodUpdatePodLabel AssignedPodUpdatePodScaleDown";
    world.expect("a@n r:Unschedulable", "r: a@n>a@n, r: a@n>a@n", labels);
    assert_eq!(world.cache.node("n").expect("it has a pod").requested().milli_cpu, 1000);
    let third = at(pod("a").on("n").cpu("1").label("x", "y").set("status.phase", "Running".into()), "3");
    world.pod(Some(&second), &third);
    world.expect("a@n r:Unschedulable", "r: a@n>a@n", "AssignedPodUpdate AssignedPodUpdate");
}

#[test]
fn a_binding_moves_a_pod_from_queue_to_cache() {
    let world = World::new();
    world.rejected(pod("r"));
    let pending = at(pod("a").nominated("n"), "1");
    world.pod(None, &pending);
    world.counted();
    world.pod(Some(&pending), &at(pod("a").on("n"), "2"));
    world.expect("a@n r:Unschedulable", "r: >a@n", "AssignedPodAdd UnschedulablePodDelete");
    // A pod that this scheduler bound is confirmed in the cache.
    let pending = at(pod("b"), "3");
    world.assume(pod("b").on("n"));
    world.pod(Some(&pending), &at(pod("b").on("n"), "4"));
    world.expect("a@n b@n r:Unschedulable", "r: >b@n", "AssignedPodAdd UnschedulablePodDelete");
    // A pod of another scheduler was never queued here.
    let pending = at(pod("c").scheduler("other"), "5");
    world.pod(Some(&pending), &at(pod("c").scheduler("other").on("n"), "6"));
    world.expect("a@n b@n c@n r:Unschedulable", "r: >c@n", "AssignedPodAdd");
    // A pod that was assumed on another node moves to the node that the API server reports.
    world.assume(pod("d").on("m"));
    world.pod(Some(&at(pod("d"), "7")), &at(pod("d").on("n"), "8"));
    assert_eq!(world.places(), "a@n b@n c@n d@n r:Unschedulable");
}

#[test]
fn missed_deletion_is_applied_to_cache_and_queue() {
    let world = World::new();
    world.rejected(pod("r"));
    world.cache.add_pod(pod("a").on("n").info()).expect("it is new");
    // The last known state of the pod is from before its binding.
    world.pod_deleted(&pod("a").build(), true);
    world.expect("r:Unschedulable", "r: a@>", "AssignedPodDelete UnschedulablePodDelete");
    world.pod(None, &pod("b").build());
    world.heard();
    world.pod_deleted(&pod("b").build(), true);
    assert_eq!((world.places(), world.heard()), ("r:Unschedulable".into(), "r: b@>".into()));
    world.cache.add_pod(pod("c").scheduler("other").on("n").info()).expect("it is new");
    world.counted();
    world.pod_deleted(&pod("c").scheduler("other").on("n").build(), true);
    world.expect("r:Unschedulable", "r: c@n>", "AssignedPodDelete");
}

#[test]
fn update_of_a_queued_pod_counts_only_with_a_new_version() {
    let world = World::new();
    let first = at(pod("a").gate("g"), "1");
    world.pod(None, &first);
    world.counted();
    world.pod(Some(&first), &at(pod("a").gate("g").label("x", "y"), "1"));
    world.expect("a:Active", "", "");
    world.pod(Some(&first), &at(pod("a").gate("g").label("x", "y"), "2"));
    world.expect("a:Active", "", "UnschedulablePodUpdate UnschedulablePodUpdatePodLabel");
    let queued = world.queue.places();
    assert!(queued[0].0.pod().labels().contains_key("x"), "the queue has the newest version");
    world.pod(Some(&at(pod("b").scheduler("other"), "1")), &at(pod("b").scheduler("other"), "2"));
    world.expect("a:Active", "", "");
}

#[test]
fn an_assumed_pod_is_not_queued_again() {
    let world = World::new();
    world.rejected(pod("r"));
    world.assume(pod("a").on("n"));
    let (first, second) = (at(pod("a"), "1"), at(pod("a").label("x", "y"), "2"));
    world.pod(Some(&first), &second);
    world.expect("a@n* r:Unschedulable", "", "UnschedulablePodUpdate UnschedulablePodUpdatePodLabel");
    let third = at(pod("a").label("x", "y").terminating(), "3");
    world.pod(Some(&second), &third);
    world.expect("r:Unschedulable", "r: a@n>", "UnschedulablePodUpdate");
}

#[test]
fn deleted_assumed_pod_is_forgotten() {
    let world = World::new();
    world.rejected(pod("r"));
    world.assume(pod("a").on("n"));
    world.pod_deleted(&pod("a").nominated("n").build(), false);
    world.expect("r:Unschedulable", "r: a@n>", "UnschedulablePodDelete");
}

#[test]
fn deleted_pod_waiting_on_permit_is_rejected() {
    let world = World::new();
    world.rejected(pod("r"));
    let assumed = pod("a").on("n").info();
    world.cache.assume_pod(assumed.clone()).expect("it is new");
    let timeouts = vec![(Arc::from("Listener"), std::time::Duration::from_mins(1))];
    let waiting = world.waiting.add(&assumed, timeouts, Mono::ZERO);
    world.pod_deleted(&pod("a").build(), false);
    // The pod stays in the cache until its own binding cycle forgets it.
    world.expect("a@n* r:Unschedulable", "r: a@n>", "UnschedulablePodDelete");
    let decision = futures::FutureExt::now_or_never(waiting.wait(&world.clock)).expect("it is decided");
    let WaitDecision::Rejected { plugin, rejection } = decision else { panic!("{decision:?}") };
    assert_eq!((&*plugin, format!("{rejection:?}").contains("removed")), ("", true));
}

#[test]
fn cleared_nomination_requeues_pods_of_equal_or_lower_priority() {
    let heard = |old: PodFixture, new: Option<PodFixture>| {
        let world = World::new();
        for (name, priority) in [("low", 1), ("same", 5), ("high", 9)] {
            world.rejected(pod(name).priority(priority));
        }
        let old = at(old.priority(5), "1");
        world.queue.add(Arc::new(PodInfo::new(old.clone(), &LabelClasses::default())), world.now());
        match new {
            Some(new) => world.pod(Some(&old), &at(new.priority(5), "2")),
            None => world.pod_deleted(&old, false),
        }
        world.heard()
    };
    let two = "low: a@>, same: a@>";
    assert_eq!(heard(pod("a").nominated("n"), Some(pod("a"))), two);
    assert_eq!(heard(pod("a").nominated("n"), Some(pod("a").nominated("m"))), two);
    assert_eq!(heard(pod("a").nominated("n"), Some(pod("a").nominated("n"))), "");
    assert_eq!(heard(pod("a"), Some(pod("a").nominated("n"))), "");
    assert_eq!(heard(pod("a").nominated("n"), None), two);
    assert_eq!(heard(pod("a"), None), "");
    // Binding a pod is not a deletion.
    assert!(heard(pod("a").nominated("n"), Some(pod("a").on("n"))).starts_with("low: >a@n, same: >a@n, high: >a@n"));
}

#[test]
fn a_pod_that_changes_its_node_ends_the_process() {
    let world = World::new();
    let first = at(pod("a").on("n"), "1");
    world.pod(None, &first);
    let outcome = world.handlers.pod_changed(&change(Some(&first), &at(pod("a").on("m"), "2")), world.now());
    assert!(outcome.is_err_and(|error: CacheError| error.is_fatal()));
    let deleted = Change::Deleted { last: pod("a").on("m").build(), missed: false };
    let outcome = world.handlers.pod_changed(&deleted, world.now());
    assert!(outcome.is_err_and(|error| error.is_fatal()));
}

#[test]
fn node_changes_update_the_cache_and_requeue_pods() {
    let world = World::new();
    world.rejected(pod("r"));
    world.node(None, node("n"));
    world.expect("r:Unschedulable", "r: >n of 1", "NodeAdd");
    let heartbeat = node("n").set("metadata.resourceVersion", "2".into());
    world.node(Some(node("n")), heartbeat.clone());
    world.expect("r:Unschedulable", "", "");
    world.node(Some(heartbeat), node("n").label("x", "y").taint("t", "", "NoSchedule"));
    world.expect("r:Unschedulable", "r: n of 1>n of 1, r: n of 1>n of 1", "NodeUpdateNodeLabel NodeUpdateNodeTaint");
    assert!(world.cache.node("n").is_some_and(|info| info.node().labels().contains_key("x")));
    world.node_deleted(node("n"));
    world.expect("r:Unschedulable", "r: n of 0>", "NodeDelete");
    // Deleting an unknown node is only logged.
    world.node_deleted(node("n"));
}

/// Regression test: a pod requeued by a node's deletion was retried on a snapshot with that node, and then waited forever.
#[test]
fn deleted_node_leaves_the_cache_before_pods_are_requeued() {
    let world = World::new();
    world.rejected(pod("r"));
    world.node(None, node("n"));
    world.expect("r:Unschedulable", "r: >n of 1", "NodeAdd");
    world.node_deleted(node("n"));
    world.expect("r:Unschedulable", "r: n of 0>", "NodeDelete");
}

#[test]
fn changes_of_other_kinds_are_sent_as_registered() {
    let world = World::new();
    world.rejected(pod("r"));
    let object = || -> Arc<dyn Any + Send + Sync> { Arc::new(StorageClass::default()) };
    let changed = |actions: ActionType, change: AnyChange| {
        world.handlers.other_changed(&EventResource::StorageClass, actions, &change, world.now());
    };
    let deleted = || Change::Deleted { last: object(), missed: false };
    let two = ActionType::ADD | ActionType::UPDATE;
    changed(two, Change::Added(object()));
    world.expect("r:Unschedulable", "r: >other", "storage.k8s.io/StorageClassAdd");
    changed(two, Change::Updated { old: object(), new: object() });
    world.expect("r:Unschedulable", "r: other>other", "storage.k8s.io/StorageClassUpdate");
    changed(two, deleted());
    world.expect("r:Unschedulable", "", "");
    changed(ActionType::DELETE, deleted());
    world.expect("r:Unschedulable", "r: other>", "storage.k8s.io/StorageClassDelete");
}

#[test]
fn with_gang_scheduling_new_pods_requeue_others() {
    let world = World::with_gates(FeatureGates::default().with(Gate::GangScheduling, true), None);
    world.rejected(pod("r"));
    world.pod(None, &pod("a").build());
    world.expect("a:Active r:Unschedulable", "r: >a@", "UnschedulablePodAdd");
}

/// Without queueing hints, plugins are not called, so all moved pods leave unschedulablePods.
#[test]
fn without_hints_pre_checks_decide() {
    let gates = FeatureGates::default().with(Gate::SchedulerQueueingHints, false);
    let check = Arc::new(|pod: &PodInfo, node: &NodeInfo| pod.name() == "fits" && node.name() == "n");
    let moved = |change: &dyn Fn(&World)| {
        let world = World::with_gates(gates, Some(check.clone()));
        world.rejected(pod("fits"));
        world.rejected(pod("other"));
        change(&world);
        let places = world.queue.places().into_iter();
        let moved = places.filter(|(_, place)| *place != crate::queue::Place::Unschedulable);
        moved.map(|(pod, _)| pod.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(moved(&|world| world.node(None, node("n"))), "fits");
    assert_eq!(moved(&|world| world.node(Some(node("n")), node("n").label("x", "y"))), "fits");
    assert_eq!(moved(&|world| world.node(None, node("m"))), "");
    // An assigned pod requeues only pods with inter-pod affinity or topology spread constraints.
    assert_eq!(moved(&|world| world.pod(None, &pod("a").on("n").build())), "");
    let class = |mode: &str| -> Arc<dyn Any + Send + Sync> {
        let class = json!({"metadata": {"name": "c"}, "provisioner": "p", "volumeBindingMode": mode});
        Arc::new(serde_json::from_value::<StorageClass>(class).expect("a storage class"))
    };
    let added = |mode: &str| {
        moved(&|world| {
            let added = Change::Added(class(mode));
            world.handlers.other_changed(&EventResource::StorageClass, ActionType::ALL, &added, world.now());
        })
    };
    assert_eq!((added("Immediate").as_str(), added("WaitForFirstConsumer").as_str()), ("", "fits other"));
}
