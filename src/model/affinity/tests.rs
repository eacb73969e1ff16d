//! Tests of term matching, of interned sets of terms and of malformed terms.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::k8s::StringMap;
use crate::model::{AffinityTerms, LabelClasses};
use crate::testing::{PodFixture, pod};

fn near(terms: &Value) -> PodFixture {
    pod("p").set("spec.affinity", json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}))
}

fn terms(pod: PodFixture) -> Arc<AffinityTerms> {
    LabelClasses::default().affinity_terms(&pod.build()).expect("the pod has affinity")
}

fn labels(labels: &Value) -> StringMap {
    serde_json::from_value(labels.clone()).expect("labels")
}

/// Checks whether a term of a pod in `default` matches a pod with label `app: a` in this namespace: with the namespace's labels
/// looked up, and without.
#[track_caller]
fn check(mut term: Value, namespace: &str, namespace_labels: &Value, expected: (bool, bool)) {
    term["topologyKey"] = "zone".into();
    let terms = terms(near(&json!([term])));
    let term = &terms.required_affinity()[0];
    let (pod, of_namespace) = (labels(&json!({"app": "a"})), labels(namespace_labels));
    let found = (term.matches(namespace, &pod, &of_namespace), term.matches_unlabelled(namespace, &pod));
    assert_eq!(found, expected, "{term:?}");
    assert_eq!(term.topology_key(), "zone");
}

#[test]
fn terms_match_pods_by_label_and_namespace() {
    let app = json!({"matchLabels": {"app": "a"}});
    let team = json!({"matchLabels": {"team": "x"}});
    let other = json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]});
    check(json!({"labelSelector": app}), "default", &json!({}), (true, true));
    check(json!({"labelSelector": app}), "other", &json!({"team": "x"}), (false, false));
    check(json!({"labelSelector": {}}), "default", &json!({}), (true, true));
    check(json!({}), "default", &json!({}), (false, false));
    check(json!({"labelSelector": app, "namespaces": []}), "default", &json!({}), (true, true));
    check(json!({"labelSelector": app, "namespaces": ["other"]}), "default", &json!({}), (false, false));
    check(json!({"labelSelector": app, "namespaces": ["other"]}), "other", &json!({}), (true, true));
    check(json!({"labelSelector": app, "namespaceSelector": {}}), "other", &json!({}), (true, true));
    check(json!({"labelSelector": app, "namespaceSelector": team}), "other", &json!({"team": "x"}), (true, false));
    check(json!({"labelSelector": app, "namespaceSelector": team}), "default", &json!({}), (false, false));
    check(json!({"labelSelector": app, "namespaceSelector": other}), "other", &json!({"team": "x"}), (false, true));
}

#[test]
fn pods_with_equal_terms_share_one_set() {
    let classes = LabelClasses::default();
    let intern = |pod: PodFixture| classes.affinity_terms(&pod.build());
    let zone = || near(&json!([{"topologyKey": "zone", "labelSelector": {}}]));
    let a = intern(zone()).expect("it has terms");
    assert!(Arc::ptr_eq(&a, &intern(zone().label("app", "a")).expect("it has terms")));
    let b = intern(zone().namespace("other")).expect("it has terms");
    assert!(!Arc::ptr_eq(&a, &b));
    assert!(intern(pod("plain")).is_none());
    assert!(intern(pod("p").set("spec.affinity", json!({"nodeAffinity": {}}))).is_none());
    assert!(intern(pod("p").set("spec.affinity", json!({"podAntiAffinity": {}}))).is_some());
    assert_eq!((a.number(), b.number(), classes.affinity.len()), (0, 1, 2));
    drop(a);
    assert_eq!(classes.affinity.len(), 1);
    assert_eq!(intern(near(&json!([]))).expect("it has a list").number(), 0);
}

#[test]
fn malformed_term_empties_its_list_and_sets_an_error() {
    let bad = json!({"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}});
    let good = json!({"topologyKey": "zone", "labelSelector": {}});
    let affinity = json!({
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [good, bad],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": good}],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [good],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": bad}],
        },
    });
    let terms = terms(pod("p").set("spec.affinity", affinity));
    let counts = (terms.required_affinity().len(), terms.required_anti_affinity().len());
    assert_eq!((counts, terms.preferred_affinity().len(), terms.preferred_anti_affinity().len()), ((0, 1), 1, 0));
    assert!(terms.checked_required_affinity().is_err() && terms.checked_required_anti_affinity().is_ok());
    let text = "\"Near\" is not a valid label selector operator";
    let expected = format!("[requiredAffinityTerms: {text}, preferredAntiAffinityTerms: {text}]");
    assert_eq!(terms.error(), Some(expected));
    assert_eq!(self::terms(near(&json!([good]))).error(), None);
}
