//! The built binary on a real control plane: it binds what fits, once, says so, and ends when it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, PostParams};
use libtest_mimic::Failed;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, Process, wait_for};

const PODS: usize = 500;
const NODES: usize = 20;

/// 500 bindings at upstream's 50 a second after a burst of 100 take 8 seconds, and events as long beside them.
const BOUND: Duration = Duration::from_mins(2);

/// 500 pods on 20 nodes: all are bound, each exactly once and with its event; SIGTERM ends the scheduler with code 1; what
/// kubectl prints of the result is a cluster file.
pub(crate) fn binds_500_pods() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    fill(&plane)?;
    let mut scheduler = start(&plane)?;
    let pods = wait_for("all pods to be bound", BOUND, || {
        if let Some(status) = scheduler.ended() {
            return Err(format!("the scheduler ended with {status}"));
        }
        let pods: Vec<Pod> = list(&plane, "default")?;
        let bound = pods.iter().filter(|pod| node_of(pod).is_some()).count();
        Ok((bound == PODS).then_some(pods))
    })
    .map_err(|error| format!("{error}; {}", scheduler.tail()))?;
    check_placement(&pods)?;
    check_events(&plane, &pods).map_err(|error| format!("{error}; {}", scheduler.tail()))?;
    check_bindings(&plane)?;
    let status = scheduler.terminate()?;
    if status.code() != Some(1) {
        return Err(format!("SIGTERM ended the scheduler with {status}; {}", scheduler.tail()).into());
    }
    simulate_dump(&plane)?;
    drop(scheduler);
    Ok(plane.remove()?)
}

fn node(at: usize) -> Value {
    let amounts = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("node-{at}"),
            "labels": {"kubernetes.io/hostname": format!("node-{at}"), "topology.kubernetes.io/zone": format!("zone-{}", at % 3)},
        },
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn pod(at: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{at}"), "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}},
        }]},
    })
}

/// The object of a fixture.
pub(crate) fn typed<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("a fixture is an object of its kind")
}

/// Creates all nodes and pods.
fn fill(plane: &ControlPlane) -> Result<(), String> {
    let nodes: Api<Node> = Api::all(plane.client.clone());
    let pods: Api<Pod> = Api::namespaced(plane.client.clone(), "default");
    let post = PostParams::default();
    plane
        .runtime
        .block_on(async {
            for at in 0..NODES {
                nodes.create(&post, &typed(node(at))).await?;
            }
            stream::iter(0..PODS)
                .map(|at| {
                    let (pods, post) = (&pods, &post);
                    async move { pods.create(post, &typed(pod(at))).await.map(|_| ()) }
                })
                .buffer_unordered(20)
                .try_collect::<()>()
                .await
        })
        .map_err(|error: kube::Error| error.to_string())
}

/// Starts the binary that is under test.
fn start(plane: &ControlPlane) -> Result<Process, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    command.arg("--kubeconfig").arg(plane.kubeconfig()).args(["--leader-elect=false", "--secure-port=0"]);
    plane.run("kube-scheduler", &mut command)
}

/// All objects of a kind in a namespace.
pub(crate) fn list<K>(plane: &ControlPlane, namespace: &str) -> Result<Vec<K>, String>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(plane.client.clone(), namespace);
    let list = plane.runtime.block_on(api.list(&ListParams::default())).map_err(|error| error.to_string())?;
    Ok(list.items)
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The pod's node.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// Equal pods on equal nodes are spread evenly, and the API server says of each that it is scheduled.
fn check_placement(pods: &[Pod]) -> Result<(), String> {
    let mut by_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        *by_node.entry(node_of(pod).unwrap_or_default()).or_default() += 1;
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let scheduled: Vec<&str> = conditions
            .filter(|condition| condition.type_ == "PodScheduled")
            .map(|condition| &*condition.status)
            .collect();
        if scheduled != ["True"] {
            return Err(format!("PodScheduled of {} is {scheduled:?}", name_of(pod)));
        }
    }
    let even = PODS / NODES;
    if by_node.len() != NODES || by_node.values().any(|count| *count != even) {
        return Err(format!("equal pods should be spread evenly, {even} a node: {by_node:?}"));
    }
    Ok(())
}

/// One `Scheduled` event a pod, which names its node, and no other event.
fn check_events(plane: &ControlPlane, pods: &[Pod]) -> Result<(), String> {
    let events: Vec<Event> = wait_for("an event of each pod", BOUND, || {
        let mut events: Vec<Event> = list(plane, "default")?;
        // The API server has something to say of its own services now and then.
        events.retain(|event| event.regarding.as_ref().and_then(|object| object.kind.as_deref()) == Some("Pod"));
        Ok((events.len() >= PODS).then_some(events))
    })?;
    let expected: BTreeSet<String> = pods
        .iter()
        .map(|pod| format!("Successfully assigned default/{} to {}", name_of(pod), node_of(pod).unwrap_or_default()))
        .collect();
    let told: BTreeSet<String> = events.iter().filter_map(|event| event.note.clone()).collect();
    let odd: Vec<&Event> = events
        .iter()
        .filter(|event| {
            let text = |field: &Option<String>, expected: &str| field.as_deref() == Some(expected);
            !(text(&event.reason, "Scheduled")
                && text(&event.action, "Binding")
                && text(&event.type_, "Normal")
                && text(&event.reporting_controller, "default-scheduler")
                && event.series.is_none())
        })
        .collect();
    if events.len() != PODS || told != expected || !odd.is_empty() {
        return Err(format!("{} events, {} of them odd: {odd:?}", events.len(), odd.len()));
    }
    Ok(())
}

/// The API server was asked for exactly as many bindings as there are pods.
fn check_bindings(plane: &ControlPlane) -> Result<(), String> {
    let metrics = plane.get("/metrics")?;
    let is_binding =
        |line: &&str| line.starts_with("apiserver_request_total{") && line.contains("subresource=\"binding\"");
    let counts: Vec<&str> = metrics.lines().filter(is_binding).collect();
    match counts[..] {
        [only] if only.contains("code=\"201\"") && only.ends_with(&format!(" {PODS}")) => Ok(()),
        _ => Err(format!("bindings that were asked for: {counts:#?}")),
    }
}

/// What kubectl prints of nodes and pods is read by the simulator as it is, and leaves it nothing to do.
fn simulate_dump(plane: &ControlPlane) -> Result<(), Failed> {
    let dump = plane.kubectl(&["get", "nodes,pods", "--all-namespaces", "--output", "yaml"])?;
    let file = plane.folder().join("dump.yaml");
    std::fs::write(&file, dump).map_err(|error| error.to_string())?;
    let simulated = simulate(&file)?;
    let totals = &simulated["totals"];
    if totals["alreadyPlaced"] != PODS || totals["nodes"] != NODES || totals["pending"] != 0 {
        return Err(format!("simulated: {totals}").into());
    }
    Ok(())
}

/// The simulator's report; it has to place all pods.
fn simulate(file: &Path) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"))
        .args(["simulate", "--output", "json"])
        .arg(file)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.code() != Some(0) {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("simulate ended with {}: {errors}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("simulate's report: {error}"))
}
