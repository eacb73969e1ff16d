//! Selectors of labels, fields and nodes, as queries and as API objects.
//!
//! The input is a query, or the JSON of a `LabelSelector`, of a `NodeSelector` or of a list of preferred terms.
#![no_main]

use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_scheduler::k8s::label_selector::Operator;
use kube_scheduler::k8s::{FieldSelector, Node, NodeSelector, PreferredTerms, Selector, StringMap};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(selector) = Selector::parse(text) {
        check_labels(&selector, text);
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        check_fields(&selector, text);
    }
    if let Ok(object) = serde_json::from_str::<LabelSelector>(text)
        && let Ok(selector) = Selector::from_label_selector(Some(&object))
    {
        check_labels(&selector, text);
    }
    if let Ok(object) = serde_json::from_str::<api::NodeSelector>(text) {
        check_nodes(&object);
    }
    if let Ok(terms) = serde_json::from_str::<Vec<api::PreferredSchedulingTerm>>(text)
        && let Ok(preferred) = PreferredTerms::new(&terms, "preferred")
    {
        let most: i64 = terms.iter().map(|term| i64::from(term.weight).abs()).sum();
        for node in nodes(terms.iter().map(|term| &term.preference)) {
            assert!(preferred.score(&node).abs() <= most, "{text}");
        }
    }
});

/// Returns label sets that the selector nearly matches or just matches: the empty set, and for each value in the selector a set
/// with this value.
fn label_sets(selector: &Selector) -> Vec<StringMap> {
    let mut sets = vec![StringMap::new()];
    for requirement in selector.requirements().unwrap_or_default() {
        let values = requirement.values().iter().map(String::as_str).chain(["", "0", "-1"]);
        for value in values {
            let mut set = sets.last().cloned().unwrap_or_default();
            set.insert(requirement.key().to_owned(), value.to_owned());
            sets.push(set);
        }
    }
    sets
}

/// Checks that the text of a selector parses to an equivalent selector with the same text.
fn check_labels(selector: &Selector, text: &str) {
    let shown = selector.to_string();
    let again = Selector::parse(&shown).unwrap_or_else(|error| panic!("{text:?} shows as {shown:?}: {error}"));
    assert_eq!(again.to_string(), shown, "{text:?}");
    for labels in label_sets(selector) {
        let matches = selector.matches(&labels);
        assert_eq!(matches, again.matches(&labels), "{text:?} shows as {shown:?}: {labels:?}");
        let each = selector.requirements().expect("not nothing").iter();
        let all = each.map(|one| one.matches(labels.get(one.key()).map(String::as_str))).all(|matches| matches);
        assert_eq!(matches, all, "{text:?}: {labels:?}");
        if matches {
            for requirement in selector.requirements().unwrap_or_default() {
                let exact = selector.exact_match(requirement.key());
                assert!(exact.is_none() || exact == labels.get(requirement.key()).map(String::as_str), "{text:?}");
            }
        }
    }
    for requirement in selector.requirements().unwrap_or_default() {
        let has_values = !matches!(requirement.operator(), Operator::Exists | Operator::DoesNotExist);
        assert_eq!(has_values, !requirement.values().is_empty(), "{text:?}");
    }
    assert_eq!(selector.is_empty(), shown.is_empty(), "{text:?}");
}

/// Checks that the text of a field selector parses to the same requirements. The order of two requirements on one field may
/// change, but only the first time.
fn check_fields(selector: &FieldSelector, text: &str) {
    let requirements = |selector: &FieldSelector| {
        let mut all: Vec<_> =
            selector.requirements().iter().map(|one| (one.field.clone(), one.is_equal, one.value.clone())).collect();
        all.sort();
        all
    };
    let shown = selector.to_string();
    let again = FieldSelector::parse(&shown).unwrap_or_else(|error| panic!("{text:?} shows as {shown:?}: {error}"));
    assert_eq!(requirements(&again), requirements(selector), "{text:?} shows as {shown:?}");
    let settled = again.to_string();
    let third = FieldSelector::parse(&settled).expect("parsed a moment ago in another order");
    assert_eq!(third.to_string(), settled, "{text:?}");
    for one in selector.requirements() {
        assert!(one.matches(&one.value) == one.is_equal, "{text:?}");
        let _ = selector.matches(|field| if field == one.field { &one.value } else { "" });
        let _ = selector.exact_match(&one.field);
    }
}

/// Returns nodes that the terms nearly match or just match: one without labels, and for each value a node that has it as a
/// label and as its name.
fn nodes<'a>(terms: impl Iterator<Item = &'a api::NodeSelectorTerm>) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    for requirement in terms.flat_map(|term| term.match_expressions.iter().chain(&term.match_fields).flatten()) {
        for value in requirement.values.iter().flatten() {
            let mut node = Node::default();
            node.metadata.name = Some(value.clone());
            node.metadata.labels = Some(StringMap::from([(requirement.key.clone(), value.clone())]));
            nodes.push(node);
        }
    }
    nodes
}

/// Checks that a lenient and a strict selector agree. With a malformed term, the strict one cannot be built, and the lenient one
/// matches or returns an error.
fn check_nodes(object: &api::NodeSelector) {
    let lenient = NodeSelector::new(object, "");
    let strict = NodeSelector::strict(object, "spec");
    for node in nodes(object.node_selector_terms.iter()) {
        match (&strict, lenient.matches(&node)) {
            (Ok(strict), verdict) => assert_eq!(strict.matches(&node), verdict, "{object:?}"),
            (Err(_), verdict) => assert_ne!(verdict, Ok(false), "{object:?}: a broken term is passed over"),
        }
    }
    if let Err(errors) = strict {
        assert!(!errors.to_string().is_empty());
    }
}
