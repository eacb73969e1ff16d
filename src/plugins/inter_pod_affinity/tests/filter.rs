//! Filtering by required terms: every reason, namespaces, and added and removed pods.

use serde_json::json;

use super::{Harness, and, app, away, harness, malformed, near, of};
use crate::framework::{CycleContext, CycleState, NodeRef, PluginError, PreFilterOutcome, Rejection, Verdict};
use crate::testing::{PodFixture, pod};

/// The verdict on each node as a letter: `+` fits, `n` violates the pod's affinity, `a` violates its anti-affinity, `e`
/// violates an existing pod's anti-affinity.
fn verdicts(harness: &Harness, pod: &PodFixture, state: &mut CycleState) -> String {
    let letter = |verdict: &Verdict| {
        let affinity = Verdict::unresolvable("node(s) didn't match pod affinity rules");
        let anti_affinity = Verdict::unschedulable("node(s) didn't match pod anti-affinity rules");
        let existing = Verdict::unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");
        [(Verdict::Pass, '+'), (affinity, 'n'), (anti_affinity, 'a'), (existing, 'e')]
            .into_iter()
            .find_map(|(known, letter)| (known == *verdict).then_some(letter))
            .expect("a known verdict")
    };
    let nodes = NodeRef::all(&harness.snapshot).into_iter();
    nodes.map(|node| letter(&harness.filter(pod, node, state).expect("Filter does not fail"))).collect()
}

#[track_caller]
fn check(pod: &PodFixture, existing: &[PodFixture], expected: &str) {
    let harness = harness(existing);
    let (outcome, mut state) = harness.pre_filter(pod);
    let found = match outcome.expect("PreFilter does not fail") {
        PreFilterOutcome::Skip => "skip".to_owned(),
        PreFilterOutcome::Pass => verdicts(&harness, pod, &mut state),
        other => format!("{other:?}"),
    };
    assert_eq!(found, expected, "{pod:?}");
}

#[test]
fn required_affinity_needs_a_pod_matching_all_terms() {
    let (zone, host) = (app("zone", "a"), app("host", "a"));
    check(&pod("p"), &[of("a", "a").on("n1")], "skip");
    check(&near(pod("p"), []), &[of("a", "a").on("n1")], "skip");
    check(&near(pod("p"), [zone.clone()]), &[of("a", "a").on("n1")], "++nn");
    check(&near(pod("p"), [host.clone()]), &[of("a", "a").on("n1")], "+nnn");
    check(&near(pod("p"), [zone.clone(), host.clone()]), &[of("a", "a").on("n1")], "+nnn");
    check(&near(pod("p"), [zone.clone(), host]), &[of("a", "a").on("n4")], "nnnn");
    check(&near(pod("p"), [zone.clone()]), &[of("a", "a").on("n1").terminating()], "++nn");
    let other = app("host", "b");
    check(&near(pod("p"), [zone.clone(), other.clone()]), &[of("a", "a").on("n1"), of("b", "b").on("n2")], "nnnn");
    check(&near(pod("p"), [app("no-such-key", "a")]), &[of("a", "a").on("n1")], "nnnn");
    check(&near(pod("p"), [json!({"topologyKey": "zone"})]), &[of("a", "a").on("n1")], "nnnn");
    check(&near(pod("p"), [json!({"topologyKey": "zone", "labelSelector": {}})]), &[of("a", "a").on("n3")], "nn+n");
}

#[test]
fn first_pod_matching_its_own_terms_is_accepted() {
    let zone = app("zone", "a");
    check(&near(of("p", "a"), [zone.clone()]), &[], "+++n");
    check(&near(pod("p"), [zone.clone()]), &[], "nnnn");
    check(&near(of("p", "a"), [zone.clone()]), &[of("a", "a").on("n3")], "nn+n");
    check(&near(of("p", "a"), [zone.clone(), app("host", "b")]), &[], "nnnn");
    // A pod on a node without the topology key does not count.
    check(&near(of("p", "a"), [zone]), &[of("a", "a").on("n4")], "+++n");
}

#[test]
fn anti_affinity_rejects_domains_with_matching_pods() {
    let (zone, host) = (app("zone", "a"), app("host", "b"));
    let existing = [of("a", "a").on("n1"), of("b", "b").on("n4")];
    check(&away(pod("p"), [zone.clone()]), &existing, "aa++");
    check(&away(pod("p"), [zone.clone(), host]), &existing, "aa+a");
    check(&away(of("p", "a"), [zone.clone()]), &[], "++++");
    check(&away(pod("p"), [zone.clone()]), &[of("a", "a").on("n4")], "++++");
    check(&near(away(pod("p"), [app("host", "a")]), [zone]), &existing, "a+nn");
}

#[test]
fn anti_affinity_of_existing_pods_rejects() {
    let exclusive = || away(of("e", "b"), [app("zone", "a")]).on("n1");
    check(&of("p", "a"), &[exclusive()], "ee++");
    check(&pod("p"), &[exclusive()], "skip");
    check(&of("p", "a"), &[exclusive().on("n4")], "skip");
    check(&of("p", "a"), &[away(of("e", "b"), [app("zone", "a"), malformed()]).on("n1")], "skip");
    check(&of("p", "a"), &[exclusive(), away(pod("f"), [app("host", "a")]).on("n3")], "eee+");
    check(&away(of("p", "a"), [app("host", "b")]), &[exclusive()], "ae++");
    check(&of("p", "a").namespace("other"), &[exclusive()], "skip");
}

#[test]
fn affinity_is_checked_first_and_terminating_pods_count() {
    let existing = [of("a", "a").on("n1").terminating(), away(of("e", "e"), [app("host", "p")]).on("n3").terminating()];
    // Node n3 has no pod with `app: a`. It has a pod with `app: e`, whose anti-affinity selects `p`.
    let torn = away(near(of("p", "p"), [app("zone", "a")]), [app("host", "e")]);
    check(&torn, &existing, "++nn");
    check(&away(of("p", "p"), [app("host", "e")]), &existing, "++a+");
    check(&of("p", "p"), &existing, "++e+");
}

#[test]
fn own_terms_match_the_selected_namespaces() {
    let existing = [of("a", "a").on("n1").namespace("other"), of("b", "a").on("n3").namespace("unknown")];
    let check = |field: &str, value: &serde_json::Value, expected: &str| {
        check(&near(pod("p"), [and(app("host", "a"), field, value)]), &existing, expected);
    };
    check("namespaces", &json!([]), "nnnn");
    check("namespaces", &json!(["other"]), "+nnn");
    check("namespaces", &json!(["other", "unknown"]), "+n+n");
    check("namespaceSelector", &json!({}), "+n+n");
    check("namespaceSelector", &json!({"matchLabels": {"team": "y"}}), "+nnn");
    check("namespaceSelector", &json!({"matchLabels": {"team": "x"}}), "nnnn");
    check("namespaceSelector", &json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}), "+nnn");
    // Selectors that match a namespace without labels select all namespaces.
    let not_y = json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["y"]}]});
    check("namespaceSelector", &not_y, "+n+n");
    check("namespaceSelector", &json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}), "+n+n");
}

#[test]
fn existing_terms_match_by_namespace_labels() {
    let check = |namespace: &str, field: &str, value: &serde_json::Value, expected: &str| {
        let exclusive = away(pod("e"), [and(app("host", "a"), field, value)]).on("n1");
        check(&of("p", "a").namespace(namespace), &[exclusive], expected);
    };
    let not_y = json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["y"]}]});
    check("other", "namespaces", &json!(["other"]), "e+++");
    check("other", "namespaceSelector", &json!({}), "e+++");
    check("other", "namespaceSelector", &json!({"matchLabels": {"team": "y"}}), "e+++");
    check("other", "namespaceSelector", &not_y, "skip");
    check("default", "namespaceSelector", &not_y, "e+++");
    check("unknown", "namespaceSelector", &not_y, "e+++");
    check("unknown", "namespaceSelector", &json!({"matchLabels": {"team": "y"}}), "skip");
}

#[test]
fn a_malformed_term_rejects_its_pod() {
    let text = "parsing pod: requiredAffinityTerms: \"Near\" is not a valid label selector operator";
    let outcome = harness(&[]).pre_filter(&near(pod("p"), [malformed()])).0;
    assert_eq!(outcome, Ok(PreFilterOutcome::Reject(Rejection::unresolvable(text))));
}

#[test]
fn filter_without_pre_filter_is_an_error() {
    let harness = harness(&[]);
    let node = NodeRef::all(&harness.snapshot)[0];
    let error = harness.filter(&pod("p"), node, &mut CycleState::default()).expect_err("nothing to read");
    assert_eq!(error.to_string(), "error reading \"PreFilterInterPodAffinity\" from cycleState: not found");
}

/// Adds `other` to a node or removes it, on a copy of the state.
fn what_if(
    harness: &Harness,
    state: &CycleState,
    pod: &PodFixture,
    other: &PodFixture,
    comes: bool,
) -> Result<CycleState, PluginError> {
    let (mut state, pod, other) = (state.clone(), pod.clone().info(), other.clone().info());
    let plugin = harness.registration.pre_filter.clone().expect("PreFilter");
    let extensions = plugin.extensions().expect("it counts pods");
    let node = NodeRef::named(&harness.snapshot, other.pod().node_name().expect("it is on a node")).expect("a node");
    let now = harness.handle.clock().now();
    let mut cx = CycleContext { pod: &pod, snapshot: &harness.snapshot, state: &mut state, now };
    let verdict = if comes {
        extensions.add_pod(&mut cx, &other, node)?
    } else {
        extensions.remove_pod(&mut cx, &other, node)?
    };
    assert_eq!(verdict, Verdict::Pass);
    Ok(state)
}

#[test]
fn add_and_remove_pod_update_the_state() {
    let existing = [of("a", "a").on("n1"), of("b", "b").on("n3"), away(pod("e"), [app("host", "p")]).on("n4")];
    let incoming = away(near(of("p", "p"), [app("zone", "a")]), [app("host", "b")]);
    let harness = harness(&existing);
    let (outcome, state) = harness.pre_filter(&incoming);
    assert_eq!(outcome, Ok(PreFilterOutcome::Pass));
    let check = |state: &CycleState, expected: &str| {
        assert_eq!(verdicts(&harness, &incoming, &mut state.clone()), expected);
    };
    let after = |state: &CycleState, other: &PodFixture, comes: bool| {
        what_if(&harness, state, &incoming, other, comes).expect("there is a state")
    };
    check(&state, "++nn");
    check(&after(&state, &of("c", "a").on("n3"), true), "++an");
    let without = after(&state, &existing[0], false);
    check(&without, "nnnn");
    check(&after(&without, &of("c", "a").on("n3"), true), "nnan");
    let freed = after(&after(&without, &of("c", "a").on("n3"), true), &existing[1], false);
    check(&freed, "nn+n");
    let exclusive = away(pod("f"), [app("zone", "p")]);
    check(&after(&state, &exclusive.clone().on("n2"), true), "eenn");
    check(&after(&after(&state, &exclusive.clone().on("n2"), true), &exclusive.on("n2"), false), "++nn");
    // Changes of the copies do not change the original state.
    check(&state, "++nn");
    assert!(what_if(&harness, &CycleState::default(), &incoming, &existing[0], false).is_err());
}

#[test]
fn removing_the_last_match_allows_the_first_pod() {
    let existing = [of("a", "a").on("n1")];
    let incoming = near(of("p", "a"), [app("zone", "a"), app("zone", "a")]);
    let harness = harness(&existing);
    let state = harness.pre_filter(&incoming).1;
    assert_eq!(verdicts(&harness, &incoming, &mut state.clone()), "++nn");
    let mut after = what_if(&harness, &state, &incoming, &existing[0], false).expect("there is a state");
    assert_eq!(verdicts(&harness, &incoming, &mut after), "+++n");
}
