//! Tests of every reason, outcome and hint of `NodeAffinity`.

#![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

use serde_json::{Value, json};

use super::*;
use crate::config::{FeatureGates, Gate};
use crate::framework::CycleState;
use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

fn required(terms: Value) -> PodFixture {
    pod("p").set(
        "spec.affinity",
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}),
    )
}

fn preferring(terms: Value) -> PodFixture {
    pod("p").set("spec.affinity", json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}))
}

fn label_term(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

fn named(names: &[&str]) -> Value {
    json!({"key": "metadata.name", "operator": "In", "values": names})
}

fn args(added: Value) -> NodeAffinityArgs {
    NodeAffinityArgs { added_affinity: Some(serde_json::from_value(added).expect("affinity")) }
}

fn adding_required(terms: Value) -> Harness {
    let added = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    Harness::with_args(args(added), factory)
}

fn rejected() -> Verdict {
    Verdict::unresolvable("node(s) didn't match Pod's node affinity/selector")
}

#[test]
fn node_selector_and_required_terms_must_both_match() {
    let check = |pod: &PodFixture, node: NodeFixture, fits: bool| {
        let expected = if fits { Verdict::Pass } else { rejected() };
        Harness::new(factory).check_filter(pod, node, &expected);
    };
    let disk = || node("n").label("disk", "ssd");
    check(&pod("p"), node("n"), true);
    check(&pod("p").node_selector("disk", "ssd"), disk(), true);
    check(&pod("p").node_selector("disk", "hdd"), disk(), false);
    check(&required(json!([label_term("disk", "In", &["ssd", "hdd"])])), disk(), true);
    check(&required(json!([label_term("disk", "NotIn", &["ssd"])])), disk(), false);
    check(&required(json!([label_term("disk", "In", &["x"]), label_term("disk", "Exists", &[])])), disk(), true);
    check(&required(json!([label_term("disk", "Exists", &[])])).node_selector("a", "b"), disk(), false);
    check(&required(json!([])), node("n"), false);
    check(&required(json!([{}])), node("n"), false);
}

#[test]
fn malformed_terms_match_nothing() {
    let bad = label_term("disk", "Near", &["x"]);
    let harness = Harness::new(factory);
    harness.check_filter(&required(json!([bad])), node("n"), &rejected());
    let good = label_term("disk", "DoesNotExist", &[]);
    harness.check_filter(&required(json!([bad, good])), node("n"), &Verdict::Pass);
}

#[test]
fn filter_works_without_pre_filter() {
    let harness = Harness::new(factory);
    assert_eq!(harness.bare_filter(&pod("p").node_selector("a", "b"), node("n")), Ok(rejected()));
    assert_eq!(harness.bare_filter(&pod("p"), node("n")), Ok(Verdict::Pass));
}

#[test]
fn pre_filter_narrows_to_named_nodes() {
    let check = |pod: &PodFixture, expected: PreFilterOutcome| {
        assert_eq!(Harness::new(factory).pre_filter(pod).0, Ok(expected), "{pod:?}");
    };
    let nodes = |names: &[&str]| PreFilterOutcome::Nodes(names.iter().map(|name| (*name).to_owned()).collect());
    let fields = |requirements: Value| json!({"matchFields": requirements});
    check(&pod("p"), PreFilterOutcome::Skip);
    check(&preferring(json!([])), PreFilterOutcome::Skip);
    check(&pod("p").node_selector("a", "b"), PreFilterOutcome::Pass);
    check(&required(json!([])), PreFilterOutcome::Pass);
    check(&required(json!([fields(json!([named(&["a"])]))])), nodes(&["a"]));
    check(&required(json!([fields(json!([named(&["b"])])), fields(json!([named(&["a"])]))])), nodes(&["a", "b"]));
    check(&required(json!([fields(json!([named(&["a"])])), label_term("x", "Exists", &[])])), PreFilterOutcome::Pass);
    check(&required(json!([fields(json!([named(&["a", "b"]), named(&["b", "c"])]))])), nodes(&["b"]));
    let conflict = PreFilterOutcome::Reject(Rejection::unresolvable("pod affinity terms conflict"));
    check(&required(json!([fields(json!([named(&["a"]), named(&["b"])]))])), conflict);
    let not_in = json!([{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]);
    check(&required(json!([fields(not_in)])), PreFilterOutcome::Pass);
}

#[test]
fn added_required_terms_are_checked_first() {
    let harness = adding_required(json!([label_term("pool", "In", &["a"])]));
    let enforced = Verdict::unresolvable("node(s) didn't match scheduler-enforced node affinity");
    assert_eq!(harness.pre_filter(&pod("p")).0, Ok(PreFilterOutcome::Pass));
    harness.check_filter(&pod("p"), node("n"), &enforced);
    harness.check_filter(&pod("p").node_selector("x", "y"), node("n"), &enforced);
    harness.check_filter(&pod("p"), node("n").label("pool", "a"), &Verdict::Pass);
    harness.check_filter(&pod("p").node_selector("x", "y"), node("n").label("pool", "a"), &rejected());
}

#[test]
fn malformed_added_terms_are_errors() {
    let check = |added: Value, expected: &str| {
        let built = Harness::build(FeatureGates::default(), args(added), Ok(()), factory);
        assert_eq!(built.err().map(|error| error.to_string()).as_deref(), Some(expected));
    };
    let near = r#"Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt""#;
    let at = "nodeSelectorTerms[0].matchExpressions[0].operator";
    let bad = json!({"nodeSelectorTerms": [label_term("a", "Near", &["x"])]});
    let first = format!("addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.{at}: {near}");
    check(json!({"requiredDuringSchedulingIgnoredDuringExecution": bad}), &first);
    let preferred = json!([{"weight": 1, "preference": label_term("a", "Near", &["x"])}]);
    let second = format!(
        "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0].operator: {near}"
    );
    check(
        json!({
            "requiredDuringSchedulingIgnoredDuringExecution": bad,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }),
        &format!("[{first}, {second}]"),
    );
}

fn check_scores(harness: Harness, pod: &PodFixture, raw: &[i64], normalized: &[i64]) {
    let nodes = vec![node("a").label("disk", "ssd"), node("b").label("disk", "ssd").label("pool", "x"), node("c")];
    let harness = harness.cluster(nodes, &[]);
    let (outcome, mut state) = harness.pre_score(pod);
    assert_eq!(outcome, Ok(PreScoreOutcome::Pass));
    let expected = Ok((raw.to_vec(), normalized.to_vec()));
    assert_eq!(harness.scores(pod, &mut state), expected);
    assert_eq!(harness.scores(pod, &mut CycleState::default()), expected, "without PreScore");
}

#[test]
fn matching_preferred_terms_add_their_weights() {
    let both = preferring(json!([
        {"weight": 10, "preference": label_term("disk", "In", &["ssd"])},
        {"weight": 5, "preference": label_term("pool", "Exists", &[])},
        {"weight": 0, "preference": label_term("disk", "Near", &["x"])},
        {"weight": 7, "preference": {}},
    ]));
    check_scores(Harness::new(factory), &both, &[10, 15, 0], &[66, 100, 0]);
    check_scores(Harness::new(factory), &preferring(json!([])), &[0, 0, 0], &[0, 0, 0]);
    let added = json!({"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 15, "preference": label_term("disk", "DoesNotExist", &[])}]});
    check_scores(Harness::with_args(args(added.clone()), factory), &both, &[10, 15, 15], &[66, 100, 100]);
    check_scores(Harness::with_args(args(added), factory), &pod("p"), &[0, 0, 15], &[0, 0, 100]);
}

#[test]
fn pods_without_preferred_terms_skip_scoring() {
    let harness = Harness::new(factory);
    assert_eq!(harness.pre_score(&pod("p")).0, Ok(PreScoreOutcome::Skip));
    assert_eq!(harness.pre_score(&required(json!([]))).0, Ok(PreScoreOutcome::Skip));
    let bad = preferring(json!([{"weight": 1, "preference": label_term("a", "In", &[])}]));
    let error = harness.pre_score(&bad).0.expect_err("no values");
    assert!(error.to_string().starts_with("[0].matchExpressions[0].values: Invalid value: "), "{error}");
}

#[test]
fn score_without_pre_score_compiles_the_terms() {
    let harness = Harness::new(factory).cluster(vec![node("a")], &[]);
    let bad = preferring(json!([{"weight": 1, "preference": label_term("a", "In", &[])}]));
    let error = harness.scores(&bad, &mut CycleState::default()).expect_err("no values").to_string();
    assert!(error.starts_with("[0].matchExpressions[0].values: Invalid value: "), "{error}");
}

#[test]
fn newly_matching_nodes_requeue() {
    let harness = Harness::new(factory);
    assert_eq!(harness.registered[0].event.action, ActionType::ADD | ActionType::UPDATE_NODE_LABEL);
    let pod = pod("p").node_selector("disk", "ssd");
    let disk = || node("n").label("disk", "ssd");
    assert_eq!(harness.node_add(&pod, 0, disk()), QueueingHint::Queue);
    assert_eq!(harness.node_add(&pod, 0, node("n")), QueueingHint::Skip);
    assert_eq!(harness.node_update(&pod, 0, node("n"), disk()), QueueingHint::Queue);
    assert_eq!(harness.node_update(&pod, 0, disk(), disk().label("a", "b")), QueueingHint::Skip);
    assert_eq!(harness.node_update(&pod, 0, disk(), node("n")), QueueingHint::Skip);
}

#[test]
fn nodes_outside_the_added_terms_do_not_requeue() {
    let harness = adding_required(json!([label_term("pool", "Exists", &[])]));
    assert_eq!(harness.node_add(&pod("p"), 0, node("n")), QueueingHint::Skip);
    assert_eq!(harness.node_add(&pod("p"), 0, node("n").label("pool", "")), QueueingHint::Queue);
    // The pod's own affinity matched before the update. The hint does not check whether the profile's affinity matched.
    assert_eq!(harness.node_update(&pod("p"), 0, node("n"), node("n").label("pool", "")), QueueingHint::Skip);
}

#[test]
fn hints_fail_on_malformed_terms() {
    let harness = Harness::new(factory);
    let pod = required(json!([label_term("a", "Near", &[])]));
    let objects = EventObjects { old: None, new: Some(crate::model::Object::Node(node("n").build())) };
    let hint = harness.registered[0].hint.as_ref().expect("a hint");
    assert!(hint(&pod.info(), &objects).is_err());
}

#[test]
fn without_hints_taint_updates_are_registered() {
    let gates = FeatureGates::at(33).with(Gate::SchedulerQueueingHints, false);
    let expected = ActionType::ADD | ActionType::UPDATE_NODE_LABEL | ActionType::UPDATE_NODE_TAINT;
    assert_eq!(Harness::with_gates(gates, factory).registered[0].event.action, expected);
}

#[test]
fn signature_has_affinity_and_selector() {
    Harness::new(factory).check_signature(
        &pod("p").node_selector("a", "b"),
        &[("v1.Pod.Spec.Affinity.NodeAffinity", "null"), ("v1.Pod.Spec.Affinity.NodeSelector", r#"{"a":"b"}"#)],
    );
}
