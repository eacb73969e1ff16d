//! Tests of every reason and outcome of hard constraints.

#![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

use serde_json::{Value, json};

use super::*;
use crate::plugins::pod_topology_spread::tests::{add_service, constraint, list, spreading, system};
use crate::plugins::pod_topology_spread::{PodTopologySpreadArgs, factory};
use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

fn zone(name: &str, zone: &str) -> NodeFixture {
    node(name).label("zone", zone)
}

/// A pod on node `on` with label `app: a`.
fn running(name: &str, on: &str) -> PodFixture {
    pod(name).label("app", "a").on(on)
}

/// This many running pods on each of the nodes.
fn crowd(counts: &[(&str, usize)]) -> Vec<PodFixture> {
    counts.iter().flat_map(|(on, count)| (0..*count).map(move |at| running(&format!("{on}-{at}"), on))).collect()
}

/// The verdict on each node as a letter: `.` fits, `s` violates the skew, `l` lacks a topology key. Checks that filtering a
/// block and single nodes agree.
fn verdicts(harness: &Harness, pod: &PodFixture, state: &mut CycleState) -> String {
    let info = pod.clone().info();
    let plugin = harness.registration.filter.as_ref().expect("Filter");
    let now = harness.handle.clock().now();
    let cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state, now };
    let nodes = NodeRef::all(&harness.snapshot);
    let mut block = Candidates::new(&nodes);
    plugin.filter_block(&cx, &mut block).expect("Filter does not fail");
    let fit = block.len();
    let letter = |node: &NodeRef<'_>| {
        let verdict = plugin.filter(&cx, *node, &mut Scratch::default()).expect("it does not fail");
        let known = [
            (Verdict::Pass, '.'),
            (Verdict::unschedulable(REASON_SKEW), 's'),
            (Verdict::unresolvable(REASON_LABEL), 'l'),
        ];
        let found = known.into_iter().find(|(known, _)| *known == verdict);
        found.unwrap_or_else(|| panic!("{verdict:?}")).1
    };
    let letters: String = nodes.iter().map(letter).collect();
    assert_eq!(letters.matches('.').count(), fit, "the block and the single nodes differ");
    letters
}

#[track_caller]
fn check(pod: PodFixture, nodes: Vec<NodeFixture>, pods: &[PodFixture], expected: &str) {
    let harness = Harness::with_args(system(), factory).cluster(nodes, pods);
    let (outcome, mut state) = harness.pre_filter(&pod);
    assert_eq!(outcome, Ok(PreFilterOutcome::Pass));
    assert_eq!(verdicts(&harness, &pod, &mut state), expected);
}

fn three_zones() -> Vec<NodeFixture> {
    vec![zone("a", "x"), zone("b", "y"), zone("c", "y"), zone("d", "z")]
}

#[test]
fn max_skew_is_relative_to_the_emptiest_domain() {
    let check = |more: Value, counts: &[(&str, usize)], expected: &str| {
        check(spreading(&[constraint("zone", &more)]), three_zones(), &crowd(counts), expected);
    };
    check(json!({}), &[], "....");
    check(json!({}), &[("a", 1)], "s...");
    check(json!({}), &[("a", 1), ("b", 1)], "sss.");
    check(json!({}), &[("a", 1), ("b", 1), ("d", 1)], "....");
    check(json!({"maxSkew": 2}), &[("a", 1), ("b", 2)], ".ss.");
    // The incoming pod counts only if the selector selects it.
    let others = json!({"labelSelector": {"matchLabels": {"app": "b"}}});
    check(others, &[("a", 3)], "....");
    let not_itself = json!({"labelSelector": {"matchExpressions": [
        {"key": "app", "operator": "Exists"}, {"key": "app", "operator": "In", "values": ["b"]}]}});
    check(not_itself, &[("a", 1)], "....");
}

#[test]
fn terminating_and_other_namespace_pods_do_not_count() {
    let check = |pod: PodFixture, expected: &str| {
        check(spreading(&[constraint("zone", &json!({}))]), three_zones(), &[pod], expected);
    };
    check(running("q", "a"), "s...");
    check(running("q", "a").terminating(), "....");
    check(running("q", "a").namespace("other"), "....");
}

#[test]
fn empty_and_absent_selectors_count_no_pod() {
    let check = |selector: Value, expected: &str| {
        let own = constraint("zone", &json!({"labelSelector": selector}));
        check(spreading(&[own]), three_zones(), &crowd(&[("a", 5)]), expected);
    };
    check(json!({}), "....");
    check(Value::Null, "....");
}

#[test]
fn fewer_domains_than_min_domains_count_as_zero() {
    let check = |min_domains: usize, expected: &str| {
        let own = constraint("zone", &json!({"minDomains": min_domains}));
        check(spreading(&[own]), three_zones(), &crowd(&[("a", 1), ("b", 1), ("d", 1)]), expected);
    };
    check(3, "....");
    check(4, "ssss");
}

#[test]
fn nodes_without_every_topology_key_are_rejected() {
    let own = || [constraint("zone", &json!({})), constraint("kubernetes.io/hostname", &json!({}))];
    let nameless = || node("e").set("metadata.labels", json!({"zone": "x"}));
    check(spreading(&own()), vec![zone("a", "x"), node("b"), nameless()], &[], ".ll");
    // A node without one of the labels adds nothing to the domain of another label.
    check(spreading(&own()), vec![zone("a", "x"), zone("b", "y"), nameless()], &crowd(&[("e", 4)]), "..l");
    // No node has all topology keys.
    check(spreading(&own()), vec![node("b"), nameless()], &[], "ll");
}

#[test]
fn every_constraint_must_be_satisfied() {
    let own = [constraint("zone", &json!({})), constraint("kubernetes.io/hostname", &json!({}))];
    check(spreading(&own), three_zones(), &crowd(&[("a", 1), ("b", 1), ("d", 1)]), "ss.s");
    check(spreading(&own), three_zones(), &crowd(&[("b", 1)]), ".ss.");
}

#[test]
fn node_inclusion_policies_exclude_nodes() {
    let check = |more: Value, expected: &str| {
        let own = spreading(&[constraint("zone", &more)]).node_selector("disk", "ssd");
        let ssd = |name, at| zone(name, at).label("disk", "ssd");
        let nodes = vec![ssd("a", "x"), ssd("b", "y").taint("t", "", "NoSchedule"), zone("c", "z")];
        check(own, nodes, &crowd(&[("a", 1), ("b", 2)]), expected);
    };
    check(json!({}), ".s.");
    check(json!({"nodeAffinityPolicy": "Ignore"}), "ss.");
    check(json!({"nodeTaintsPolicy": "Honor"}), "...");
    check(json!({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}), "s..");
}

#[test]
fn default_constraints_may_be_hard() {
    let own = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
    let check = |args: PodTopologySpreadArgs, selector: Value, expected: Option<&str>| {
        let harness = Harness::with_args(args, factory).cluster(three_zones(), &crowd(&[("a", 1)]));
        add_service(harness.handle.listers(), &selector);
        let pod = pod("p").label("app", "a");
        let (outcome, mut state) = harness.pre_filter(&pod);
        let skips = outcome.expect("PreFilter does not fail") == PreFilterOutcome::Skip;
        let found = (!skips).then(|| verdicts(&harness, &pod, &mut state));
        assert_eq!(found.as_deref(), expected);
    };
    check(list(std::slice::from_ref(&own)), json!({"app": "a"}), Some("s..."));
    check(list(&[own]), json!({"app": "b"}), None);
    check(system(), json!({"app": "a"}), None);
}

#[test]
fn without_hard_constraints_the_filter_is_skipped() {
    let harness = Harness::with_args(system(), factory).cluster(three_zones(), &[]);
    let check = |pod: PodFixture| assert_eq!(harness.pre_filter(&pod).0, Ok(PreFilterOutcome::Skip));
    check(pod("p"));
    check(spreading(&[constraint("zone", &json!({"whenUnsatisfiable": "ScheduleAnyway"}))]));
    let bare = harness.bare_filter(&pod("p"), node("n")).expect_err("no state");
    assert_eq!(bare.to_string(), "reading \"PreFilterPodTopologySpread\" from cycleState: not found");
    let broken = constraint("zone", &json!({"labelSelector": {"matchLabels": {"app": "not a value!"}}}));
    let error = harness.pre_filter(&spreading(&[broken])).0.expect_err("the selector is broken").to_string();
    assert!(
        error.starts_with("get constraints from pod: obtaining pod's hard topology spread constraints: "),
        "{error}"
    );
}

/// Adds pods to nodes (`+`) or removes them (`-`) and checks the new verdicts.
#[track_caller]
fn check_moves(own: &[Value], counts: &[(&str, usize)], moves: &[(char, PodFixture)], expected: &str) {
    let harness = Harness::with_args(system(), factory).cluster(three_zones(), &crowd(counts));
    let pod = spreading(own);
    let (_, state) = harness.pre_filter(&pod);
    let mut what_if = state.clone();
    let extensions =
        harness.registration.pre_filter.as_ref().and_then(|plugin| plugin.extensions()).expect("extensions");
    let info = pod.clone().info();
    let now = harness.handle.clock().now();
    for (direction, moved) in moves {
        let moved = moved.clone().info();
        let node = moved.pod().node_name().and_then(|name| NodeRef::named(&harness.snapshot, name));
        let node = node.expect("a node of the snapshot");
        let mut cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut what_if, now };
        let verdict = match direction {
            '+' => extensions.add_pod(&mut cx, &moved, node),
            _ => extensions.remove_pod(&mut cx, &moved, node),
        };
        assert_eq!(verdict, Ok(Verdict::Pass));
    }
    assert_eq!(verdicts(&harness, &pod, &mut what_if), expected);
    let mut untouched = state.clone();
    let before = verdicts(&harness, &pod, &mut untouched);
    assert_eq!(verdicts(&harness, &pod, &mut state.clone()), before, "a what-if stays one");
}

#[test]
fn add_and_remove_pod_update_the_counts() {
    let own = [constraint("zone", &json!({}))];
    let check = |counts: &[(&str, usize)], moves: &[(char, PodFixture)], expected: &str| {
        check_moves(&own, counts, moves, expected);
    };
    check(&[("a", 1)], &[('-', running("a-0", "a"))], "....");
    check(&[], &[('+', running("q", "a"))], "s...");
    check(&[("a", 1), ("b", 1)], &[('+', running("q", "d"))], "....");
    check(&[("a", 2), ("b", 1), ("d", 1)], &[('-', running("a-0", "a")), ('-', running("a-1", "a"))], ".sss");
    check(&[("a", 2), ("b", 1), ("d", 1)], &[('-', running("a-0", "a")), ('+', running("a-0", "a"))], "s...");
    // A pod of another namespace, and a pod that is not selected, change nothing.
    check(&[], &[('+', running("q", "a").namespace("other"))], "....");
    check(&[], &[('+', pod("q").label("app", "b").on("a"))], "....");
    // The pod was never counted, because it is being deleted. Its removal still counts, so the minimum count becomes negative.
    check(&[], &[('-', running("q", "a").terminating())], ".sss");
}

#[test]
fn add_pod_on_an_excluded_node_changes_nothing() {
    let check = |more: Value, expected: &str| {
        let moved = [('+', running("q", "a"))];
        let picky = constraint("zone", &more);
        let harness = Harness::with_args(system(), factory).cluster(three_zones(), &[]);
        let pod = spreading(std::slice::from_ref(&picky)).node_selector("zone", "y");
        let (_, mut state) = harness.pre_filter(&pod);
        let info = pod.clone().info();
        let plugin = harness.registration.pre_filter.as_ref().expect("PreFilter");
        let now = harness.handle.clock().now();
        let mut cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
        let node = NodeRef::all(&harness.snapshot)[0];
        let extensions = plugin.extensions().expect("extensions");
        assert_eq!(extensions.add_pod(&mut cx, &moved[0].1.clone().info(), node), Ok(Verdict::Pass));
        assert_eq!(verdicts(&harness, &pod, &mut state), expected);
    };
    check(json!({}), "....");
    check(json!({"nodeAffinityPolicy": "Ignore"}), "s...");
}

#[test]
fn extender_nodes_are_filtered_by_their_labels() {
    let harness = Harness::with_args(system(), factory).cluster(three_zones(), &crowd(&[("a", 1)]));
    let pod = spreading(&[constraint("zone", &json!({}))]);
    let (_, mut state) = harness.pre_filter(&pod);
    let info = pod.info();
    let now = harness.handle.clock().now();
    let cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
    let plugin = harness.registration.filter.as_ref().expect("Filter");
    let check = |node: NodeFixture, expected: Verdict| {
        let info = node.info();
        assert_eq!(plugin.filter(&cx, NodeRef::outside(&info), &mut Scratch::default()), Ok(expected));
    };
    check(zone("new", "x"), Verdict::unschedulable(REASON_SKEW));
    check(zone("new", "elsewhere"), Verdict::Pass);
    check(node("new"), Verdict::unresolvable(REASON_LABEL));
}
