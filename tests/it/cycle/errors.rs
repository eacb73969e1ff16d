//! Messages about pods without a node, and the queue in which they wait: one table for rejections, one for errors.

use std::time::Duration;

use kube_scheduler::framework::{BindOutcome, PermitOutcome, PluginError, PreFilterOutcome, Rejection, Verdict};
use kube_scheduler::queue::Place;
use kube_scheduler::testing::pod;

use crate::world::probe::{Probe, probe, ready};
use crate::world::world;

/// Schedules a pod in a cluster of two nodes, and checks the condition, the place and the rejectors.
fn check(probes: impl IntoIterator<Item = Probe>, condition: &str, place: Place, rejectors: &[&str]) {
    let mut world = world(probes).start();
    world.nodes(["a", "b"]).pod(pod("p")).schedule();
    assert_eq!(world.condition("p"), condition);
    let rejectors = rejectors.iter().map(ToString::to_string).collect();
    assert_eq!(world.waits("p"), Some((place, rejectors)), "{condition}");
    assert!(world.in_flight().is_empty(), "{condition}");
    assert_eq!(world.engine.shared.cache.counts().pods, 0, "{condition}");
    let event = condition.split_once(": ").expect("reason and message").1;
    assert_eq!(world.events(), [format!("Warning FailedScheduling/Scheduling p: {event}")]);
    let counted = if condition.starts_with("Unschedulable") { [Some(1.0), None] } else { [None, Some(1.0)] };
    let attempts = |result: &str| {
        let series = format!("scheduler_schedule_attempts_total{{profile=\"default-scheduler\",result=\"{result}\"}}");
        world.metric(&series)
    };
    assert_eq!([attempts("unschedulable"), attempts("error")], counted, "{condition}");
}

fn unschedulable(probes: impl IntoIterator<Item = Probe>, message: &str, rejectors: &[&str]) {
    check(probes, &format!("Unschedulable: {message}"), Place::Unschedulable, rejectors);
}

fn pre_filter(name: &str, outcome: PreFilterOutcome) -> Probe {
    probe(name).pre_filter(move |_| Ok(outcome.clone()))
}

fn nodes(names: &[&str]) -> PreFilterOutcome {
    PreFilterOutcome::Nodes(names.iter().map(ToString::to_string).collect())
}

fn no(reason: &'static str) -> PreFilterOutcome {
    PreFilterOutcome::Reject(Rejection::unschedulable(reason))
}

fn never(reason: &'static str) -> PreFilterOutcome {
    PreFilterOutcome::Reject(Rejection::unresolvable(reason))
}

#[test]
fn pre_filter_rejection_names_plugin_and_message() {
    let never_asked = || probe("Z").pre_filter(|_| panic!("PreFilter ends with an unresolvable rejection"));
    unschedulable([pre_filter("A", never("no")), never_asked()], "0/2 nodes are available: no.", &["A"]);
    unschedulable(
        [pre_filter("A", no("one")), pre_filter("B", nodes(&["a"])), pre_filter("C", no("two"))],
        "0/2 nodes are available: two.",
        &["B", "C"],
    );
    unschedulable(
        [pre_filter("A", nodes(&["a"])), pre_filter("B", no("one")), pre_filter("C", never("two")), never_asked()],
        "0/2 nodes are available: two.",
        &["C"],
    );
    let filters =
        probe("F").pre_filter(|_| Ok(no("no"))).filter(|_| panic!("no node is filtered after PreFilter's no"));
    unschedulable([filters], "0/2 nodes are available: no.", &["F"]);
}

#[test]
fn nodes_left_out_by_pre_filter_are_reported() {
    unschedulable(
        [pre_filter("B", nodes(&["b"])), pre_filter("A", nodes(&["a"]))],
        "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously.",
        &["A", "B"],
    );
    unschedulable([pre_filter("A", nodes(&[]))], "0/2 nodes are available: node(s) didn't satisfy plugin A.", &["A"]);
    unschedulable(
        [pre_filter("A", nodes(&["gone"])), probe("F").filter(|_| Ok(Verdict::Pass))],
        "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [A].",
        &["A"],
    );
    unschedulable(
        [pre_filter("A", nodes(&["a"])), probe("F").filter(|_| Ok(Verdict::unschedulable("full")))],
        "0/2 nodes are available: 1 full, 1 node(s) didn't satisfy plugin(s) [A].",
        &["A", "F"],
    );
}

#[test]
fn filter_rejections_are_counted_by_reason() {
    let by_node = |name: &str, node: &'static str, rejection: Rejection| {
        probe(name)
            .filter(move |seen| Ok(if seen.node == node { Verdict::Reject(rejection.clone()) } else { Verdict::Pass }))
    };
    unschedulable(
        [by_node("A", "a", Rejection::unschedulable("full")), by_node("B", "b", Rejection::unresolvable("tainted"))],
        "0/2 nodes are available: 1 full, 1 tainted.",
        &["A", "B"],
    );
    unschedulable(
        [by_node("A", "a", Rejection::pending("wait")), by_node("B", "b", Rejection::unschedulable("wait"))],
        "0/2 nodes are available: 2 wait.",
        &["A", "B"],
    );
    let skips = probe("S").pre_filter(|_| Ok(PreFilterOutcome::Skip)).filter(|_| panic!("a skipped filter is asked"));
    unschedulable(
        [skips, probe("F").filter(|_| Ok(Verdict::unschedulable("full")))],
        "0/2 nodes are available: 2 full.",
        &["F"],
    );
}

#[test]
fn rejection_by_reserve_or_permit_counts_one_node() {
    let reserve = |verdict: Verdict| probe("R").reserve(move |_| Ok(verdict.clone()));
    unschedulable([reserve(Verdict::unschedulable("no"))], "0/1 nodes are available: 1 no.", &["R"]);
    unschedulable([reserve(Verdict::unresolvable("no"))], "0/1 nodes are available: 1 no.", &["R"]);
    unschedulable([reserve(Verdict::Reject(Rejection::pending("no")))], "0/1 nodes are available: 1 no.", &["R"]);
    let permit = |rejection: Rejection| probe("P").permit(move |_| Ok(PermitOutcome::Reject(rejection.clone())));
    unschedulable([permit(Rejection::unschedulable("no"))], "0/1 nodes are available: 1 no.", &["P"]);
    unschedulable([permit(Rejection::pending("no"))], "0/1 nodes are available: 1 no.", &["P"]);
}

#[test]
fn rejection_during_binding_is_retried_after_backoff() {
    let pre_bind = probe("B").pre_bind(|_| ready(Ok(Verdict::unschedulable("no"))));
    check([pre_bind], "Unschedulable: no", Place::ErrorBackoff, &[]);
    let bind = probe("B").bind(|_| ready(Ok(BindOutcome::Reject(Rejection::unresolvable("no")))));
    check([bind], "Unschedulable: no", Place::ErrorBackoff, &[]);
}

#[test]
fn plugin_error_names_the_plugin_and_is_retried() {
    let boom = || PluginError::new("boom");
    let check = |probe: Probe, message: &str| {
        check([probe], &format!("SchedulerError: {message}"), Place::ErrorBackoff, &[]);
    };
    check(probe("A").pre_filter(move |_| Err(boom())), "running PreFilter plugin \"A\": boom");
    let pending = PreFilterOutcome::Reject(Rejection::pending("later"));
    check(pre_filter("A", pending), "running PreFilter plugin \"A\": later");
    check(probe("A").filter(move |_| Err(boom())), "running \"A\" filter plugin: boom");
    check(probe("A").score(|_| Ok(0)).pre_score(move |_| Err(boom())), "running PreScore plugin \"A\": boom");
    check(probe("A").score(move |_| Err(boom())), "running Score plugins: plugin \"A\" failed with: boom");
    check(
        probe("A").score(|_| Ok(101)),
        "applying score defaultWeights on Score plugins: plugin \"A\" returns an invalid score 101, it should in the range \
         of [0, 100] after normalizing",
    );
    check(probe("A").reserve(move |_| Err(boom())), "running Reserve plugin \"A\": boom");
    check(probe("A").permit(move |_| Err(boom())), "running Permit plugin \"A\": boom");
    let pre_bind = || probe("A").pre_bind(|_| ready(Ok(Verdict::Pass)));
    check(pre_bind().pre_flight(move |_| Err(boom())), "running PreBindPreFlight \"A\": boom");
    check(probe("A").pre_bind(move |_| ready(Err(boom()))), "running PreBind plugin \"A\": boom");
    check(probe("A").bind(move |_| ready(Err(boom()))), "running Bind plugin \"A\": boom");
}

#[test]
fn filter_error_on_one_node_ends_the_attempt() {
    let broken = probe("A").filter(|seen| match seen.node {
        "b" => Err(PluginError::new("boom")),
        _ => Ok(Verdict::Pass),
    });
    check([broken], "SchedulerError: running \"A\" filter plugin: boom", Place::ErrorBackoff, &[]);
}

#[test]
fn without_nodes_the_pod_is_unschedulable() {
    let mut world = world([probe("A").pre_filter(|_| panic!("nothing is asked without nodes"))]).start();
    world.pod(pod("p")).schedule();
    assert_eq!(world.condition("p"), "Unschedulable: no nodes available to schedule pods");
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
    // The attempt counts as an error for the backoff.
    world.advance(Duration::from_secs(2));
    assert_eq!(world.waits("p"), Some((Place::Active, vec![])));
}

#[test]
fn pod_of_an_unknown_profile_is_not_scheduled() {
    let mut world = world([]).start();
    world.nodes(["a"]).pod(pod("p").scheduler("another"));
    assert!(!world.schedule());
    assert_eq!(world.condition("p"), ": ");
}
