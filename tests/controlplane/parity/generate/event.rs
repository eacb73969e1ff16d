//! Changes of objects, to ask what they would mean to a pod that waits.

use serde_json::{Map, Value, json};

use super::{Gen, Topic, affinity, device, node, placement, pod, resources, spread};

/// Changes of the case's objects, each for one of its pending pods.
pub(super) fn events(g: &mut Gen, objects: &[Value]) -> Vec<Value> {
    let pending: Vec<&Value> = pods(objects).filter(|pod| pod["spec"].get("nodeName").is_none()).collect();
    let mut events = Vec::new();
    let most = if g.is_about(Topic::Spread) { 10 } else { 6 };
    for _ in 0..g.between(0, most) {
        let required: Vec<&Value> = pending.iter().copied().filter(|pod| affinity::has_required(pod)).collect();
        let asked = if !required.is_empty() && g.percent(60) { g.pick(&required) } else { g.pick(&pending) };
        let (kind, old, new) = match g.between(0, 9) {
            0..=1 if g.classes => class_change(g),
            2..=3 if affinity::has_required(asked) => {
                let (old, new) = affinity::change(g, asked);
                ("Pod", old, new)
            }
            1 if affinity::has_required(asked) => {
                let (old, new) = affinity::node_change(g, asked, &nodes(objects));
                ("Node", old, new)
            }
            0..=3 => node_change(g, objects),
            4..=6 => pod_change(g, objects),
            _ => own_change(g, asked),
        };
        let action = match (&old, &new) {
            (Value::Null, _) => "add",
            (_, Value::Null) => "delete",
            _ => "update",
        };
        let mut event = json!({"pod": key(asked), "kind": kind, "action": action});
        for (side, object) in [("old", old), ("new", new)] {
            if !object.is_null() {
                event[side] = object;
            }
        }
        events.push(event);
    }
    events
}

fn key(pod: &Value) -> String {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn pods(objects: &[Value]) -> impl Iterator<Item = &Value> {
    objects.iter().filter(|object| {
        object["kind"] == "Pod" && object["status"]["phase"] != "Succeeded" && object["status"]["phase"] != "Failed"
    })
}

fn nodes(objects: &[Value]) -> Vec<&Value> {
    objects.iter().filter(|object| object["kind"] == "Node").collect()
}

type Change = (&'static str, Value, Value);

/// A device class comes, goes or declares another resource.
fn class_change(g: &mut Gen) -> Change {
    let mut side = |present| if g.percent(present) { device::class(g, "fast") } else { Value::Null };
    match (side(50), side(80)) {
        (Value::Null, Value::Null) => ("DeviceClass", Value::Null, device::class(g, "fast")),
        (old, new) => ("DeviceClass", old, new),
    }
}

/// A node comes, goes, or changes in one respect or several.
fn node_change(g: &mut Gen, objects: &[Value]) -> Change {
    let nodes = nodes(objects);
    if g.percent(25) {
        let at = nodes.len();
        return ("Node", Value::Null, node::node(g, at));
    }
    let old = g.pick(&nodes).clone();
    if g.percent(8) {
        return ("Node", old, Value::Null);
    }
    let mut new = old.clone();
    for _ in 0..g.pick(&[1, 1, 1, 2]) {
        change_node(g, &mut new);
    }
    if g.percent(40) { ("Node", new, old) } else { ("Node", old, new) }
}

fn change_node(g: &mut Gen, node: &mut Value) {
    match g.between(0, 8) {
        0 | 8 => {
            let mut labels = placement::labels(g);
            labels.insert("kubernetes.io/hostname".into(), node["metadata"]["name"].clone());
            spread::node_labels(g, &mut labels);
            node["metadata"]["labels"] = labels.into();
        }
        1 => node["spec"]["taints"] = placement::taints(g).into(),
        2 => node["spec"]["unschedulable"] = g.percent(50).into(),
        3 | 4 => node["status"]["allocatable"] = resources::node(g),
        5 => node["status"]["conditions"] = json!([{"type": "Ready", "status": g.pick(&["True", "False"])}]),
        6 => node["metadata"]["annotations"] = json!({"note": g.pick(&["x", "y"])}),
        _ => node["status"]["declaredFeatures"] = node::features(g).into(),
    }
}

/// Another pod comes, goes or changes.
fn pod_change(g: &mut Gen, objects: &[Value]) -> Change {
    let others: Vec<&Value> = pods(objects).collect();
    if g.percent(20) {
        return ("Pod", Value::Null, pod::existing(g, 99));
    }
    let old = g.pick(&others).clone();
    if g.percent(45) {
        return ("Pod", old, Value::Null);
    }
    let mut new = old.clone();
    change_pod(g, &mut new);
    if g.percent(30) && new["spec"].get("nodeName").is_none() {
        new["status"]["nominatedNodeName"] = g.node_name().into();
    }
    ("Pod", old, new)
}

/// The pod that is asked about changes itself.
fn own_change(g: &mut Gen, asked: &Value) -> Change {
    let old = asked.clone();
    let mut new = old.clone();
    for _ in 0..g.pick(&[1, 1, 2]) {
        change_pod(g, &mut new);
    }
    ("Pod", old, new)
}

fn change_pod(g: &mut Gen, pod: &mut Value) {
    match g.between(0, 5) {
        0 => pod["metadata"]["labels"] = json!({"app": g.pick(&["web", "db", "cache"])}),
        1 | 2 => scale(g, pod),
        3 => {
            let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
            tolerations.extend(placement::tolerations(g));
            pod["spec"]["tolerations"] = tolerations.into();
        }
        4 => {
            pod["spec"]["schedulingGates"] = json!([]);
        }
        _ => {
            if g.uses(Topic::Features) {
                pod["spec"]["containers"][0]["restartPolicyRules"] = json!([{"action": "RestartAllContainers"}]);
            } else {
                pod["metadata"]["annotations"] = json!({"note": g.pick(&["x", "y"])});
            }
        }
    }
}

/// Another request of one container: less, more or none.
fn scale(g: &mut Gen, pod: &mut Value) {
    let containers = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let at = g.between(0, containers.max(1) - 1);
    let resources = if g.percent(20) { json!({}) } else { resources::container(g) };
    pod["spec"]["containers"][at]["resources"] = resources;
    if g.percent(20) {
        pod["spec"]["overhead"] = Map::new().into();
    }
}
