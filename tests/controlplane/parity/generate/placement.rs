//! Generates the fields that attract pods to nodes or repel them: labels, node affinity, taints, tolerations.

use serde_json::{Map, Value, json};

use super::Gen;

/// Labels of nodes; `gen` is compared as a number, which not every value is.
const LABELS: &[(&str, &[&str])] = &[
    ("zone", &["a", "b", "c"]),
    ("disk", &["ssd", "hdd", ""]),
    ("gen", &["1", "2", "10", "-3", "07", "x", "9223372036854775808"]),
    ("example.com/pool", &["blue", "green"]),
];

/// A node's labels besides its own name.
pub(super) fn labels(g: &mut Gen) -> Map<String, Value> {
    let mut labels = Map::new();
    for (key, values) in LABELS {
        if g.percent(60) {
            labels.insert((*key).into(), g.pick(values).into());
        }
    }
    if g.percent(50) {
        labels.insert("topology.kubernetes.io/zone".into(), g.pick(&["z1", "z2", "z3"]).into());
        if g.percent(50) {
            labels.insert("topology.kubernetes.io/region".into(), g.pick(&["r1", "r2"]).into());
        }
    }
    labels
}

/// A `nodeSelector`. An empty one does not exist: the API server leaves it out.
pub(super) fn node_selector(g: &mut Gen) -> Value {
    let mut selector = Map::new();
    for _ in 0..g.pick(&[1, 1, 1, 2]) {
        let (key, values) = g.pick(LABELS);
        selector.insert(key.into(), g.pick(values).into());
    }
    selector.into()
}

/// One requirement of labels. Some cannot be parsed, though the API takes them: it does not look at the values.
fn expression(g: &mut Gen) -> Value {
    let (key, values) = g.pick(LABELS);
    let key = if g.percent(5) { "no-such-label" } else { key };
    let value = if g.percent(4) { "not a value!" } else { g.pick(values) };
    match g.pick(&["In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]) {
        operator @ ("Exists" | "DoesNotExist") => json!({"key": key, "operator": operator}),
        operator @ ("Gt" | "Lt") => {
            let bound = g.pick(&["0", "1", "5", "-3", "abc", "1.5", "9223372036854775808"]);
            json!({"key": if g.percent(70) { "gen" } else { key }, "operator": operator, "values": [bound]})
        }
        operator => {
            let mut all = vec![value];
            if g.percent(50) {
                all.push(g.pick(values));
            }
            json!({"key": key, "operator": operator, "values": all})
        }
    }
}

fn field(g: &mut Gen) -> Value {
    let operator = g.pick(&["In", "In", "NotIn"]);
    json!({"key": "metadata.name", "operator": operator, "values": [g.node_name()]})
}

/// A term of a node selector; may be empty.
fn term(g: &mut Gen) -> Value {
    let mut term = Map::new();
    if g.percent(75) {
        term.insert("matchExpressions".into(), g.list(0, 2, expression).into());
    }
    if g.percent(30) {
        term.insert("matchFields".into(), g.list(1, 2, field).into());
    }
    term.into()
}

/// Required terms.
pub(super) fn required(g: &mut Gen) -> Value {
    json!({"nodeSelectorTerms": g.list(1, 3, term)})
}

/// Preferred terms.
pub(super) fn preferred(g: &mut Gen) -> Vec<Value> {
    g.list(0, 4, |g| json!({"weight": g.pick(&[1, 2, 10, 50, 100]), "preference": term(g)}))
}

/// A node affinity, which may ask for nothing.
pub(super) fn node_affinity(g: &mut Gen) -> Value {
    let mut affinity = Map::new();
    if g.percent(50) {
        affinity.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), required(g));
    }
    if g.percent(60) {
        affinity.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), preferred(g).into());
    }
    affinity.into()
}

const TAINT_KEYS: &[&str] =
    &["dedicated", "example.com/level", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"];
const TAINT_VALUES: &[&str] = &["", "a", "b", "5", "10", "-2", "007"];
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"];

/// A node's taints: each key and effect once.
pub(super) fn taints(g: &mut Gen) -> Vec<Value> {
    let mut seen = Vec::new();
    let mut taints = Vec::new();
    for _ in 0..g.between(0, 3) {
        let (key, effect) = (g.pick(TAINT_KEYS), g.pick(EFFECTS));
        if seen.contains(&(key, effect)) {
            continue;
        }
        seen.push((key, effect));
        let mut taint = json!({"key": key, "effect": effect});
        let value = g.pick(TAINT_VALUES);
        if !value.is_empty() {
            taint["value"] = value.into();
        }
        taints.push(taint);
    }
    taints
}

/// A toleration of any shape that the API takes.
fn toleration(g: &mut Gen) -> Value {
    let mut toleration = Map::new();
    let operator = match g.pick(&["Equal", "", "Exists", "Exists", "compare"]) {
        "compare" if g.compares => g.pick(&["Lt", "Gt"]),
        "compare" => "Equal",
        operator => operator,
    };
    let key = if operator == "Exists" && g.percent(25) { "" } else { g.pick(TAINT_KEYS) };
    let value = match operator {
        "Exists" => "",
        "Lt" | "Gt" => g.pick(&["0", "5", "7", "10", "-2"]),
        _ => g.pick(TAINT_VALUES),
    };
    let effect = if g.percent(40) { "" } else { g.pick(EFFECTS) };
    for (name, text) in [("key", key), ("operator", operator), ("value", value), ("effect", effect)] {
        if !text.is_empty() || g.percent(5) {
            toleration.insert(name.into(), text.into());
        }
    }
    if effect == "NoExecute" && g.percent(50) {
        toleration.insert("tolerationSeconds".into(), 300.into());
    }
    toleration.into()
}

/// A pod's tolerations.
pub(super) fn tolerations(g: &mut Gen) -> Vec<Value> {
    g.list(1, 4, toleration)
}
