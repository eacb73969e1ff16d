//! Processor time and memory of both schedulers on a real control plane, for the figures in the README.

use std::process::Command;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams, PostParams};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::behaviour::binds::typed;
use crate::support::cluster::{ControlPlane, Process, free_ports, wait_for};
use crate::support::programs::program;

/// Nodes and pods of a measurement, unless `KS_NODES` and `KS_PODS` say otherwise.
const SIZE: [usize; 2] = [1000, 5000];

/// Measurements of each scheduler, unless `KS_PAIRS` says otherwise.
const PAIRS: usize = 3;

/// The longest time that a scheduler may take for all pods.
const BOUND: Duration = Duration::from_mins(10);

/// The time for which a scheduler with no pending pods is watched.
const IDLE: Duration = Duration::from_secs(10);

/// Measurements of one scheduler.
#[derive(Clone, Copy)]
struct Figures {
    /// Processor time for each pod, in milliseconds.
    millis: f64,
    /// Time from the first pod's creation until all pods are bound, in seconds.
    seconds: f64,
    /// Largest resident memory, in MiB.
    peak: f64,
    /// Resident memory ten seconds after the last pod was bound, in MiB.
    resident: f64,
}

/// Prints what each scheduler needs for the same pods. The schedulers take turns, and each has a control plane of its own.
pub(crate) fn measures_both_schedulers() -> Result<(), Failed> {
    if cfg!(debug_assertions) {
        return Err("a debug build is slower than what users run: measure with --release".into());
    }
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse::<usize>().map_err(|error| format!("{name}: {error}")),
        Err(_) => Ok(default),
    };
    let (nodes, pods, pairs) = (number("KS_NODES", SIZE[0])?, number("KS_PODS", SIZE[1])?, number("KS_PAIRS", PAIRS)?);
    println!("{nodes} nodes, {pods} pods");
    println!("{:<10} {:>10} {:>10} {:>10} {:>10}", "scheduler", "ms a pod", "seconds", "peak MiB", "idle MiB");
    let (mut ours, mut upstream) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        ours.push(measure("ours", Command::new(env!("CARGO_BIN_EXE_kube-scheduler")), nodes, pods)?);
        upstream.push(measure("upstream", Command::new(program("kube-scheduler")), nodes, pods)?);
    }
    let ratio = |of: &dyn Fn(&Figures) -> f64| {
        let ratios = ours.iter().zip(&upstream).map(|(ours, upstream)| of(upstream) / of(ours));
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    println!(
        "upstream / ours, median of {pairs} pairs: {:.1} times the processor time, {:.1} times the peak memory, {:.1} times the \
         idle memory",
        ratio(&|figures| figures.millis),
        ratio(&|figures| figures.peak),
        ratio(&|figures| figures.resident),
    );
    Ok(())
}

/// Measures one scheduler on a new control plane.
#[expect(clippy::disallowed_methods, reason = "the programs run in real time")]
fn measure(name: &str, mut command: Command, nodes: usize, pods: usize) -> Result<Figures, String> {
    let plane = ControlPlane::start()?;
    create::<Node>(&plane, &Api::all(plane.client.clone()), nodes, node)?;
    let config = json!({"clientConnection": {"kubeconfig": plane.kubeconfig(), "qps": 100_000, "burst": 100_000}});
    let [port] = free_ports()?;
    command.arg("--config").arg(plane.write_config(config)?);
    command.args(["--bind-address=127.0.0.1", "--secure-port"]).arg(port.to_string());
    let scheduler = plane.run(name, &mut command)?;
    // A first pod shows that the scheduler has all nodes and has grown to its size.
    create::<Pod>(&plane, &Api::namespaced(plane.client.clone(), "default"), 1, |_| pod("first"))?;
    until_bound(&plane, &scheduler)?;
    let (began, before) = (Instant::now(), scheduler.processor_time()?);
    create::<Pod>(&plane, &Api::namespaced(plane.client.clone(), "default"), pods, |at| pod(&format!("pod-{at}")))?;
    until_bound(&plane, &scheduler)?;
    let seconds = began.elapsed().as_secs_f64();
    std::thread::sleep(IDLE);
    let used = scheduler.processor_time()?.saturating_sub(before);
    let mib = |what| scheduler.status(what).map(in_mib);
    let millis = used.as_secs_f64() * 1000.0 / in_units(pods);
    let figures = Figures { millis, seconds, peak: mib("VmHWM")?, resident: mib("VmRSS")? };
    let Figures { millis, seconds, peak, resident } = figures;
    println!("{name:<10} {millis:>10.2} {seconds:>10.1} {peak:>10.1} {resident:>10.1}");
    drop(scheduler);
    plane.remove()?;
    Ok(figures)
}

#[expect(clippy::cast_precision_loss, reason = "sizes of processes are far below 2^52 KiB")]
fn in_mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

#[expect(clippy::cast_precision_loss, reason = "counts of pods are far below 2^52")]
fn in_units(count: usize) -> f64 {
    count as f64
}

/// Creates this many objects, 20 at a time.
fn create<K>(plane: &ControlPlane, api: &Api<K>, count: usize, object: impl Fn(usize) -> Value) -> Result<(), String>
where
    K: serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let post = PostParams::default();
    let creating = stream::iter(0..count)
        .map(|at| {
            let (post, object) = (&post, typed(object(at)));
            async move { api.create(post, &object).await.map(drop) }
        })
        .buffer_unordered(20)
        .try_collect::<()>();
    plane.runtime.block_on(creating).map_err(|error| error.to_string())
}

/// Waits until no pod is without a node.
#[expect(clippy::disallowed_methods, reason = "the programs run in real time")]
fn until_bound(plane: &ControlPlane, scheduler: &Process) -> Result<(), String> {
    let pods: Api<Pod> = Api::namespaced(plane.client.clone(), "default");
    let pending = ListParams::default().fields("spec.nodeName=").limit(1);
    wait_for("all pods to be bound", BOUND, || {
        // The API server looks at all pods for this, and it shares the processors with the scheduler.
        std::thread::sleep(Duration::from_millis(200));
        let list = plane.runtime.block_on(pods.list_metadata(&pending)).map_err(|error| error.to_string())?;
        Ok(list.items.is_empty().then_some(()))
    })
    .map_err(|error| format!("{error}; {}", scheduler.tail()))
}

fn node(at: usize) -> Value {
    let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    let zone = format!("zone-{}", at % 3);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("node-{at}"),
            "labels": {"kubernetes.io/hostname": format!("node-{at}"), "topology.kubernetes.io/zone": zone},
        },
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pod(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "500m", "memory": "256Mi"}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:v1", "resources": resources}]},
    })
}
