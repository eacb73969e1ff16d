//! Tests of terms against nodes, and of upstream's error texts.

#![expect(clippy::needless_pass_by_value, reason = "JSON literals are easier to read when passed by value")]

use k8s_openapi::api::core::v1 as api;
use serde_json::{Value, json};

use super::{NodeSelector, PreferredTerms, RequiredNodeAffinity};
use crate::k8s::{Node, Pod};

fn node(name: &str, labels: Value) -> Node {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).expect("a node")
}

fn selector(terms: Value) -> api::NodeSelector {
    serde_json::from_value(json!({"nodeSelectorTerms": terms})).expect("a node selector")
}

fn check(terms: Value, expected: Result<bool, &str>) {
    let compiled = NodeSelector::new(&selector(terms.clone()), "");
    let node = node("n1", json!({"zone": "a", "cores": "8"}));
    assert_eq!(compiled.matches(&node).map_err(ToString::to_string), expected.map_err(str::to_owned), "{terms}");
}

fn label(key: &str, operator: &str, values: Value) -> Value {
    json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})
}

fn field(key: &str, operator: &str, values: Value) -> Value {
    json!({"matchFields": [{"key": key, "operator": operator, "values": values}]})
}

#[test]
fn label_operators_match_labels() {
    let check = |operator: &str, key: &str, values: Value, expected: bool| {
        check(json!([label(key, operator, values)]), Ok(expected));
    };
    check("In", "zone", json!(["b", "a"]), true);
    check("In", "rack", json!(["a"]), false);
    check("NotIn", "zone", json!(["a"]), false);
    check("NotIn", "rack", json!(["a"]), true);
    check("Exists", "zone", json!(null), true);
    check("DoesNotExist", "zone", json!([]), false);
    check("Gt", "cores", json!(["7"]), true);
    check("Gt", "cores", json!(["8"]), false);
    check("Lt", "cores", json!(["9"]), true);
    check("Lt", "zone", json!(["9"]), false);
    check("Gt", "rack", json!(["1"]), false);
}

#[test]
fn field_requirements_match_the_name() {
    check(json!([field("metadata.name", "In", json!(["n1"]))]), Ok(true));
    check(json!([field("metadata.name", "In", json!(["n2"]))]), Ok(false));
    check(json!([field("metadata.name", "NotIn", json!(["n2"]))]), Ok(true));
    check(json!([field("spec.x", "In", json!(["n1"]))]), Ok(false));
    check(json!([field("spec.x", "In", json!([""]))]), Ok(true));
    let nameless = node("", json!({}));
    let compiled = NodeSelector::new(&selector(json!([field("metadata.name", "In", json!(["n1"]))])), "");
    assert_eq!(compiled.matches(&nameless), Ok(true));
}

#[test]
fn one_matching_term_suffices_and_empty_terms_match_nothing() {
    check(json!([]), Ok(false));
    check(json!([{}]), Ok(false));
    check(json!([{}, label("zone", "Exists", json!(null))]), Ok(true));
    let both = json!({
        "matchExpressions": [{"key": "zone", "operator": "Exists"}, {"key": "cores", "operator": "In", "values": ["8"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}],
    });
    check(json!([both]), Ok(false));
    check(json!([both, field("metadata.name", "In", json!(["n1"]))]), Ok(true));
}

#[test]
fn errors_are_returned_only_if_no_term_matches() {
    let bad = || label("zone", "Near", json!(["a"]));
    let operator = "nodeSelectorTerms[1].matchExpressions[0].operator: Unsupported value: \"Near\": supported values: \
        \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\", \"Gt\", \"Lt\"";
    check(json!([label("zone", "In", json!(["b"])), bad()]), Err(operator));
    check(json!([label("zone", "In", json!(["a"])), bad()]), Ok(true));
    check(json!([bad(), label("zone", "In", json!(["a"]))]), Ok(true));
    check(
        json!([label("zone", "In", json!(null))]),
        Err("nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: null: \
            for 'in', 'notin' operators, values set can't be empty"),
    );
    check(
        json!([label("zone", "Gt", json!(["x"]))]),
        Err("nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"x\": \
            for 'Gt', 'Lt' operators, the value must be an integer"),
    );
    check(
        json!([field("metadata.name", "In", json!(["a", "b"])), field("metadata.name", "Gt", json!(["1"]))]),
        Err("[nodeSelectorTerms[0].matchFields[0].values: Invalid value: [\"a\",\"b\"]: must have one element, \
            nodeSelectorTerms[1].matchFields[0].operator: Unsupported value: \"Gt\": supported values: \"In\", \"NotIn\"]"),
    );
    let strict = NodeSelector::strict(&selector(json!([field("x", "In", json!([]))])), "spec.nodeAffinity.required");
    assert_eq!(
        strict.map_err(|errors| errors.to_string()),
        Err("spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].values: Invalid value: []: must have one element"
            .to_owned())
    );
}

#[test]
fn required_affinity_needs_node_selector_and_a_term() {
    let check = |spec: Value, expected: Result<bool, ()>, unrestricted: bool| {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
        let affinity = RequiredNodeAffinity::new(&pod);
        assert_eq!(affinity.matches(&node("n1", json!({"zone": "a"}))).map_err(drop), expected, "{spec}");
        assert_eq!(affinity.is_unrestricted(), unrestricted, "{spec}");
    };
    let required = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    check(json!({}), Ok(true), true);
    check(json!({"affinity": {"nodeAffinity": {}}}), Ok(true), true);
    check(json!({"nodeSelector": {"zone": "a"}}), Ok(true), false);
    check(json!({"nodeSelector": {"zone": "b"}}), Ok(false), false);
    check(json!({"nodeSelector": {"zone": "not valid!"}}), Ok(false), false);
    check(json!({"affinity": required(json!([]))}), Ok(false), false);
    let in_zone_a = || required(json!([label("zone", "In", json!(["a"]))]));
    check(json!({"nodeSelector": {"zone": "a"}, "affinity": in_zone_a()}), Ok(true), false);
    check(json!({"nodeSelector": {"zone": "b"}, "affinity": in_zone_a()}), Ok(false), false);
    let malformed = || required(json!([label("zone", "Near", json!(null))]));
    check(json!({"affinity": malformed()}), Err(()), false);
    check(json!({"nodeSelector": {"zone": "b"}, "affinity": malformed()}), Ok(false), false);
}

#[test]
fn preferred_terms_add_their_weights() {
    let preferred = |terms: Value| {
        let terms: Vec<api::PreferredSchedulingTerm> = serde_json::from_value(terms).expect("terms");
        PreferredTerms::new(&terms, "").map_err(|errors| errors.to_string())
    };
    let term = |weight: i32, preference: Value| json!({"weight": weight, "preference": preference});
    let in_zone_a = || label("zone", "In", json!(["a"]));
    let malformed = || label("zone", "Near", json!(null));
    let terms = preferred(json!([
        term(5, in_zone_a()),
        term(7, field("metadata.name", "In", json!(["n1"]))),
        term(100, label("x", "Exists", json!(null))),
        term(0, malformed()),
        term(3, json!({})),
    ]));
    assert_eq!(terms.as_ref().map(|terms| terms.score(&node("n1", json!({"zone": "a"})))), Ok(12));
    assert_eq!(terms.as_ref().map(|terms| terms.score(&node("n2", json!({"zone": "a"})))), Ok(5));
    assert_eq!(terms.map(|terms| terms.is_empty()), Ok(false));
    assert_eq!(preferred(json!([term(0, in_zone_a()), term(3, json!({}))])).map(|terms| terms.is_empty()), Ok(true));
    let errors = preferred(json!([term(1, in_zone_a()), term(1, malformed())]));
    assert!(
        errors.is_err_and(|errors| errors.starts_with("[1].matchExpressions[0].operator: Unsupported value: \"Near\""))
    );
}
