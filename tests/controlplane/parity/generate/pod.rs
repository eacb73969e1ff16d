//! Pods: those that run and those that wait.

use serde_json::{Value, json};

use super::{Gen, Topic, affinity, images, placement, resources, spread};

/// A pod on a node.
pub(super) fn existing(g: &mut Gen, at: usize) -> Value {
    let mut pod = pod(g, &format!("running-{at}"));
    let node = if g.percent(3) { "ghost".to_owned() } else { g.node_name() };
    pod["spec"]["nodeName"] = node.into();
    pod["status"]["phase"] = if g.percent(4) { g.pick(&["Succeeded", "Failed"]) } else { "Running" }.into();
    if g.percent(60) {
        pod["status"]["startTime"] = format!("2026-01-01T00:{:02}:00Z", g.between(0, 59)).into();
    }
    if g.uses(Topic::Resize) {
        resize(g, &mut pod);
    }
    pod
}

/// A pod that waits for a node.
pub(super) fn pending(g: &mut Gen, at: usize) -> Value {
    let mut pod = pod(g, &format!("pending-{at}"));
    pod["status"]["phase"] = "Pending".into();
    pod["spec"]["schedulerName"] = if g.percent(2) { "another-scheduler".to_owned() } else { g.profile() }.into();
    if g.uses(Topic::Nominated) {
        let node = if g.percent(5) { "ghost".to_owned() } else { g.node_name() };
        pod["status"]["nominatedNodeName"] = node.into();
    }
    if g.uses(Topic::Gates) {
        let gates = g.list(1, 2, |g| json!({"name": g.pick(&["example.com/wait", "quota"])}));
        pod["spec"]["schedulingGates"] = gates.into();
    }
    if g.uses(Topic::Resize) && g.percent(20) {
        resize(g, &mut pod);
    }
    pod
}

/// A pod, running or not.
fn pod(g: &mut Gen, name: &str) -> Value {
    let namespace = g.pick(&["default", "default", "team"]);
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"schedulerName": "default-scheduler"},
        "status": {},
    });
    if g.percent(70) {
        pod["metadata"]["labels"] = json!({"app": g.pick(&["web", "db"]), "tier": g.pick(&["front", "back"])});
    }
    let containers: Vec<Value> = (0..g.pick(&[1, 1, 1, 2, 3])).map(|at| container(g, &format!("c{at}"))).collect();
    pod["spec"]["containers"] = containers.into();
    if g.uses(Topic::Resources) || g.uses(Topic::Ports) {
        let init: Vec<Value> = (0..g.between(0, 3)).map(|at| init_container(g, &format!("i{at}"))).collect();
        pod["spec"]["initContainers"] = init.into();
    }
    if g.percent(60) {
        pod["spec"]["priority"] = g.pick(&[0, 0, 10, 10, 100, -5, 2_000_000_000]).into();
        if g.percent(50) {
            pod["spec"]["preemptionPolicy"] = g.pick(&["Never", "PreemptLowerPriority"]).into();
        }
    }
    if g.percent(4) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    }
    place(g, &mut pod);
    extras(g, &mut pod);
    spread::belong(g, &mut pod);
    pod
}

/// Where the pod wants to be.
fn place(g: &mut Gen, pod: &mut Value) {
    let spec = &mut pod["spec"];
    if g.uses(Topic::Affinity) && g.percent(50) {
        spec["nodeSelector"] = placement::node_selector(g);
    }
    if g.uses(Topic::Affinity) {
        spec["affinity"] = json!({"nodeAffinity": placement::node_affinity(g)});
    }
    if g.uses(Topic::Taints) {
        spec["tolerations"] = placement::tolerations(g).into();
    }
    if g.uses(Topic::PodAffinity) {
        affinity::place(g, pod);
    }
}

/// What else there is.
fn extras(g: &mut Gen, pod: &mut Value) {
    let spec = &mut pod["spec"];
    if g.uses(Topic::Resources) && g.percent(40) {
        spec["overhead"] = resources::overhead(g);
    }
    if g.uses(Topic::Resources) && g.percent(40) {
        spec["resources"] = resources::whole_pod(g);
    }
    let mut volumes = Vec::new();
    if g.uses(Topic::Images) && g.percent(50) {
        volumes.push(json!({"name": "image", "image": {"reference": images::wanted(g), "pullPolicy": "IfNotPresent"}}));
    }
    if g.percent(15) {
        volumes.push(json!({"name": "config", "configMap": {"name": "settings"}}));
        volumes.push(json!({"name": "scratch", "emptyDir": {}}));
    }
    if !volumes.is_empty() {
        spec["volumes"] = volumes.into();
    }
    if g.uses(Topic::Features) && g.percent(50) {
        spec["hostNetwork"] = true.into();
        if g.percent(70) {
            spec["hostUsers"] = g.percent(30).into();
        }
    }
}

fn container(g: &mut Gen, name: &str) -> Value {
    let mut container = json!({"name": name, "image": images::wanted(g), "resources": resources::container(g)});
    if g.uses(Topic::Ports) {
        container["ports"] = g.list(1, 3, port).into();
    }
    if g.uses(Topic::Features) && g.percent(50) {
        let action = g.pick(&["Restart", "RestartAllContainers"]);
        container["restartPolicy"] = "Never".into();
        container["restartPolicyRules"] = json!([{"action": action, "exitCodes": {"operator": "In", "values": [42]}}]);
    }
    container
}

fn init_container(g: &mut Gen, name: &str) -> Value {
    let mut container = container(g, name);
    if g.percent(50) {
        container["restartPolicy"] = "Always".into();
        if let Some(fields) = container.as_object_mut() {
            fields.remove("restartPolicyRules");
        }
    }
    container
}

/// A port; with a protocol or an address left out, or none on the host.
fn port(g: &mut Gen) -> Value {
    let host_port = g.pick(&[53, 80, 443, 8080, 8081]);
    let mut port = json!({"containerPort": host_port});
    if !g.percent(15) {
        port["hostPort"] = host_port.into();
    }
    if g.percent(60) {
        port["protocol"] = g.pick(&["TCP", "UDP", "SCTP"]).into();
    }
    if g.percent(60) {
        port["hostIP"] = g.pick(&["", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::", "::1"]).into();
    }
    port
}

/// Marks the pod as resized, or as being resized.
fn resize(g: &mut Gen, pod: &mut Value) {
    for (list, statuses) in [("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")] {
        let names: Vec<Value> =
            pod["spec"][list].as_array().into_iter().flatten().map(|container| container["name"].clone()).collect();
        let all: Vec<Value> = names.iter().map(|name| resources::container_status(g, name)).collect();
        if !all.is_empty() && g.percent(85) {
            pod["status"][statuses] = all.into();
        }
    }
    if pod["spec"].get("resources").is_some() && g.percent(60) {
        pod["status"]["allocatedResources"] = resources::whole_pod(g)["requests"].clone();
        pod["status"]["resources"] = resources::whole_pod(g);
    }
    if g.percent(60) {
        let reason = g.pick(&["Infeasible", "Deferred"]);
        pod["status"]["conditions"] = json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
}
