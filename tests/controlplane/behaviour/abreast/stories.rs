//! Stories to record: users, upstream's controllers and kubelets at work in a cluster.

use http::Method;
use serde_json::{Value, json};

use super::change::Change;
use super::record;
use crate::support::cluster::ControlPlane;
use crate::support::programs::program;
use crate::support::schedulers::{Scheduler as _, Upstream};
use crate::support::stage::{Stage, on_stage};

type Story = fn(&mut Stage<'_>) -> Result<(), String>;

/// All of them, each with its name.
pub(super) const ALL: &[(&str, Story)] =
    &[("rollout", rollout), ("drain", drain), ("batch", batch), ("priorities", priorities), ("eviction", eviction)];

/// The controllers that act.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,\
    job-controller,disruption-controller,taint-eviction-controller";

/// Plays a story under upstream's scheduler and its controllers, and tells what has changed.
pub(super) fn record(name: &str, story: Story) -> Result<Vec<Change>, String> {
    let plane = ControlPlane::start()?;
    let mut manager = std::process::Command::new(program("kube-controller-manager"));
    manager.arg("--kubeconfig").arg(plane.kubeconfig()).arg(format!("--controllers={CONTROLLERS}"));
    manager.args(["--leader-elect=false", "--secure-port=0"]);
    let mut manager = plane.run("kube-controller-manager", &mut manager)?;
    let mut scheduler = Upstream::start(&plane)?;
    let changes = on_stage(&plane, &mut scheduler, name, |stage| {
        let since = stage.send(Method::GET, "/api/v1/nodes", &Value::Null)?;
        let since = since["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
        let since = since.ok_or("a list without a version")?;
        story(stage).map_err(|error| format!("{error}; {}", manager.tail()))?;
        record::changes(&plane, name, since)
    })?;
    scheduler.stop()?;
    manager.kill()?;
    plane.remove()?;
    Ok(changes)
}

/// An object of a workload with this name and template.
fn workload(kind: &str, name: &str, cpu: &str, spec: Value, pod: Value) -> Value {
    let mut template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{
            "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": cpu}},
        }]},
    });
    crate::support::stage::merge(&mut template, pod);
    let (api, selector) = match kind {
        "Job" => ("batch/v1", Value::Null),
        _ => ("apps/v1", json!({"matchLabels": {"app": name}})),
    };
    let mut object = json!({
        "apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": {"template": template},
    });
    if !selector.is_null() {
        object["spec"]["selector"] = selector;
    }
    crate::support::stage::merge(&mut object["spec"], spec);
    object
}

fn pods(stage: &Stage<'_>) -> Result<Vec<Value>, String> {
    let pods = stage.send(Method::GET, &stage.path("pods", ""), &Value::Null)?;
    Ok(pods["items"].as_array().cloned().unwrap_or_default())
}

fn is_bound(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string()
}

fn is_leaving(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn app_of(pod: &Value) -> &str {
    pod["metadata"]["labels"]["app"].as_str().unwrap_or_default()
}

/// What the kubelets of all nodes have to do: pods that have come start, those that are told to end.
fn kubelets(stage: &Stage<'_>) -> Result<(), String> {
    for pod in pods(stage)? {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if is_bound(&pod) && is_leaving(&pod) {
            stage.delete_now(name)?;
        } else if is_bound(&pod) && pod["status"]["phase"] == "Pending" {
            let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.push(json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
            // Later pods start later, no two at the same time: preemption looks at that.
            let version = pod["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok());
            let second: u64 = version.ok_or("a pod without a version")?;
            let start = format!("2026-01-01T{:02}:{:02}:{:02}Z", second / 3600 % 24, second / 60 % 60, second % 60);
            let status = json!({"phase": "Running", "conditions": conditions, "startTime": start});
            stage.patch("pods", name, "/status", &json!({"status": status}))?;
        }
    }
    Ok(())
}

/// Lets the kubelets work until so many pods of an app run, so many wait, and none is on its way out.
fn reach(stage: &mut Stage<'_>, app: &str, running: usize, waiting: usize) -> Result<(), String> {
    stage.wait(&format!("{running} running and {waiting} waiting pods of {app}"), |stage| {
        kubelets(stage)?;
        let pods: Vec<Value> = pods(stage)?.into_iter().filter(|pod| app_of(pod) == app).collect();
        let runs = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        let refused = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["reason"] == "Unschedulable")
        };
        let waits = pods.iter().filter(|pod| !is_bound(pod)).filter(refused).count();
        let settled = runs == running && waits == waiting && pods.len() == runs + waits && !pods.iter().any(is_leaving);
        Ok(settled.then_some(()))
    })
}

fn scale(stage: &Stage<'_>, resource: &str, name: &str, replicas: usize) -> Result<(), String> {
    stage.patch(resource, name, "", &json!({"spec": {"replicas": replicas}}))
}

fn label(stage: &Stage<'_>, node: &str, key: &str, value: &str) -> Result<(), String> {
    stage.patch("nodes", node, "", &json!({"metadata": {"labels": {key: value}}}))
}

/// A deployment is rolled out, outgrows its nodes, gets another one, and shrinks.
fn rollout(stage: &mut Stage<'_>) -> Result<(), String> {
    for node in ["a", "b"] {
        stage.known_node(node, "2", &json!({}))?;
    }
    stage.create("deployments", &workload("Deployment", "web", "600m", json!({"replicas": 3}), json!({})))?;
    reach(stage, "web", 3, 0)?;
    let image = json!([{
        "name": "main", "image": "registry.example/app:v2", "resources": {"requests": {"cpu": "700m"}},
    }]);
    stage.patch("deployments", "web", "", &json!({"spec": {"template": {"spec": {"containers": image}}}}))?;
    stage.wait("the new version", |stage| {
        kubelets(stage)?;
        let old = pods(stage)?.iter().any(|pod| pod["spec"]["containers"][0]["image"] == "registry.example/app:v1");
        Ok((!old).then_some(()))
    })?;
    reach(stage, "web", 3, 0)?;
    scale(stage, "deployments", "web", 6)?;
    reach(stage, "web", 4, 2)?;
    stage.node("c", "2", &json!({}))?;
    reach(stage, "web", 6, 0)?;
    scale(stage, "deployments", "web", 2)?;
    reach(stage, "web", 2, 0)
}

/// A node is drained: a stateful set keeps its replicas apart, and a budget lets one go at a time.
fn drain(stage: &mut Stage<'_>) -> Result<(), String> {
    for node in ["a", "b", "c"] {
        stage.known_node(node, "4", &json!({}))?;
    }
    let apart = json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"},
    ]}}}});
    stage.create(
        "statefulsets",
        &workload("StatefulSet", "db", "1", json!({"replicas": 3, "serviceName": "db"}), apart),
    )?;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "db"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "db"}}},
    });
    stage.create("poddisruptionbudgets", &budget)?;
    reach(stage, "db", 3, 0)?;
    for pod in ["db-1", "db-2"] {
        let node = stage.get_pod(pod)?["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        stage.patch("nodes", &node, "", &json!({"spec": {"unschedulable": true}}))?;
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
        // The budget's controller may not have seen yet that the one before it runs again.
        stage.wait(&format!("{pod} to be evicted"), |stage| {
            Ok(stage.create(&format!("pods/{pod}/eviction"), &eviction).is_ok().then_some(()))
        })?;
        reach(stage, "db", 2, 1)?;
        stage.patch("nodes", &node, "", &json!({"spec": {"unschedulable": null}}))?;
        reach(stage, "db", 3, 0)?;
    }
    Ok(())
}

/// Jobs beside the agents of a daemon set; nodes come and are labelled.
fn batch(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "2", &json!({}))?;
    stage.known_node("b", "2", &json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}))?;
    let everywhere = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    stage.create("daemonsets", &workload("DaemonSet", "agent", "200m", json!({}), everywhere))?;
    reach(stage, "agent", 2, 0)?;
    let once = json!({"spec": {"restartPolicy": "Never", "nodeSelector": {"pool": "batch"}}});
    let size = json!({"parallelism": 3, "completions": 4});
    stage.create("jobs", &workload("Job", "sum", "800m", size, once))?;
    reach(stage, "sum", 0, 3)?;
    label(stage, "a", "pool", "batch")?;
    reach(stage, "sum", 2, 1)?;
    for left in [3, 2, 1] {
        finish_one(stage, "sum")?;
        stage.wait("the job to go on", |stage| {
            kubelets(stage)?;
            let running =
                pods(stage)?.iter().filter(|pod| app_of(pod) == "sum" && pod["status"]["phase"] == "Running").count();
            Ok((running == left.min(2)).then_some(()))
        })?;
    }
    stage.node("c", "1", &json!({}))?;
    reach(stage, "agent", 3, 0)
}

/// A pod of this app has done its work.
fn finish_one(stage: &Stage<'_>, app: &str) -> Result<(), String> {
    let running = pods(stage)?.into_iter().find(|pod| app_of(pod) == app && pod["status"]["phase"] == "Running");
    let pod = running.ok_or_else(|| format!("no pod of {app} is running"))?;
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "Ready");
    stage.patch("pods", name, "/status", &json!({"status": {"phase": "Succeeded", "conditions": conditions}}))
}

/// An important deployment pushes another one aside, and gives way again.
fn priorities(stage: &mut Stage<'_>) -> Result<(), String> {
    for (name, value) in [("bronze", 10), ("gold", 1000)] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value, "metadata": {"name": name},
        });
        stage.create("priorityclasses", &class)?;
    }
    for (node, cpu) in [("a", "3"), ("b", "2")] {
        stage.known_node(node, cpu, &json!({}))?;
    }
    let class = |name: &str| json!({"spec": {"priorityClassName": name, "terminationGracePeriodSeconds": 30}});
    stage.create("deployments", &workload("Deployment", "low", "1", json!({"replicas": 5}), class("bronze")))?;
    reach(stage, "low", 5, 0)?;
    stage.create("deployments", &workload("Deployment", "high", "2", json!({"replicas": 1}), class("gold")))?;
    reach(stage, "high", 1, 0)?;
    reach(stage, "low", 3, 2)?;
    scale(stage, "deployments", "high", 0)?;
    reach(stage, "low", 5, 0)?;
    reach(stage, "high", 0, 0)
}

/// Nodes of several zones are tainted and lost: what runs there is evicted, and spread anew.
fn eviction(stage: &mut Stage<'_>) -> Result<(), String> {
    for (node, zone) in [("a", "y"), ("b", "y"), ("c", "z")] {
        stage.known_node(node, "2", &json!({}))?;
        label(stage, node, "topology.kubernetes.io/zone", zone)?;
    }
    let spread = json!({"spec": {"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": {"app": "web"}},
    }]}});
    stage.create("deployments", &workload("Deployment", "web", "900m", json!({"replicas": 4}), spread))?;
    reach(stage, "web", 4, 0)?;
    let taint = json!({"spec": {"taints": [{"key": "maintenance", "value": "now", "effect": "NoExecute"}]}});
    stage.patch("nodes", "c", "", &taint)?;
    reach(stage, "web", 4, 0)?;
    stage.remove_node("c")?;
    stage.node("d", "2", &json!({}))?;
    label(stage, "d", "topology.kubernetes.io/zone", "z")?;
    scale(stage, "deployments", "web", 6)?;
    reach(stage, "web", 6, 0)
}
