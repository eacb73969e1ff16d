//! Tests every branch of the hints, and the signature.

use serde_json::json;

use super::{and, app, away, harness, host, malformed, near, of, rather, with_args};
use crate::framework::{QueueingHint, SignOutcome};
use crate::model::{EventObjects, Object};
use crate::testing::{NodeFixture, PodFixture, pod};

fn expected(helps: bool) -> QueueingHint {
    if helps { QueueingHint::Queue } else { QueueingHint::Skip }
}

#[track_caller]
fn check_pods(pod: &PodFixture, old: Option<PodFixture>, new: Option<PodFixture>, helps: bool) {
    let object = |side: Option<PodFixture>| side.map(|pod| Object::Pod(pod.build()));
    assert_eq!(harness(&[]).hint(pod, 0, object(old), object(new)), expected(helps), "{pod:?}");
}

#[track_caller]
fn check_nodes(pod: &PodFixture, old: Option<NodeFixture>, new: NodeFixture, helps: bool) {
    let object = |side: NodeFixture| Object::Node(side.build());
    assert_eq!(harness(&[]).hint(pod, 1, old.map(object), Some(object(new))), expected(helps), "{pod:?}");
}

#[test]
fn pod_and_node_events_are_registered() {
    assert_eq!(harness(&[]).events(), ["Pod", "Node"]);
}

#[test]
fn added_or_updated_matching_pods_requeue() {
    let waiting = near(pod("p"), [app("zone", "a")]);
    let both = near(pod("p"), [app("zone", "a"), json!({"topologyKey": "host", "labelSelector": {}})]);
    let a = || of("a", "a").on("n1");
    check_pods(&waiting, None, Some(a()), true);
    check_pods(&both, None, Some(a()), true);
    check_pods(&near(pod("p"), [app("zone", "a"), app("zone", "b")]), None, Some(a()), false);
    check_pods(&waiting, None, Some(of("b", "b").on("n1")), false);
    check_pods(&waiting, None, Some(a().namespace("other")), false);
    check_pods(&pod("p"), None, Some(a()), false);
    check_pods(&waiting, None, Some(of("a", "a")), false);
    check_pods(&waiting, None, Some(of("a", "a").nominated("n1")), true);
    check_pods(&waiting, Some(of("a", "b").on("n1")), Some(a()), true);
    check_pods(&waiting, Some(a()), Some(of("a", "b").on("n1")), false);
    check_pods(&waiting, Some(a()), Some(a()), false);
    let apart = away(pod("p"), [app("zone", "a")]);
    check_pods(&apart, Some(a()), Some(of("a", "b").on("n1")), true);
    check_pods(&apart, Some(of("a", "b").on("n1")), Some(a()), false);
    check_pods(&apart, None, Some(a()), false);
    check_pods(&pod("p"), Some(pod("p")), Some(of("p", "a")), true);
    check_pods(&pod("p"), Some(pod("q")), Some(of("q", "a")), false);
}

#[test]
fn hints_do_not_look_up_namespaces() {
    let selecting =
        |selector: serde_json::Value| near(pod("p"), [and(app("zone", "a"), "namespaceSelector", &selector)]);
    let other = || Some(of("a", "a").on("n1").namespace("other"));
    let not_y = json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["y"]}]});
    check_pods(&selecting(json!({})), None, other(), true);
    check_pods(&selecting(json!({"matchLabels": {"team": "y"}})), None, other(), false);
    check_pods(&selecting(not_y), None, other(), true);
}

#[test]
fn deleted_anti_affinity_matches_requeue() {
    let apart = away(pod("p"), [app("zone", "a")]);
    check_pods(&apart, Some(of("a", "a").on("n1")), None, true);
    check_pods(&apart, Some(of("b", "b").on("n1")), None, false);
    check_pods(&near(pod("p"), [app("zone", "a")]), Some(of("a", "a").on("n1")), None, false);
    let exclusive = |terms: Vec<serde_json::Value>| Some(away(pod("e"), terms).on("n1"));
    check_pods(&of("p", "a"), exclusive(vec![app("zone", "a")]), None, true);
    check_pods(&of("p", "b"), exclusive(vec![app("zone", "a")]), None, false);
    check_pods(&of("p", "a"), exclusive(vec![app("zone", "a"), app("zone", "b")]), None, false);
    check_pods(&of("p", "a"), Some(away(pod("e"), [app("zone", "a")])), None, false);
}

#[test]
fn node_topology_changes_requeue() {
    let (near, away) = (near(pod("p"), [app("zone", "a")]), away(pod("p"), [app("zone", "a")]));
    let zone = |zone: &str| host("n").label("zone", zone);
    check_nodes(&near, None, zone("a"), true);
    check_nodes(&near, None, host("n"), false);
    check_nodes(&near, Some(host("n")), zone("a"), true);
    check_nodes(&near, Some(zone("a")), zone("b"), true);
    check_nodes(&near, Some(zone("a")), zone("a").label("x", "y"), false);
    check_nodes(&near, Some(zone("a")), host("n"), false);
    check_nodes(&away, None, host("n"), true);
    check_nodes(&away, Some(zone("a")), host("n"), true);
    check_nodes(&away, Some(zone("a")), zone("b"), true);
    check_nodes(&away, Some(host("n")), zone("a"), false);
    check_nodes(&away, Some(zone("a")), zone("a").label("x", "y"), false);
    check_nodes(&pod("p"), None, zone("a"), false);
}

#[test]
fn malformed_terms_are_errors() {
    let registered = harness(&[]).registered;
    let fails = |at: usize, pod: &PodFixture, old: Option<Object>, new: Option<Object>| {
        let hint = registered[at].hint.as_ref().expect("a hint");
        hint(&pod.clone().info(), &EventObjects { old, new }).is_err()
    };
    let other = || Some(Object::Pod(of("a", "a").on("n1").build()));
    let node = || Some(Object::Node(host("n").label("zone", "a").build()));
    let (near_bad, away_bad) = (near(pod("p"), [malformed()]), away(pod("p"), [malformed()]));
    assert!(fails(0, &near_bad, None, other()) && fails(0, &away_bad, None, other()));
    assert!(fails(1, &near_bad, None, node()) && fails(1, &away_bad, None, node()));
    // The affinity term already yields `Queue`, so the malformed anti-affinity is not read.
    assert!(!fails(1, &away(near(pod("p"), [app("zone", "a")]), [malformed()]), None, node()));
    let exclusive = Some(Object::Pod(away(pod("e"), [malformed()]).on("n1").build()));
    assert!(fails(0, &pod("p"), exclusive, None));
    assert!(fails(0, &pod("p"), None, None));
}

#[test]
fn pods_with_terms_are_not_signed() {
    let labelled = of("p", "a");
    harness(&[]).check_signature(&labelled, &[("v1.Pod.Labels", r#"{"app":"a"}"#)]);
    with_args(&[], 1, true).check_signature(&labelled, &[]);
    let signer = harness(&[]).registration.sign.expect("Sign");
    for affine in
        [pod("p").set("spec.affinity", json!({"podAffinity": {}})), rather(pod("p"), "podAffinity", 1, &json!({}))]
    {
        assert!(matches!(signer.sign(&affine.info()), Ok(SignOutcome::Refuse(_))));
    }
}
