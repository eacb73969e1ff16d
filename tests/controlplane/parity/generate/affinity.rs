//! Generates the fields that attract pods to pods or repel them: namespaces, pod affinity and anti-affinity, required and preferred.

use serde_json::{Map, Value, json};

use super::Gen;
use crate::parity::terms::TOPOLOGY;

/// A value that no label can have. The API server refuses a pod that asks for it; a scheduler is told so by the selector.
pub(crate) const MALFORMED: &str = "no such value!";

/// Namespaces of pods. Some have an object, with labels or without; of some the scheduler does not know.
const NAMESPACES: &[&str] = &["default", "team", "lab"];

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
    let value = if g.percent(g.malformed) { MALFORMED } else { g.pick(values) };
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

/// Arguments of the plugin, without version and kind.
pub(super) fn args(g: &mut Gen) -> Value {
    let mut args = json!({});
    if g.percent(70) {
        args["hardPodAffinityWeight"] = g.pick(&[0, 1, 50, 100]).into();
    }
    if g.percent(50) {
        args["ignorePreferredTermsOfExistingPods"] = g.percent(70).into();
    }
    args
}

/// Whether the pod has required terms on other pods.
pub(super) fn has_required(pod: &Value) -> bool {
    !required(pod, "podAffinity").is_empty() || !required(pod, "podAntiAffinity").is_empty()
}

fn required<'a>(pod: &'a Value, kind: &str) -> &'a [Value] {
    let terms = &pod["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"];
    terms.as_array().map_or(&[][..], Vec::as_slice)
}

/// Labels that most of the terms select.
fn selected(terms: &[Value]) -> Map<String, Value> {
    let mut labels = Map::new();
    for selector in terms.iter().map(|term| &term["labelSelector"]) {
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let value = expression["values"].get(0).cloned().unwrap_or_else(|| "x".into());
            if matches!(expression["operator"].as_str(), Some("In" | "Exists")) && value != MALFORMED {
                labels.insert(expression["key"].as_str().unwrap_or_default().to_owned(), value);
            }
        }
        labels.extend(selector["matchLabels"].as_object().cloned().unwrap_or_default());
    }
    labels
}

/// A change of another pod that the waiting pod may care about: it comes, goes, or gets or loses labels; as old and new.
pub(super) fn change(g: &mut Gen, asked: &Value) -> (Value, Value) {
    let kind = if required(asked, "podAffinity").is_empty() { "podAntiAffinity" } else { "podAffinity" };
    let terms = required(asked, kind);
    let namespace = terms.first().and_then(|term| term["namespaces"].get(0));
    let namespace = namespace.unwrap_or(&asked["metadata"]["namespace"]).clone();
    let other = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "other", "namespace": namespace, "uid": "other"},
        "spec": {"schedulerName": "default-scheduler", "nodeName": g.node_name(),
            "containers": [{"name": "c", "image": "busybox"}]},
        "status": {"phase": "Running"},
    });
    let mut wanted = other.clone();
    wanted["metadata"]["labels"] = selected(terms).into();
    let mut exclusive = other.clone();
    exclusive["metadata"]["namespace"] = asked["metadata"]["namespace"].clone();
    let own_labels = json!({"matchLabels": asked["metadata"].get("labels").cloned().unwrap_or_else(|| json!({}))});
    let own_term = json!({"topologyKey": "zone", "labelSelector": own_labels});
    let mut exclusive_terms = vec![own_term];
    if g.percent(20) {
        exclusive_terms.push(term(g));
    }
    exclusive["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": exclusive_terms}});
    match g.between(0, 5) {
        0 | 1 => (Value::Null, wanted),
        2 => (other, wanted),
        3 => (wanted, other),
        4 => (wanted, Value::Null),
        _ => (exclusive, Value::Null),
    }
}

/// A node gets, loses or changes the label that a term of the waiting pod has its domains by; as old and new.
pub(super) fn node_change(g: &mut Gen, asked: &Value, nodes: &[&Value]) -> (Value, Value) {
    let terms: Vec<&Value> = required(asked, "podAffinity").iter().chain(required(asked, "podAntiAffinity")).collect();
    let key = g.pick(&terms)["topologyKey"].as_str().unwrap_or_default().to_owned();
    let old = g.pick(nodes).clone();
    let mut new = old.clone();
    if let Some(labels) = new["metadata"]["labels"].as_object_mut() {
        if g.percent(30) {
            labels.remove(&key);
        } else {
            labels.insert(key, g.pick(&["a", "b", "z1"]).into());
        }
    }
    match g.between(0, 3) {
        0 => (Value::Null, new),
        1 => (new, old),
        _ => (old, new),
    }
}
