//! Extenders: when they are asked, what they leave, and how they decide.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube_scheduler::framework::{PluginError, Verdict};
use kube_scheduler::model::NodeInfo;
use kube_scheduler::queue::Place;
use kube_scheduler::scheduler::{ExtenderFilter, Kept};
use kube_scheduler::testing::pod;

use crate::world::extender::{FakeExtender, extender};
use crate::world::probe::{Probe, probe};
use crate::world::{World, WorldBuilder, world};

fn scheduled(probes: impl IntoIterator<Item = Probe>, extenders: impl IntoIterator<Item = FakeExtender>) -> World {
    let builder = extenders.into_iter().fold(world(probes), WorldBuilder::extender);
    let mut world = builder.start();
    world.nodes(["a", "b", "c"]).pod(pod("p")).schedule();
    world
}

fn broken() -> PluginError {
    PluginError::new("connection refused")
}

/// Rejects everything but node `kept`: `a` for good, the others for now.
fn explains(name: &'static str, kept: &'static str) -> FakeExtender {
    extender(name).filter(move |nodes| {
        let positions = (0..nodes.len()).filter(|&at| nodes[at].name() == kept).collect();
        let rejected = nodes.iter().map(|node| node.name().to_owned()).filter(|node| node != kept);
        let failed = rejected.clone().map(|node| (node, "busy".to_owned())).collect();
        let for_good = rejected.filter(|node| node == "a").map(|node| (node, "never".to_owned())).collect();
        Ok(ExtenderFilter { kept: Kept::Positions(positions), failed, failed_and_unresolvable: for_good })
    })
}

#[test]
fn ignorable_extenders_filter_last() {
    let fails = extender("may-fail").ignorable().filter(|_| Err(broken()));
    let world = scheduled([], [fails, extender("first").keeps(&["b", "c"]), extender("second").keeps(&["a", "c"])]);
    assert_eq!(world.node_of("p"), "c");
    assert_eq!(world.take_log(), ["filter first p a,b,c", "filter second p b,c", "filter may-fail p c"]);
}

#[test]
fn extenders_are_skipped_without_nodes_or_interest() {
    let world = scheduled(
        [],
        [extender("theirs").only("another").keeps(&[]), extender("none").keeps(&[]), extender("z").keeps(&[])],
    );
    assert_eq!(world.take_log(), ["filter none p a,b,c"]);
    assert_eq!(world.condition("p"), "Unschedulable: 0/3 nodes are available:", "it gave no reason");
    assert_eq!(world.waits("p").expect("it waits").1, ["Extender"]);
}

#[test]
fn extender_reasons_are_counted_and_unresolvable_ones_win() {
    let world = scheduled([], [explains("e", "none of them")]);
    assert_eq!(world.condition("p"), "Unschedulable: 0/3 nodes are available: 1 never, 2 busy.");
    let filter =
        probe("F").filter(|seen| Ok(if seen.node == "b" { Verdict::unschedulable("full") } else { Verdict::Pass }));
    let world = scheduled([filter], [explains("e", "none of them")]);
    assert_eq!(world.condition("p"), "Unschedulable: 0/3 nodes are available: 1 busy, 1 full, 1 never.");
    assert_eq!(world.waits("p").expect("it waits").1, ["Extender", "F"]);
}

#[test]
fn failure_of_a_required_extender_ends_the_attempt() {
    let world = scheduled([], [extender("e").filter(|_| Err(broken()))]);
    assert_eq!(world.condition("p"), "SchedulerError: connection refused");
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
}

#[test]
fn nominated_node_is_filtered_first_and_counted_once() {
    let check = |extender: FakeExtender, expected: &str| {
        let mut world = world([]).extender(extender).start();
        world.nodes(["a", "b"]).pod(pod("p").nominated("b")).schedule();
        assert_eq!(world.take_log(), ["filter e p b", "filter e p a,b"]);
        assert_eq!(world.condition("p"), expected);
        assert_eq!(world.waits("p").expect("it waits").1, ["Extender"]);
    };
    check(explains("e", "none"), "Unschedulable: 0/2 nodes are available: 1 busy, 1 never.");
    check(extender("e").keeps(&[]), "Unschedulable: 0/2 nodes are available:");
}

#[test]
fn extender_scores_are_weighted_against_plugin_scores() {
    // 3 × 2 × 10 against 59 and 61.
    let likes_a = |score: i64| probe("S").score(move |seen| Ok(i64::from(seen.node == "a") * score));
    let scores = || extender("e").scores(&[("b", 3), ("unknown", 10)], 2);
    assert_eq!(scheduled([likes_a(59)], [scores()]).node_of("p"), "b");
    assert_eq!(scheduled([likes_a(61)], [scores()]).node_of("p"), "a");
    assert_eq!(scheduled([likes_a(61)], [scores(), extender("f").scores(&[("b", 1)], 1)]).node_of("p"), "b");
    let fails = extender("f").fails_to_score("connection refused");
    let world = scheduled([likes_a(59)], [fails, scores(), extender("g").only("another").scores(&[("c", 10)], 10)]);
    assert_eq!(world.node_of("p"), "b", "a failure counts for nothing");
    assert_eq!(world.take_log().iter().filter(|line| line.starts_with("prioritize")).count(), 2);
    assert_eq!(world.metric("scheduler_goroutines{operation=\"prioritizing_extender\"}"), Some(0.0));
}

#[test]
fn only_nodes_listed_by_an_extender_tie_at_random() {
    let chosen = |extender: fn() -> FakeExtender| -> BTreeSet<String> {
        let choose = |seed| {
            let mut world = world([]).extender(extender()).seed(seed).start();
            world.nodes(["a", "b", "c"]).pod(pod("p")).schedule();
            world.node_of("p")
        };
        (0..12).map(choose).collect()
    };
    let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(chosen(|| extender("filters").keeps(&["a", "b", "c"])), set(&["a", "b", "c"]), "it lists all with 0");
    assert_eq!(chosen(|| extender("e").scores(&[("b", 0), ("c", 0)], 1)), set(&["b", "c"]));
    assert_eq!(chosen(|| extender("fails").fails_to_score("connection refused")), set(&["a"]));
    assert_eq!(chosen(|| extender("e").only("another").keeps(&[])), set(&["a"]), "nobody is interested");
}

#[test]
fn interested_binder_replaces_bind_plugins() {
    let world = scheduled(
        [probe("P").post_bind(|_| ())],
        [extender("e").only("another").binds(Err(broken())), extender("f").binds(Ok(()))],
    );
    let log = world.take_log();
    assert_eq!(log, ["bind f p a", "PostBind P p a"]);
    assert!(world.take_writes().is_empty(), "no Binding is posted");
    assert_eq!(world.events(), ["Normal Scheduled/Binding p: Successfully assigned default/p to a"]);
}

#[test]
fn failed_ignorable_binder_falls_back_to_plugins() {
    let world = scheduled([], [extender("e").ignorable().binds(Err(broken()))]);
    assert_eq!(world.node_of("p"), "a");
    let world = scheduled([], [extender("e").binds(Err(broken()))]);
    assert_eq!(world.condition("p"), "SchedulerError: connection refused");
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
}

#[test]
fn scores_see_the_nodes_an_extender_returned() {
    let rebuilds = || {
        extender("e").filter(|nodes| {
            let rebuilt = nodes.iter().rev().map(|node| Arc::new(NodeInfo::new(node.node().clone()))).collect();
            Ok(ExtenderFilter { kept: Kept::Nodes(rebuilt), ..ExtenderFilter::default() })
        })
    };
    let crowded = probe("S").score(|seen| Ok(seen.info.map_or(0, |info| i64::from(!info.pods().is_empty()))));
    let second = extender("f").keeps(&["a", "b"]).scores(&[], 1);
    let mut world = world([crowded]).extender(rebuilds()).extender(second).start();
    world.nodes(["a", "b", "c"]).pod(pod("there").on("a")).pod(pod("p")).schedule();
    let log = world.take_log();
    assert_eq!(log[..2], ["filter e p a,b,c", "filter f p c,b,a"]);
    // Chance among the two would need both to be listed by an extender: e lists them all.
    assert!(["a", "b"].contains(&world.node_of("p").as_str()));
    let scored = log.iter().filter(|line| line.starts_with("Score"));
    assert_eq!(scored.collect::<Vec<_>>(), ["Score S p b", "Score S p a"]);
}
