//! Crowded clusters: small nodes full of pods, pods that are more important, and budgets between them.

use serde_json::{Value, json};

use super::Gen;

/// Pods that one node gets.
const PODS_A_NODE: usize = 5;

/// Pods that one node gets now and then: upstream's sort goes about more than twelve in another way.
const MANY_PODS_A_NODE: usize = 20;

/// Crowds the cluster: nodes become small and full, and those who wait more important.
pub(super) fn crowd(g: &mut Gen, objects: &mut Vec<Value>) {
    let mut more = Vec::new();
    let alike = g.percent(30).then(|| filler(g, "", 0));
    let most = if g.percent(20) { MANY_PODS_A_NODE } else { PODS_A_NODE };
    for object in objects.iter_mut() {
        match object["kind"].as_str() {
            Some("Node") => {
                shrink(g, object);
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                for at in 0..g.between(0, most) {
                    let mut pod = filler(g, &name, at);
                    if most == MANY_PODS_A_NODE && g.percent(80) {
                        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = g.pick(&["50m", "100m"]).into();
                    }
                    if let Some(model) = &alike {
                        for part in ["spec", "status"] {
                            pod[part] = model[part].clone();
                        }
                        pod["spec"]["nodeName"] = name.as_str().into();
                    }
                    more.push(pod);
                }
            }
            Some("Pod") if object["spec"]["nodeName"].is_null() => press(g, object),
            _ => {}
        }
    }
    if g.percent(60) {
        more.extend((0..g.between(1, 4)).map(|at| budget(g, at)));
    }
    objects.extend(more);
}

/// Makes the node small, and mostly one that only needs room.
fn shrink(g: &mut Gen, node: &mut Value) {
    let list = json!({
        "cpu": g.pick(&["1", "2", "2", "3", "4"]), "memory": "8Gi", "pods": g.pick(&["1", "2", "3", "5", "110", "110"]),
        "ephemeral-storage": "100Gi",
    });
    node["status"]["capacity"] = list.clone();
    node["status"]["allocatable"] = list;
    if let Some(spec) = node["spec"].as_object_mut().filter(|_| g.percent(80)) {
        spec.remove("taints");
        spec.remove("unschedulable");
    }
}

/// A pod that takes room.
fn filler(g: &mut Gen, node: &str, at: usize) -> Value {
    let name = format!("filler-{}-{at}", node.trim_start_matches("node-"));
    let mut container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": g.pick(CPU)}}});
    if g.percent(15) {
        container["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
    }
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": g.pick(&["default", "default", "team"]), "uid": name},
        "spec": {"schedulerName": "default-scheduler", "nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    });
    if g.percent(80) {
        pod["spec"]["priority"] = g.pick(&[-10, 0, 0, 5, 10, 10, 50, 100]).into();
    }
    if g.percent(80) {
        pod["metadata"]["labels"] = json!({"app": g.pick(&["web", "db"]), "tier": g.pick(&["front", "back"])});
    }
    // Few times, so that some are the same.
    if g.percent(75) {
        pod["status"]["startTime"] = format!("2026-01-01T00:0{}:00Z", g.between(0, 4)).into();
    }
    if g.percent(25) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        if g.percent(85) {
            let (status, reason) = g.pick(&[
                ("True", "PreemptionByScheduler"),
                ("True", "PreemptionByScheduler"),
                ("True", "EvictionByEvictionAPI"),
                ("False", "PreemptionByScheduler"),
            ]);
            pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": status, "reason": reason}]);
        }
    }
    pod
}

/// Whether [`crowd`] has put this object there.
pub(super) fn is_filler(object: &Value) -> bool {
    object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("filler-"))
}

const CPU: &[&str] = &["250m", "500m", "500m", "1", "1", "1", "2"];

/// Makes a pod that waits important, and what it asks for modest enough for some node.
fn press(g: &mut Gen, pod: &mut Value) {
    if g.percent(85) {
        pod["spec"]["priority"] = g.pick(&[0, 10, 50, 100, 1000, 2_000_000_000]).into();
        let policy = g.pick(&["", "", "", "PreemptLowerPriority", "Never"]);
        if policy.is_empty() {
            pod["spec"].as_object_mut().map(|spec| spec.remove("preemptionPolicy"));
        } else {
            pod["spec"]["preemptionPolicy"] = policy.into();
        }
    }
    if g.percent(85) {
        let mut container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": g.pick(CPU)}}});
        if g.percent(15) {
            container["ports"] = json!([{"containerPort": 80, "hostPort": 80}]);
        }
        let spec = &mut pod["spec"];
        spec["containers"] = json!([container]);
        for field in ["initContainers", "overhead", "resources"] {
            spec.as_object_mut().map(|spec| spec.remove(field));
        }
    }
    if g.percent(50) {
        pod["status"]["nominatedNodeName"] = g.node_name().into();
    }
}

/// A budget; without a selector, or with an empty one, it protects nobody.
fn budget(g: &mut Gen, at: usize) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": format!("budget-{at}"), "namespace": g.pick(&["default", "default", "team"])},
        "spec": {"maxUnavailable": 1},
        "status": {
            "disruptionsAllowed": g.pick(&[0, 0, 1, 2]), "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2,
        },
    });
    match g.between(0, 9) {
        0 => {}
        1 => budget["spec"]["selector"] = json!({}),
        2 => {
            let expressions = json!([{"key": "tier", "operator": "NotIn", "values": ["back"]}]);
            budget["spec"]["selector"] = json!({"matchExpressions": expressions});
        }
        3 => budget["spec"]["selector"] = json!({"matchLabels": {"tier": "front", "app": "web"}}),
        _ => budget["spec"]["selector"] = json!({"matchLabels": {"app": g.pick(&["web", "db"])}}),
    }
    if g.percent(40) {
        let counted = format!("filler-{}-{}", g.between(0, 11), g.between(0, PODS_A_NODE));
        budget["status"]["disruptedPods"] = json!({counted: "2026-01-01T00:00:00Z"});
    }
    budget
}
