//! Every spawned task has an owner that hears of its end, however it comes.

use std::collections::BTreeSet;

use http::Method;
use http::request::Parts;
use kube_scheduler::apiserver::kinds;
use kube_scheduler::engine::TaskEnd;
use serde_json::json;

use super::world::World;

/// Each task that serves is cut off, whatever it waits for.
#[test]
fn aborted_serving_task_is_reported() {
    let mut world = World::plain();
    let names: BTreeSet<&'static str> = world.engine.tasks.names().into_iter().collect();
    for name in ["dispatcher", "event recorder", "metrics", "pods", "nodes"] {
        assert!(names.contains(name), "{name} is none of {names:?}");
    }
    for name in names {
        let killed = world.engine.tasks.kill(name);
        assert_eq!(world.heard(), vec![TaskEnd::Ended { name }; killed], "{name}");
    }
    assert!(world.engine.tasks.names().is_empty());
}

/// A request panics on its way out, and with it the task that sends it.
#[track_caller]
fn check_panic(name: &'static str, struck: fn(&Parts) -> bool) {
    let mut world = World::plain();
    world.script.cluster.create_large_pod("large");
    world.settle("with a large pod");
    world.script.cluster.server.faults().set(move |parts| struck(parts).then(|| panic!("boom")));
    world.script.cluster.server.faults().drop_watches(&kinds::NODES);
    world.try_all();
    let heard = world.heard();
    let expected = TaskEnd::Panicked { name, message: "boom".to_owned() };
    assert!(heard.contains(&expected) && heard.len() == 1, "{heard:?}");
}

#[test]
fn panic_of_a_task_is_reported() {
    check_panic("dispatcher", |parts| parts.method == Method::PATCH && parts.uri.path().ends_with("/status"));
    check_panic("event recorder", |parts| parts.method == Method::POST && parts.uri.path().ends_with("/events"));
    check_panic("nodes", |parts| parts.uri.path().ends_with("/nodes"));
}

/// What a binding cycle holds is let go when it panics; that this happened is counted.
#[test]
fn panic_of_a_binding_cycle_forgets_the_pod() {
    let mut world = World::plain();
    let faults = world.script.cluster.server.faults();
    faults.set(|parts| parts.uri.path().ends_with("/binding").then(|| panic!("boom")));
    assert!(world.engine.scheduler.schedule_one(world.time()));
    assert_eq!(world.engine.tasks.running(), 1);
    assert_eq!(world.heard(), [TaskEnd::Panicked { name: "binding", message: "boom".to_owned() }]);
    let shared = &world.engine.shared;
    assert_eq!(shared.cache.counts().pods, 0);
    assert_eq!(shared.bugs.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(world.engine.tasks.running(), 0);
    assert!(shared.queue.in_flight_pods().is_empty());
}

/// A pod that moves from node to node shows that what the scheduler believes is worth nothing.
#[test]
fn corrupted_cache_ends_the_handler_task() {
    let mut world = World::plain();
    world.try_all();
    let server = &world.script.cluster.server;
    let mut pod = server.get(&kinds::PODS, "default", "p1").expect("the pod").value();
    assert_eq!(pod["spec"]["nodeName"], "haven");
    pod["spec"]["nodeName"] = json!("elsewhere");
    pod["metadata"]["resourceVersion"] = json!((server.version() + 1).to_string());
    server.faults().inject_raw(&kinds::PODS, "default", "p1", pod.to_string());
    assert_eq!(world.heard(), [TaskEnd::Ended { name: "pods" }]);
}
