//! What draws pods to pods and keeps them apart: namespaces, pod affinity and anti-affinity, required and preferred.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Gen;

/// A value that no label can have. The API server refuses a pod that asks for it; a scheduler is told so by the selector.
pub(crate) const MALFORMED: &str = "no such value!";

/// Namespaces of pods. Some have an object, with labels or without; of some the scheduler does not know.
const NAMESPACES: &[&str] = &["default", "team", "lab"];

const TOPOLOGY: &[&str] = &[
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "zone",
    "zone",
    "disk",
    "no-such-label",
];

/// Labels of pods, and of some that do not exist.
const LABELS: &[(&str, &[&str])] =
    &[("app", &["web", "db", "cache"]), ("tier", &["front", "back"]), ("track", &["", "canary"])];

const NAMESPACE_LABELS: &[(&str, &[&str])] = &[("stage", &["prod", "test"]), ("owner", &["a", "b"])];

/// Namespaces, one of them without pods.
pub(super) fn namespaces(g: &mut Gen) -> Vec<Value> {
    let mut namespaces = Vec::new();
    for name in NAMESPACES.iter().chain(&["empty"]).filter(|_| g.percent(75)).collect::<Vec<_>>() {
        let mut labels = Map::new();
        for (key, values) in NAMESPACE_LABELS {
            if g.percent(60) {
                labels.insert((*key).into(), g.pick(values).into());
            }
        }
        if g.percent(50) {
            labels.insert("kubernetes.io/metadata.name".into(), (*name).into());
        }
        namespaces.push(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "labels": labels},
        }));
    }
    namespaces
}

/// One requirement of a label selector.
fn expression(g: &mut Gen, words: &[(&str, &[&str])]) -> Value {
    let (key, values) = g.pick(words);
    let value = if g.percent(1) { MALFORMED } else { g.pick(values) };
    match g.pick(&["In", "In", "NotIn", "Exists", "DoesNotExist"]) {
        operator @ ("Exists" | "DoesNotExist") => json!({"key": key, "operator": operator}),
        operator => {
            let values = if g.percent(50) { vec![value, g.pick(values)] } else { vec![value] };
            json!({"key": key, "operator": operator, "values": values})
        }
    }
}

/// A label selector: of a label or two, of expressions, of both, or of everything.
fn selector(g: &mut Gen, words: &[(&str, &[&str])]) -> Value {
    let mut selector = Map::new();
    if g.percent(55) {
        let labels = (0..g.pick(&[1, 1, 2])).map(|_| g.pick(words));
        let labels: Vec<(&str, &[&str])> = labels.collect();
        let labels: Map<String, Value> =
            labels.into_iter().map(|(key, values)| (key.to_owned(), g.pick(values).into())).collect();
        selector.insert("matchLabels".into(), labels.into());
    }
    if g.percent(45) {
        selector.insert("matchExpressions".into(), g.list(1, 2, |g| expression(g, words)).into());
    }
    selector.into()
}

fn term(g: &mut Gen) -> Value {
    let mut term = json!({"topologyKey": g.pick(TOPOLOGY)});
    if !g.percent(5) {
        term["labelSelector"] = selector(g, LABELS);
    }
    if g.percent(25) {
        term["namespaces"] = g.list(0, 2, |g| g.pick(NAMESPACES).into()).into();
    }
    if g.percent(35) {
        term["namespaceSelector"] = selector(g, NAMESPACE_LABELS);
    }
    term
}

fn weighted(g: &mut Gen) -> Value {
    json!({"weight": g.pick(&[1, 1, 5, 50, 99, 100]), "podAffinityTerm": term(g)})
}

/// Affinity or anti-affinity: both kinds of terms, one, or none.
fn terms(g: &mut Gen) -> Value {
    let mut terms = Map::new();
    if g.percent(55) {
        terms.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), g.list(0, 2, term).into());
    }
    if g.percent(55) {
        terms.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), g.list(0, 3, weighted).into());
    }
    terms.into()
}

/// Gives the pod terms on other pods, and moves some pods into a namespace of their own.
pub(super) fn place(g: &mut Gen, pod: &mut Value) {
    if g.percent(25) {
        pod["metadata"]["namespace"] = "lab".into();
    }
    if g.percent(15) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    for (kind, percent) in [("podAffinity", 40), ("podAntiAffinity", 40)] {
        if g.percent(percent) {
            pod["spec"]["affinity"][kind] = terms(g);
        }
    }
}

/// The plugin's arguments.
pub(super) fn args(g: &mut Gen) -> Value {
    let mut args = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "InterPodAffinityArgs"});
    if g.percent(70) {
        args["hardPodAffinityWeight"] = g.pick(&[0, 1, 50, 100]).into();
    }
    if g.percent(50) {
        args["ignorePreferredTermsOfExistingPods"] = g.percent(70).into();
    }
    args
}

/// What the terms of these pods use, in words.
pub(crate) fn features(objects: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        let who = if pod["spec"].get("nodeName").is_some() { "existing" } else { "pending" };
        for kind in ["podAffinity", "podAntiAffinity"] {
            for list in ["required", "preferred"] {
                let terms = &pod["spec"]["affinity"][kind][format!("{list}DuringSchedulingIgnoredDuringExecution")];
                let terms = terms.as_array().map_or(&[][..], Vec::as_slice);
                for term in terms {
                    let term = term.get("podAffinityTerm").unwrap_or(term);
                    found.extend(features_of(term).map(|feature| format!("{who} {list} {kind} {feature}")));
                }
                if terms.len() > 1 {
                    found.insert(format!("{who} {list} {kind} several"));
                }
            }
        }
    }
    found
}

fn features_of(term: &Value) -> impl Iterator<Item = String> {
    let mut found = vec![term["topologyKey"].as_str().unwrap_or_default().to_owned()];
    for name in ["labelSelector", "namespaceSelector"] {
        let Some(selector) = term.get(name) else {
            found.push(format!("{name} absent"));
            continue;
        };
        if selector.as_object().is_some_and(Map::is_empty) {
            found.push(format!("{name} empty"));
        }
        let expressions = selector["matchExpressions"].as_array();
        let operators = expressions.into_iter().flatten().filter_map(|expression| expression["operator"].as_str());
        found.extend(operators.map(|operator| format!("{name} {operator}")));
    }
    if term.get("namespaces").is_some() {
        found.push("namespaces".to_owned());
    }
    found.into_iter()
}
