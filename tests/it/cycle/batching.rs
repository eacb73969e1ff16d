//! Opportunistic batching: the evaluation of one pod serves the next equal pods.

use std::time::Duration;

use kube_scheduler::config::Gate;
use kube_scheduler::testing::{PodFixture, pod};

use crate::world::{World, WorldBuilder, world};

/// A profile that signs pods and scores nodes.
fn signing() -> WorldBuilder {
    world([]).in_tree(&["NodePorts", "NodeResourcesFit"])
}

/// A pod of which a node takes only one.
fn one_a_node(name: &str) -> PodFixture {
    pod(name).host_port(80)
}

/// Number of attempts with this result, or of results dropped for this reason.
fn count(world: &World, family: &str, label: &str) -> u32 {
    let key = if family.contains("flushed") { "reason" } else { "result" };
    let series = format!("scheduler_batch_{family}_total{{profile=\"default-scheduler\",{key}=\"{label}\"}}");
    let value = world.metric(&series).unwrap_or_default();
    value.to_string().parse().expect("a whole number")
}

#[track_caller]
fn check(world: &World, attempts: [u32; 3], flushed: &[(&str, u32)]) {
    let seen = ["no_hint", "hint_used", "hint_not_used"].map(|result| count(world, "attempts", result));
    assert_eq!(seen, attempts, "no hint, hint used, hint not used");
    for (reason, expected) in flushed {
        assert_eq!(count(world, "cache_flushed", reason), *expected, "{reason}");
    }
}

#[test]
fn equal_pods_take_the_other_nodes_of_the_first_ones_ranking() {
    let mut world = signing().start();
    world.nodes(["a", "b", "c"]);
    for name in ["p", "q", "r", "s"] {
        world.pod(one_a_node(name));
    }
    let pods = ["p", "q", "r", "s"].map(|name| {
        world.schedule();
        world.node_of(name)
    });
    assert_eq!(pods, ["a", "c", "b", ""]);
    // For the last one nothing is left: no reason is counted, and it fits nowhere.
    check(&world, [2, 2, 0], &[("empty_list", 0), ("pod_skipped", 0)]);
    let asked = |hinted: &str| {
        let labels = format!("{{hinted=\"{hinted}\",profile=\"default-scheduler\"}}");
        world.metric(&format!("scheduler_get_node_hint_duration_seconds_count{labels}"))
    };
    assert_eq!((asked("no_hint"), asked("hint")), (Some(2.0), Some(2.0)));
    let stored = "scheduler_store_schedule_results_duration_seconds_count{profile=\"default-scheduler\"}";
    assert_eq!(world.metric(stored), Some(3.0), "after each pod that found a node");
}

#[test]
fn results_are_of_use_for_half_a_second() {
    let mut world = signing().start();
    world.nodes(["a", "b", "c"]).pod(one_a_node("p")).schedule();
    world.advance(Duration::from_millis(500)).pod(one_a_node("q")).schedule();
    check(&world, [1, 1, 0], &[("expired", 0)]);
    world.advance(Duration::from_millis(1)).pod(one_a_node("r")).schedule();
    check(&world, [2, 1, 0], &[("expired", 1), ("empty_list", 1)]);
}

#[test]
fn results_outlive_a_pod_that_cannot_use_them() {
    let mut world = signing().start();
    world.nodes(["a", "b", "c"]).pod(one_a_node("p")).schedule();
    let nowhere = one_a_node("q").cpu("1000");
    world.pod(nowhere).schedule();
    check(&world, [2, 0, 0], &[("pod_incompatible", 1)]);
    world.pod(one_a_node("r")).schedule();
    check(&world, [3, 0, 0], &[("pod_incompatible", 1), ("pod_skipped", 1)]);
    world.pod(one_a_node("s")).schedule();
    check(&world, [3, 1, 0], &[("pod_incompatible", 1), ("pod_skipped", 1)]);
}

#[test]
fn a_node_with_room_for_another_might_be_the_best_again() {
    let mut world = signing().start();
    world.nodes(["a", "b"]);
    for name in ["p", "q"] {
        world.pod(pod(name)).schedule();
    }
    check(&world, [2, 0, 0], &[("node_not_full", 1)]);
}

#[test]
fn nothing_is_kept_where_a_plugin_cannot_sign_or_the_gate_is_off() {
    let mut unsigned = world([crate::world::probe::probe("S").score(|_| Ok(1))]).in_tree(&["NodePorts"]).start();
    unsigned.nodes(["a", "b", "c"]);
    for name in ["p", "q"] {
        unsigned.pod(one_a_node(name)).schedule();
    }
    check(&unsigned, [2, 0, 0], &[("pod_not_batchable", 2), ("empty_list", 0)]);

    let mut off = signing().gate(Gate::OpportunisticBatching, false).start();
    off.nodes(["a", "b", "c"]);
    for name in ["p", "q"] {
        off.pod(one_a_node(name)).schedule();
    }
    assert_ne!(off.node_of("q"), "");
    check(&off, [0, 0, 0], &[]);
    assert!(!off.metrics().contains("scheduler_batch_attempts_total{"), "nothing is counted either");
}
