//! Scoring by preferred terms of the incoming pod and of existing pods.

use serde_json::json;

use super::{Harness, and, app, host, malformed, near, of, rather, with_args};
use crate::framework::{CycleContext, CycleState, NodeRef, NodeScores, PreScoreOutcome};
use crate::testing::{NodeFixture, PodFixture, pod};

/// Checks the four nodes' raw and normalized scores. `None` means that `PreScore` skips the plugin.
#[track_caller]
fn check(harness: &Harness, pod: &PodFixture, expected: Option<([i64; 4], [i64; 4])>) {
    let (outcome, mut state) = harness.pre_score(pod);
    let found = match outcome.expect("PreScore does not fail") {
        PreScoreOutcome::Skip => None,
        PreScoreOutcome::Pass => Some(harness.scores(pod, &mut state).expect("Score does not fail")),
    };
    assert_eq!(found, expected.map(|(raw, normalized)| (raw.to_vec(), normalized.to_vec())), "{pod:?}");
}

#[test]
fn own_preferred_terms_raise_and_lower_scores() {
    let existing = [of("a", "a").on("n1"), of("b", "a").on("n1"), of("c", "a").on("n3"), of("d", "b").on("n2")];
    let harness = with_args(&existing, 1, false);
    let likes = |key: &str| rather(pod("p"), "podAffinity", 10, &app(key, "a"));
    let dislikes = |key: &str| rather(pod("p"), "podAntiAffinity", 10, &app(key, "a"));
    check(&harness, &pod("p"), None);
    check(&harness, &likes("zone"), Some(([20, 20, 10, 0], [100, 100, 50, 0])));
    check(&harness, &likes("host"), Some(([20, 0, 10, 0], [100, 0, 50, 0])));
    check(&harness, &dislikes("zone"), Some(([-20, -20, -10, 0], [0, 0, 50, 100])));
    check(&harness, &likes("no-such-key"), None);
    check(&harness, &rather(pod("p"), "podAffinity", 10, &app("zone", "c")), None);
    let torn = rather(likes("host"), "podAntiAffinity", 7, &app("zone", "b"));
    check(&harness, &torn, Some(([13, -7, 10, 0], [100, 0, 85, 35])));
    // A term matched, although all scores are zero.
    let equal = rather(likes("zone"), "podAntiAffinity", 10, &app("zone", "a"));
    check(&harness, &equal, Some(([0; 4], [0; 4])));
}

#[test]
fn own_preferred_terms_match_the_selected_namespaces() {
    let existing = [of("a", "a").on("n1").namespace("other")];
    let harness = with_args(&existing, 1, false);
    let likes = |field: &str, value: serde_json::Value| {
        rather(pod("p"), "podAffinity", 1, &and(app("host", "a"), field, &value))
    };
    let found = Some(([1, 0, 0, 0], [100, 0, 0, 0]));
    check(&harness, &likes("namespaces", json!(["default"])), None);
    check(&harness, &likes("namespaces", json!(["other"])), found);
    check(&harness, &likes("namespaceSelector", json!({"matchLabels": {"team": "y"}})), found);
    check(&harness, &likes("namespaceSelector", json!({"matchLabels": {"team": "x"}})), None);
}

#[test]
fn terms_of_existing_pods_raise_and_lower_scores() {
    let likes = rather(pod("l"), "podAffinity", 10, &app("zone", "a")).on("n1");
    let dislikes = rather(pod("d"), "podAntiAffinity", 4, &app("host", "a")).on("n2");
    let needs = near(pod("r"), [app("zone", "a")]).on("n3");
    let existing = [likes, dislikes, needs];
    check(&with_args(&existing, 5, false), &of("p", "a"), Some(([10, 6, 5, 0], [100, 60, 50, 0])));
    check(&with_args(&existing, 0, false), &of("p", "a"), Some(([10, 6, 0, 0], [100, 60, 0, 0])));
    check(&with_args(&existing, 5, false), &of("p", "b"), None);
    check(&with_args(&existing, 5, false), &of("p", "a").namespace("other"), None);
    check(&with_args(&existing, 5, true), &of("p", "a"), None);
    // The argument has no effect, because the incoming pod has preferred terms.
    let own = rather(of("p", "a"), "podAffinity", 1, &app("zone", "c"));
    check(&with_args(&existing, 5, true), &own, Some(([10, 6, 5, 0], [100, 60, 50, 0])));
}

#[test]
fn malformed_terms_and_missing_state_are_errors() {
    let harness = with_args(&[], 1, false);
    let bad = rather(pod("p"), "podAntiAffinity", 1, &malformed());
    let error = harness.pre_score(&bad).0.expect_err("it cannot be compiled").to_string();
    let text = "failed to parse pod: preferredAntiAffinityTerms: \"Near\" is not a valid label selector operator";
    assert_eq!(error, text);
    let error = harness.scores(&pod("p"), &mut CycleState::default()).expect_err("nothing to read");
    assert_eq!(error.to_string(), "failed to read \"PreScoreInterPodAffinity\" from cycleState: not found");
    let (info, mut state, now) = (pod("p").info(), CycleState::default(), harness.handle.clock().now());
    let cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
    let normalize = harness.registration.normalize.as_ref().expect("Normalize");
    let mut none = NodeScores { nodes: &[], scores: &mut [], scratch: &[] };
    assert_eq!(normalize.normalize(&cx, &mut none), Err(error));
}

/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go#InterPodAffinity.Score @v1.36.3`, which reads the
/// labels of the node object that it gets.
#[test]
fn extender_nodes_are_scored_by_their_labels() {
    let harness = with_args(&[of("a", "a").on("n1")], 1, false);
    let pod = rather(pod("p"), "podAffinity", 10, &app("zone", "a"));
    let mut state = harness.pre_score(&pod).1;
    let (info, now) = (pod.info(), harness.handle.clock().now());
    let cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
    let plugin = harness.registration.score.as_ref().expect("Score");
    let check = |node: NodeFixture, expected: i64| {
        assert_eq!(plugin.score(&cx, NodeRef::outside(&node.info()), None), Ok(expected));
    };
    check(host("n3").label("zone", "a"), 10);
    check(host("n1").label("zone", "b"), 0);
    check(host("n1").label("zone", "elsewhere"), 0);
    check(host("n1"), 0);
}
