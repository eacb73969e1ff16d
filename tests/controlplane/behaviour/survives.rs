//! Faults of schedulers, control planes and connections, all in the middle of many bindings: processes are killed, stopped and
//! started again, requests and connections fail, clocks step. The API server's objects, their history in etcd and the audit log
//! decide: each pod ends bound, and was bound once.

mod churn;
mod connections;
mod history;
pub(crate) mod proxy;
pub(crate) mod relay;
mod silence;
mod steps;
mod verdict;

use std::process::Command;
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, PostParams};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::behaviour::binds::{list, node_of, typed};
use crate::support::cluster::{ControlPlane, Process, free_ports, wait_for};
use crate::support::programs::program;
use history::History;

pub(crate) use churn::survives_churn;
pub(crate) use connections::survives_faulty_connections;
pub(crate) use steps::survives_clock_steps;

/// How long all pods may take, the backoff of those included whose binding failed.
const BOUND: Duration = Duration::from_mins(3);

/// How long a scheduler may take to end that is told to.
const ENDED: Duration = Duration::from_secs(10);

/// How many pods are bound in the middle of it all.
const PODS: usize = 1000;

const NODES: usize = 50;

/// Requests that are sent at the same time.
const SENDERS: usize = 20;

/// A control plane with nodes, whose history is followed.
pub(crate) struct Scene {
    pub(crate) plane: ControlPlane,
    history: History,
}

impl Scene {
    pub(crate) fn open() -> Result<Self, String> {
        let plane = ControlPlane::start_with(history::FLAGS)?;
        let history = History::follow(&plane)?;
        create_nodes(&plane)?;
        Ok(Self { plane, history })
    }

    pub(crate) fn check(&self, scheduler: &mut Process) -> Result<(), String> {
        verdict::check(&self.plane, scheduler, &self.history)
    }

    pub(crate) fn close(self) -> Result<(), Failed> {
        Ok(self.plane.remove()?)
    }
}

/// SIGKILL and SIGTERM in the middle of 1,000 bindings, and another scheduler each time, once upstream's: ours ends as it does.
pub(crate) fn survives_being_killed() -> Result<(), Failed> {
    let scene = Scene::open()?;
    let plane = &scene.plane;
    create_pods(plane, "p", PODS)?;
    let mut codes = Vec::new();
    for (at, signal) in ["KILL", "TERM", "upstream's TERM", "KILL"].into_iter().enumerate() {
        let name = format!("scheduler-{at}");
        let is_upstreams = signal.starts_with("upstream");
        // So slow that there is a middle to be killed in, also for who looks late.
        let slowly = json!({"clientConnection": {"qps": 100, "burst": 50}});
        let mut scheduler = if is_upstreams {
            start_upstream_with(plane, &name, slowly)?
        } else {
            start_with(plane, &name, slowly, &[])?
        };
        wait_until_bound(plane, &mut scheduler, PODS * (at + 1) / 6)?;
        scheduler.signal(signal.rsplit(' ').next().unwrap_or(signal))?;
        let status = wait_for(&format!("{name} to end"), ENDED, || Ok(scheduler.ended()))?;
        if signal.ends_with("TERM") {
            codes.push(status.code());
            let tail = scheduler.tail();
            if !tail.contains("finished without leader elect") {
                return Err(format!("{name} does not say why it ended; {tail}").into());
            }
        }
    }
    let bound = count_bound(plane)?;
    if bound == PODS {
        return Err("all were bound before the last scheduler was killed".into());
    }
    if codes[0] != codes[1] || codes[0].is_none() {
        return Err(format!("ours and upstream's end with {codes:?} after SIGTERM").into());
    }
    let mut scheduler = start(plane, "scheduler-last")?;
    wait_until_bound(plane, &mut scheduler, PODS)?;
    scene.check(&mut scheduler)?;
    drop(scheduler);
    scene.close()
}

/// The API server is killed and another one takes its place, etcd stands still, and a watch has become too old by the time
/// the scheduler can go on.
pub(crate) fn survives_control_plane_failures() -> Result<(), Failed> {
    let mut scene = Scene::open()?;
    let plane = &mut scene.plane;
    let mut scheduler = start(plane, "scheduler")?;
    create_pods(plane, "killed", PODS)?;
    wait_until_bound(plane, &mut scheduler, PODS / 5)?;
    plane.restart_api_server()?;
    wait_until_bound(plane, &mut scheduler, PODS)?;

    create_pods(plane, "paused", PODS)?;
    wait_until_bound(plane, &mut scheduler, PODS + PODS / 5)?;
    plane.etcd().signal("STOP")?;
    // Long enough for requests to fail: the API server gives up on etcd after a while, and clients on the API server.
    let stopped = wait_for("a request to fail", BOUND, || Ok(plane.get("/readyz").is_err().then_some(())));
    plane.etcd().signal("CONT")?;
    stopped?;
    wait_until_bound(plane, &mut scheduler, 2 * PODS)?;

    scheduler.signal("STOP")?;
    create_pods(plane, "unseen", PODS)?;
    // The new server's memory of changes begins after what the scheduler has seen last.
    plane.restart_api_server()?;
    scheduler.signal("CONT")?;
    wait_until_bound(plane, &mut scheduler, 3 * PODS)?;
    scene.check(&mut scheduler)?;
    drop(scheduler);
    scene.close()
}

fn config(more: Value) -> Value {
    let mut config = json!({"clientConnection": {"qps": 300, "burst": 300}});
    crate::support::stage::merge(&mut config, more);
    config
}

fn start(plane: &ControlPlane, name: &str) -> Result<Process, String> {
    start_with(plane, name, json!({}), &[])
}

/// With this configuration too, and with these variables in its environment.
fn start_with(plane: &ControlPlane, name: &str, more: Value, variables: &[(&str, &str)]) -> Result<Process, String> {
    let path = plane.write_config(config(more))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    plane.run(name, command.arg("--secure-port=0").arg("--config").arg(path).envs(variables.iter().copied()))
}

fn start_upstream_with(plane: &ControlPlane, name: &str, more: Value) -> Result<Process, String> {
    let path = plane.write_config(config(more))?;
    let [port] = free_ports()?;
    let mut command = Command::new(program("kube-scheduler"));
    command.args(["--bind-address=127.0.0.1", "--secure-port"]).arg(port.to_string());
    plane.run(name, command.arg("--config").arg(path))
}

fn node(name: &str) -> Value {
    let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{
            "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}},
        }]},
    })
}

fn nodes_of(plane: &ControlPlane) -> Api<Node> {
    Api::all(plane.client.clone())
}

fn pods_of(plane: &ControlPlane) -> Api<Pod> {
    Api::namespaced(plane.client.clone(), "default")
}

fn create_nodes(plane: &ControlPlane) -> Result<(), String> {
    let nodes = nodes_of(plane);
    let create = async {
        for at in 0..NODES {
            nodes.create(&PostParams::default(), &typed(node(&format!("node-{at}")))).await?;
        }
        Ok(())
    };
    plane.runtime.block_on(create).map_err(|error: kube::Error| error.to_string())
}

pub(crate) fn create_pods(plane: &ControlPlane, stem: &str, count: usize) -> Result<(), String> {
    create_pods_like(plane, stem, count, &json!({}))
}

/// Pods into which `more` is merged.
fn create_pods_like(plane: &ControlPlane, stem: &str, count: usize, more: &Value) -> Result<(), String> {
    let pods = pods_of(plane);
    let create = stream::iter(0..count)
        .map(|at| {
            let pods = &pods;
            let mut pod = pod(&format!("{stem}-{at}"));
            crate::support::stage::merge(&mut pod, more.clone());
            async move { pods.create(&PostParams::default(), &typed(pod)).await.map(drop) }
        })
        .buffer_unordered(SENDERS)
        .try_collect::<()>();
    plane.runtime.block_on(create).map_err(|error| error.to_string())
}

fn pods_there(plane: &ControlPlane) -> Result<Vec<Pod>, String> {
    list(plane, "default")
}

fn count_pods(plane: &ControlPlane) -> Result<usize, String> {
    pods_there(plane).map(|pods| pods.len())
}

pub(crate) fn count_bound(plane: &ControlPlane) -> Result<usize, String> {
    Ok(pods_there(plane)?.iter().filter(|pod| node_of(pod).is_some()).count())
}

/// Waits until so many pods have a node.
pub(crate) fn wait_until_bound(plane: &ControlPlane, scheduler: &mut Process, count: usize) -> Result<(), String> {
    let mut last = 0;
    let waited = wait_for(&format!("{count} bound pods"), BOUND, || {
        if let Some(status) = scheduler.ended() {
            return Err(format!("the scheduler ended with {status}"));
        }
        last = count_bound(plane)?;
        Ok((last >= count).then_some(()))
    });
    waited.map_err(|error| format!("{error}, {last} are bound; {}", scheduler.tail()))
}
