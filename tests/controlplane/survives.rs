//! What happens to schedulers and to control planes: processes are killed, stopped and started again in the middle of many
//! bindings. Judged from the API server's objects and its audit log: each pod ends bound, and was bound once.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::binds::{list, node_of, typed};
use crate::cluster::{ControlPlane, Process, SCHEDULER, wait_for};
use crate::parity::from_environment;

/// How long all pods may take, the backoff of those included whose binding failed.
const BOUND: Duration = Duration::from_mins(3);

/// How many pods are bound in the middle of it all.
const PODS: usize = 1000;

const NODES: usize = 50;

/// Requests that are sent at the same time.
const SENDERS: usize = 20;

/// SIGKILL and SIGTERM in the middle of 1,000 bindings, and another scheduler each time.
pub(crate) fn survives_being_killed() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    create_nodes(&plane)?;
    create_pods(&plane, "p", PODS)?;
    for (at, signal) in ["KILL", "TERM", "KILL"].into_iter().enumerate() {
        let mut scheduler = start(&plane, &format!("scheduler-{at}"))?;
        wait_until_bound(&plane, &mut scheduler, PODS * (at + 1) / 5)?;
        scheduler.signal(signal)?;
        wait_for("the scheduler's end", BOUND, || Ok(scheduler.ended()))?;
    }
    let bound = count_bound(&plane)?;
    if bound == PODS {
        return Err("all were bound before the last scheduler was killed".into());
    }
    let mut scheduler = start(&plane, "scheduler-last")?;
    wait_until_bound(&plane, &mut scheduler, PODS)?;
    check(&plane, &mut scheduler)?;
    drop(scheduler);
    Ok(plane.remove()?)
}

/// The API server is killed and another one takes its place, etcd stands still, and a watch has become too old by the time
/// the scheduler can go on.
pub(crate) fn survives_what_befalls_the_control_plane() -> Result<(), Failed> {
    let mut plane = ControlPlane::start()?;
    create_nodes(&plane)?;
    let mut scheduler = start(&plane, "scheduler")?;
    create_pods(&plane, "killed", PODS)?;
    wait_until_bound(&plane, &mut scheduler, PODS / 5)?;
    plane.restart_api_server()?;
    wait_until_bound(&plane, &mut scheduler, PODS)?;

    create_pods(&plane, "paused", PODS)?;
    wait_until_bound(&plane, &mut scheduler, PODS + PODS / 5)?;
    plane.etcd().signal("STOP")?;
    // Long enough for requests to fail: the API server gives up on etcd after a while, and clients on the API server.
    let stopped = wait_for("a request to fail", BOUND, || Ok(plane.get("/readyz").is_err().then_some(())));
    plane.etcd().signal("CONT")?;
    stopped?;
    wait_until_bound(&plane, &mut scheduler, 2 * PODS)?;

    scheduler.signal("STOP")?;
    create_pods(&plane, "unseen", PODS)?;
    // The new server's memory of changes begins after what the scheduler has seen last.
    plane.restart_api_server()?;
    scheduler.signal("CONT")?;
    wait_until_bound(&plane, &mut scheduler, 3 * PODS)?;
    check(&plane, &mut scheduler)?;
    drop(scheduler);
    Ok(plane.remove()?)
}

/// Pods and nodes come and go, 200 changes a second for `KS_CHURN` seconds; afterwards the scheduler has bound what is left,
/// and is as large as it was, with as many threads.
#[expect(clippy::disallowed_methods, reason = "so many changes a second are made")]
pub(crate) fn survives_churn() -> Result<(), Failed> {
    let seconds = from_environment("KS_CHURN")?.unwrap_or(60);
    let plane = ControlPlane::start()?;
    create_nodes(&plane)?;
    let mut scheduler = start(&plane, "scheduler")?;
    // Grown to what it needs for so many.
    create_pods(&plane, "warm", PODS)?;
    wait_until_bound(&plane, &mut scheduler, PODS)?;
    churn(&plane, 10)?;
    let before = [scheduler.status("VmRSS")?, scheduler.status("Threads")?];
    let began = Instant::now();
    let changes = churn(&plane, seconds)?;
    let took = began.elapsed();
    wait_until_bound(&plane, &mut scheduler, count_pods(&plane)?)?;
    check(&plane, &mut scheduler)?;
    let after = [scheduler.status("VmRSS")?, scheduler.status("Threads")?];
    println!(
        "{changes} changes in {took:.1?}: {} a second; KiB and threads were {before:?}, are {after:?}",
        changes as u64 / took.as_secs().max(1)
    );
    if after[0] > before[0] + before[0] / 4 || after[1] > before[1] {
        return Err(format!("KiB and threads were {before:?}, are {after:?}").into());
    }
    drop(scheduler);
    Ok(plane.remove()?)
}

fn start(plane: &ControlPlane, name: &str) -> Result<Process, String> {
    let path = plane.write_config(json!({"clientConnection": {"qps": 300, "burst": 300}}))?;
    plane.run(name, Command::new(env!("CARGO_BIN_EXE_kube-scheduler")).arg("--config").arg(path))
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

fn create_pods(plane: &ControlPlane, stem: &str, count: usize) -> Result<(), String> {
    let pods = pods_of(plane);
    let create = stream::iter(0..count)
        .map(|at| {
            let pods = &pods;
            async move { pods.create(&PostParams::default(), &typed(pod(&format!("{stem}-{at}")))).await.map(drop) }
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

fn count_bound(plane: &ControlPlane) -> Result<usize, String> {
    Ok(pods_there(plane)?.iter().filter(|pod| node_of(pod).is_some()).count())
}

/// Waits until so many pods have a node.
fn wait_until_bound(plane: &ControlPlane, scheduler: &mut Process, count: usize) -> Result<(), String> {
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

/// Every pod is on a node that has room for it, and nobody was bound twice; the scheduler still runs.
fn check(plane: &ControlPlane, scheduler: &mut Process) -> Result<(), String> {
    if let Some(status) = scheduler.ended() {
        return Err(format!("the scheduler ended with {status}; {}", scheduler.tail()));
    }
    let pods = pods_there(plane)?;
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in &pods {
        let node = node_of(pod).ok_or_else(|| format!("pod {:?} was forgotten", pod.metadata.name))?;
        *on_node.entry(node).or_default() += 1;
    }
    // 64 cores and half a core each.
    if let Some((node, count)) = on_node.iter().find(|(_, count)| **count > 128) {
        return Err(format!("{count} pods are on {node}"));
    }
    let mut bindings: BTreeMap<String, usize> = BTreeMap::new();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for entry in plane.audited(SCHEDULER)? {
        if entry["objectRef"]["subresource"] != "binding" {
            continue;
        }
        if entry["responseStatus"]["code"] == 201 {
            let uid = entry["requestObject"]["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            *bindings.entry(uid).or_default() += 1;
        } else {
            let message = entry["responseStatus"]["message"].as_str().unwrap_or_default();
            let words =
                message.split(' ').filter(|word| !word.contains(['"', '-'])).take(8).collect::<Vec<_>>().join(" ");
            *refused.entry(format!("{} {words}", entry["responseStatus"]["code"])).or_default() += 1;
        }
    }
    if let Some((uid, count)) = bindings.iter().find(|(_, count)| **count > 1) {
        return Err(format!("pod {uid} was bound {count} times"));
    }
    let unanswered =
        pods.iter().filter(|pod| pod.metadata.uid.as_ref().is_none_or(|uid| !bindings.contains_key(uid))).count();
    println!("{} pods bound once each; {unanswered} whose answer was lost; refused: {refused:?}", pods.len());
    Ok(())
}

/// Makes and removes pods, and relabels, adds and removes nodes, at 200 changes a second. Gives the number of changes.
#[expect(clippy::disallowed_methods, reason = "so many changes a second are made")]
fn churn(plane: &ControlPlane, seconds: u64) -> Result<usize, String> {
    const A_SECOND: u64 = 200;
    let (pods, nodes) = (pods_of(plane), nodes_of(plane));
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let began = Instant::now();
    let change = |at: u64| {
        let (pods, nodes, now) = (&pods, &nodes, &now);
        async move {
            tokio::time::sleep_until((began + Duration::from_millis(1000 * at / A_SECOND)).into()).await;
            let post = PostParams::default();
            let merge = kube::api::PatchParams::default();
            // A pod lives for 400 changes, which is two seconds.
            match at % 20 {
                0 => {
                    let labels = kube::api::Patch::Merge(json!({"metadata": {"labels": {"round": at.to_string()}}}));
                    nodes.patch(&format!("node-{}", at / 20 % NODES as u64), &merge, &labels).await.map(drop)
                }
                1 => nodes.create(&post, &typed(node(&format!("extra-{at}")))).await.map(drop),
                2 if at >= 100 => nodes.delete(&format!("extra-{}", at - 101), now).await.map(drop),
                other if other % 2 == 1 => pods.create(&post, &typed(pod(&format!("churn-{at}")))).await.map(drop),
                _ if at >= 401 => pods.delete(&format!("churn-{}", at - 401), now).await.map(drop),
                _ => Ok(()),
            }
        }
    };
    let total = seconds * A_SECOND;
    let all = stream::iter(0..total).map(change).buffer_unordered(SENDERS * 5).map(|done| match done {
        // The one before it may not be through yet, or there was none.
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(0),
        Err(error) => Err(error.to_string()),
        Ok(()) => Ok(1),
    });
    let changes = plane.runtime.block_on(all.try_fold(0, |sum, one: usize| async move { Ok(sum + one) }))?;
    // What this round has made goes, but for the pods of its last two seconds.
    plane
        .runtime
        .block_on(async {
            for node in nodes.list(&ListParams::default()).await?.items {
                let name = node.metadata.name.unwrap_or_default();
                if name.starts_with("extra-") {
                    nodes.delete(&name, &now).await?;
                }
            }
            for pod in pods.list(&ListParams::default()).await?.items {
                let gone = pod
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.node_name.as_deref())
                    .is_some_and(|node| node.starts_with("extra-"));
                let name = pod.metadata.name.unwrap_or_default();
                if gone || name.starts_with("churn-") {
                    pods.delete(&name, &now).await?;
                }
            }
            Ok(())
        })
        .map_err(|error: kube::Error| error.to_string())?;
    Ok(changes)
}
