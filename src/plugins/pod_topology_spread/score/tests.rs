//! Tests of scoring by soft constraints.

#![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

use serde_json::{Value, json};

use super::*;
use crate::plugins::pod_topology_spread::tests::{add_service, constraint, list, soft, spreading, system};
use crate::plugins::pod_topology_spread::{PodTopologySpreadArgs, factory};
use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

fn crowd(counts: &[(&str, usize)]) -> Vec<PodFixture> {
    let running = |on: &str, at: usize| pod(&format!("{on}-{at}")).label("app", "a").on(on);
    counts.iter().flat_map(|(on, count)| (0..*count).map(move |at| running(on, at))).collect()
}

#[track_caller]
fn check_with(
    args: PodTopologySpreadArgs,
    pod: PodFixture,
    nodes: Vec<NodeFixture>,
    pods: &[PodFixture],
    raw: &[i64],
    normal: &[i64],
) {
    let harness = Harness::with_args(args, factory).cluster(nodes, pods);
    add_service(harness.handle.listers(), &json!({"app": "a"}));
    let (outcome, mut state) = harness.pre_score(&pod);
    assert_eq!(outcome, Ok(PreScoreOutcome::Pass));
    assert_eq!(harness.scores(&pod, &mut state), Ok((raw.to_vec(), normal.to_vec())));
}

fn two_zones() -> Vec<NodeFixture> {
    vec![node("a").zone("x"), node("b").zone("x"), node("c").zone("y"), node("d")]
}

#[test]
fn fuller_domains_score_lower() {
    let check = |own: &[Value], counts: &[(&str, usize)], raw: &[i64], normal: &[i64]| {
        check_with(system(), spreading(own), two_zones(), &crowd(counts), raw, normal);
    };
    // ln 4 = 1.386 per pod with two zones. The node without a zone is left out.
    check(&[soft(ZONE, 1)], &[("a", 3), ("c", 1)], &[4, 4, 1, 0], &[25, 25, 100, 0]);
    check(&[soft(ZONE, 1)], &[], &[0, 0, 0, 0], &[100, 100, 100, 0]);
    // ln 6 = 1.792 per pod with four nodes.
    check(&[soft(HOSTNAME, 1)], &[("a", 2), ("d", 1)], &[4, 0, 0, 2], &[0, 100, 100, 50]);
    // A larger maximum skew makes the differences smaller.
    check(&[soft(HOSTNAME, 5)], &[("a", 2), ("d", 1)], &[8, 4, 4, 6], &[50, 100, 100, 75]);
    // With both labels, ln 5 = 1.609 per pod with three nodes.
    check(&[soft(ZONE, 1), soft(HOSTNAME, 1)], &[("a", 2), ("c", 1)], &[6, 3, 3, 0], &[50, 100, 100, 0]);
    // A node that is left out adds nothing to the domains of other labels.
    let region = [soft("region", 1), soft(ZONE, 1)];
    let nodes = || vec![node("a").label("region", "r").zone("x"), node("b").label("region", "r")];
    check_with(system(), spreading(&region), nodes(), &crowd(&[("b", 3)]), &[0, 0], &[100, 0]);
}

#[test]
fn system_defaults_score_nodes_without_labels() {
    let check = |counts: &[(&str, usize)], raw: &[i64], normal: &[i64]| {
        check_with(system(), pod("p").label("app", "a"), two_zones(), &crowd(counts), raw, normal);
    };
    // Hostnames add 2, zones 4. ln 6 per pod on the node, ln 5 per pod in the zone. The nodes without a zone count as one zone.
    check(&[], &[6, 6, 6, 2], &[33, 33, 33, 100]);
    check(&[("a", 1), ("d", 2)], &[9, 8, 6, 6], &[66, 77, 100, 100]);
}

#[test]
fn list_defaults_ignore_nodes_without_labels() {
    let listed = |key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"});
    let args = list(&[listed(HOSTNAME), listed(ZONE)]);
    check_with(args, pod("p").label("app", "a"), two_zones(), &crowd(&[("a", 1)]), &[3, 1, 0, 0], &[0, 66, 100, 0]);
}

#[test]
fn missing_and_empty_labels_are_one_domain() {
    let nodes = vec![node("a").zone(""), node("b"), node("c").zone("x")];
    let pod = pod("p").label("app", "a");
    // ln 5 per pod on a node, ln 4 per pod in a zone. Both pods count for the zone with the empty name.
    check_with(system(), pod, nodes, &crowd(&[("a", 1), ("b", 1)]), &[10, 4, 6], &[40, 100, 80]);
}

#[test]
fn node_inclusion_policies_exclude_nodes() {
    let check = |more: Value, raw: &[i64]| {
        let mut own = soft(ZONE, 1);
        own.as_object_mut().expect("an object").extend(more.as_object().expect("fields").clone());
        let pod = spreading(&[own]).node_selector("disk", "ssd");
        let ssd = |name: &str, zone: &str| node(name).zone(zone).label("disk", "ssd");
        let nodes = vec![ssd("a", "x"), ssd("b", "x").taint("t", "", "NoSchedule"), node("c").zone("x"), ssd("d", "y")];
        let harness = Harness::with_args(system(), factory).cluster(nodes, &crowd(&[("a", 1), ("b", 2), ("c", 4)]));
        let mut state = harness.pre_score(&pod).1;
        assert_eq!(harness.scores(&pod, &mut state).expect("scores").0, raw);
    };
    check(json!({}), &[4, 4, 4, 0]);
    check(json!({"nodeAffinityPolicy": "Ignore"}), &[10, 10, 10, 0]);
    check(json!({"nodeTaintsPolicy": "Honor"}), &[1, 1, 1, 0]);
}

#[test]
fn only_domains_of_feasible_nodes_count() {
    let pod = spreading(&[soft(ZONE, 1)]);
    let harness = Harness::with_args(system(), factory).cluster(two_zones(), &crowd(&[("a", 3), ("c", 1)]));
    let info = pod.info();
    let mut state = CycleState::default();
    let now = harness.handle.clock().now();
    let mut cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
    // One node is in zone x. The other, as an extender may return it, is in a zone that no node of the snapshot has.
    let strange = node("b").zone("elsewhere").info();
    let nodes = [NodeRef::all(&harness.snapshot)[0], NodeRef::outside(&strange)];
    let plugin = &harness.registration;
    assert_eq!(plugin.pre_score.as_ref().expect("PreScore").pre_score(&mut cx, &nodes), Ok(PreScoreOutcome::Pass));
    let mut scores = [0; 2];
    let mut list = NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] };
    plugin.score.as_ref().expect("Score").score_block(&cx, &mut list).expect("it does not fail");
    assert_eq!(list.scores, &[4, 0]);
    plugin.normalize.as_ref().expect("Normalize").normalize(&cx, &mut list).expect("it does not fail");
    assert_eq!(scores, [0, 100]);
}

#[test]
fn zone_known_only_to_an_extender_counts_no_pods() {
    let crowd = crowd(&[("d", 2)]);
    let harness = Harness::with_args(system(), factory).cluster(two_zones(), &crowd);
    add_service(harness.handle.listers(), &json!({"app": "a"}));
    let info = pod("p").label("app", "a").info();
    let (mut state, now) = (CycleState::default(), harness.handle.clock().now());
    let mut cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
    let (strange, nameless) = (node("a").zone("elsewhere").info(), node("b").zone("").info());
    let nodes = [NodeRef::all(&harness.snapshot)[3], NodeRef::outside(&strange), NodeRef::outside(&nameless)];
    let plugin = &harness.registration;
    assert_eq!(plugin.pre_score.as_ref().expect("PreScore").pre_score(&mut cx, &nodes), Ok(PreScoreOutcome::Pass));
    // Hostnames add 2, and zones add 4 for nodes with a zone. ln 5 per pod on the node, ln 4 per pod in the zone.
    let score = |node| plugin.score.as_ref().expect("Score").score(&cx, node, None);
    assert_eq!(nodes.map(score), [Ok(5), Ok(6), Ok(9)]);
}

#[test]
fn without_soft_constraints_scoring_is_skipped() {
    let check = |args: PodTopologySpreadArgs, nodes: Vec<NodeFixture>, pod: PodFixture| {
        let harness = Harness::with_args(args, factory).cluster(nodes, &[]);
        assert_eq!(harness.pre_score(&pod).0, Ok(PreScoreOutcome::Skip));
    };
    check(system(), two_zones(), pod("p"));
    check(system(), two_zones(), spreading(&[constraint(ZONE, &json!({}))]));
    check(list(&[]), two_zones(), pod("p"));
    check(system(), Vec::new(), spreading(&[soft(ZONE, 1)]));
}

#[test]
fn missing_state_and_malformed_selectors_are_errors() {
    let harness = Harness::with_args(system(), factory).cluster(two_zones(), &[]);
    let error = harness.scores(&pod("p"), &mut CycleState::default()).expect_err("no state");
    assert_eq!(error.to_string(), "error reading \"PreScorePodTopologySpread\" from cycleState: not found");
    let more =
        json!({"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "not a value!"}}});
    let error = harness.pre_score(&spreading(&[constraint(ZONE, &more)])).0.expect_err("the selector is broken");
    let expected = "calculating preScoreState: obtaining pod's soft topology spread constraints: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}
