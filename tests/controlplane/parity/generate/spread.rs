//! Generates topology spread constraints, and the objects that select the pods to spread.

use serde_json::{Map, Value, json};

use super::{Gen, Topic};

/// Topology keys; the last one is on no node.
const KEYS: &[&str] = &[
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "kubernetes.io/hostname",
    "topology.kubernetes.io/region",
    "zone",
    "disk",
    "no-such-label",
];

/// Namespaces that pods are in.
const NAMESPACES: &[&str] = &["default", "team"];

/// A pod's constraints: each key and action once, as the API has it.
pub(super) fn constraints(g: &mut Gen) -> Vec<Value> {
    let count = g.pick(&[1, 1, 2, 2, 3]);
    let (mut seen, mut constraints) = (Vec::new(), Vec::new());
    let shared = selector(g);
    for _ in 0..count {
        let (key, action) = (key(g), action(g));
        if seen.contains(&(key, action)) {
            continue;
        }
        seen.push((key, action));
        let selector = if g.percent(60) { shared.clone() } else { selector(g) };
        constraints.push(constraint(g, key, action, selector));
    }
    constraints
}

fn key(g: &mut Gen) -> &'static str {
    // The last one leaves few nodes.
    let keys = if g.percent(90) { &KEYS[..KEYS.len() - 1] } else { KEYS };
    g.pick(keys)
}

fn action(g: &mut Gen) -> &'static str {
    g.pick(&["DoNotSchedule", "ScheduleAnyway"])
}

fn constraint(g: &mut Gen, key: &str, action: &str, selector: Option<Value>) -> Value {
    let mut constraint =
        json!({"maxSkew": g.pick(&[1, 1, 1, 2, 3, 7]), "topologyKey": key, "whenUnsatisfiable": action});
    if action == "DoNotSchedule" && g.percent(35) {
        constraint["minDomains"] = g.between(1, 5).into();
    }
    if g.percent(35) {
        constraint["nodeAffinityPolicy"] = g.pick(&["Honor", "Ignore", "Ignore"]).into();
    }
    if g.percent(35) {
        constraint["nodeTaintsPolicy"] = g.pick(&["Honor", "Honor", "Ignore"]).into();
    }
    if let Some(selector) = selector {
        constraint["labelSelector"] = selector;
        if g.percent(30) {
            let keys = g.list(1, 2, |g| g.pick(&["rev", "tier", "app", "no-such-label"]).into());
            constraint["matchLabelKeys"] = keys.into();
        }
    }
    constraint
}

/// A selector, an empty one, or none.
fn selector(g: &mut Gen) -> Option<Value> {
    if g.percent(10) {
        return None;
    }
    let mut selector = Map::new();
    if g.percent(75) {
        selector.insert("matchLabels".into(), labels(g));
    }
    if g.percent(25) {
        selector.insert("matchExpressions".into(), g.list(1, 2, expression).into());
    }
    Some(selector.into())
}

fn labels(g: &mut Gen) -> Value {
    match g.between(0, 9) {
        0..=4 => json!({"app": g.pick(&["web", "db"])}),
        5 | 6 => json!({"tier": g.pick(&["front", "back"])}),
        7 => json!({"rev": g.pick(&["1", "2"])}),
        8 => json!({"app": g.pick(&["web", "db"]), "tier": g.pick(&["front", "back"])}),
        _ => json!({"app": "nobody"}),
    }
}

/// One requirement of pods' labels. Now and then one that cannot be compiled, as pods may have it from before it was checked.
fn expression(g: &mut Gen) -> Value {
    let key = g.pick(&["app", "tier", "rev"]);
    if g.percent(3) {
        return json!({"key": key, "operator": "In", "values": ["not a value!"]});
    }
    match g.pick(&["In", "NotIn", "Exists", "DoesNotExist"]) {
        operator @ ("Exists" | "DoesNotExist") => json!({"key": key, "operator": operator}),
        operator => json!({"key": key, "operator": operator, "values": [g.pick(&["web", "front", "1", "2"])]}),
    }
}

/// Puts a node into domains, and makes some labels odd: no hostname, the same one as others, an empty zone.
pub(super) fn node_labels(g: &mut Gen, labels: &mut Map<String, Value>) {
    if !g.uses(Topic::Spread) {
        return;
    }
    if g.percent(80) {
        // Uneven: most nodes are in the first zone.
        labels.insert("topology.kubernetes.io/zone".into(), g.pick(&["z1", "z1", "z1", "z2", "z3"]).into());
        labels.insert("topology.kubernetes.io/region".into(), g.pick(&["r1", "r1", "r2"]).into());
    }
    match g.between(0, 15) {
        0 => {
            labels.remove("kubernetes.io/hostname");
        }
        1 => {
            labels.insert("kubernetes.io/hostname".into(), "shared".into());
        }
        2 => {
            labels.insert("topology.kubernetes.io/zone".into(), "".into());
        }
        _ => {}
    }
}

/// Labels, constraints and a controller for a pod.
pub(super) fn belong(g: &mut Gen, pod: &mut Value) {
    if !g.uses(Topic::Spread) {
        return;
    }
    if g.is_about(Topic::Spread) {
        make_plain(g, pod);
    }
    if pod["metadata"]["labels"].is_object() && g.percent(60) {
        pod["metadata"]["labels"]["rev"] = g.pick(&["1", "2"]).into();
    }
    if g.percent(10) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    }
    if g.percent(60) {
        pod["spec"]["topologySpreadConstraints"] = constraints(g).into();
    }
    if g.percent(50) {
        pod["metadata"]["ownerReferences"] = owners(g).into();
    }
}

/// Leaves out most of what else may keep a pod from a node, and lets more pods be alike.
fn make_plain(g: &mut Gen, pod: &mut Value) {
    if g.percent(85) {
        pod["metadata"]["labels"] = json!({"app": g.pick(&["web", "web", "db"]), "tier": g.pick(&["front", "back"])});
    }
    if g.percent(70) {
        pod["metadata"]["namespace"] = "default".into();
    }
    if g.percent(80) {
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            container["resources"] = json!({});
            container["ports"] = json!([]);
        }
        pod["spec"]["initContainers"] = json!([]);
        if let Some(spec) = pod["spec"].as_object_mut() {
            spec.remove("resources");
            spec.remove("overhead");
        }
    }
}

/// The kinds whose selectors count, with the version under which they do.
const OWNERS: &[(&str, &str)] = &[
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("v1", "ReplicationController"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1beta1", "StatefulSet"),
];

/// References to owners, of which one is the controller, or none.
fn owners(g: &mut Gen) -> Vec<Value> {
    let controller = g.percent(85);
    let owner = |g: &mut Gen, controller: bool| {
        let (version, kind) = g.pick(OWNERS);
        let name = g.pick(&["one", "one", "two", "gone"]);
        json!({"apiVersion": version, "kind": kind, "name": name, "uid": format!("{kind}-{name}"), "controller": controller})
    };
    let mut owners = vec![owner(g, controller)];
    if g.percent(15) {
        owners.insert(0, owner(g, false));
    }
    owners
}

/// Services and controllers.
pub(super) fn groups(g: &mut Gen) -> Vec<Value> {
    let mut objects = Vec::new();
    for namespace in NAMESPACES {
        for at in 0..g.between(0, 3) {
            let mut spec = json!({"ports": [{"port": 80}]});
            match g.between(0, 9) {
                0 => {}
                1 => spec["selector"] = json!({}),
                _ => spec["selector"] = labels(g),
            }
            objects.push(object("v1", "Service", namespace, &format!("service-{at}"), &spec));
        }
        for (version, kind) in [("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")]
        {
            for name in ["one", "two"] {
                if g.percent(70) {
                    let spec = controller(g, kind);
                    objects.push(object(version, kind, namespace, name, &spec));
                }
            }
        }
    }
    objects
}

fn object(version: &str, kind: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": format!("{namespace}-{kind}-{name}")}, "spec": spec,
    })
}

/// A controller's specification, whose template it selects.
fn controller(g: &mut Gen, kind: &str) -> Value {
    let labels = labels(g);
    let selector = if kind == "ReplicationController" {
        labels.clone()
    } else if g.percent(30) {
        json!({"matchLabels": labels, "matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]})
    } else {
        json!({"matchLabels": labels})
    };
    let containers = json!([{"name": "c", "image": "registry.example/image-0:v1"}]);
    json!({
        "replicas": 0, "selector": selector, "serviceName": "service-0",
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    })
}

/// Arguments of the plugin, without version and kind: with the built-in constraints, with some, and most often with none, so
/// that pods are signed.
pub(super) fn args(g: &mut Gen) -> Value {
    let mut args = json!({});
    if g.percent(15) {
        args["defaultingType"] = "System".into();
        return args;
    }
    args["defaultingType"] = "List".into();
    let many = if g.is_about(Topic::Spread) || g.uses(Topic::Spread) { g.between(1, 3) } else { 0 };
    let (mut seen, mut constraints) = (Vec::new(), Vec::new());
    for _ in 0..many {
        let (key, action) = (key(g), action(g));
        if !seen.contains(&(key, action)) {
            seen.push((key, action));
            let mut listed = constraint(g, key, action, None);
            // Those with the least skew turn pods away most often.
            if g.percent(70) {
                listed["maxSkew"] = 1.into();
            }
            constraints.push(listed);
        }
    }
    args["defaultConstraints"] = constraints.into();
    args
}
