//! The time of one scheduling cycle, from the update of the snapshot to the chosen host, on plain clusters of 1,000, 5,000
//! and 15,000 nodes: the same clusters, pods and lines of output as `tests/controlplane/cmd/bench` has for upstream.
//!
//! `cargo bench --bench cycle [-- CYCLES]`; with `-- affinity CYCLES`, of pods that are spread or have terms on each
//! other, on 5,000 nodes.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod affinity;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::{Clock, SimClock};
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::engine::{Engine, EngineOptions};
use kube_scheduler::model::PodInfo;
use kube_scheduler::plugins;
use kube_scheduler::testing::{NodeFixture, PodFixture, node, pod};
use serde_json::json;

/// Size of the `k`-th image, in bytes.
fn image_size(k: i64) -> i64 {
    (k + 1) * 100 * 1024 * 1024
}

fn plain_node(number: usize) -> NodeFixture {
    let images: Vec<_> = (0..4)
        .map(|k| json!({"names": [format!("registry.example/image-{k}:v1")], "sizeBytes": image_size(k)}))
        .collect();
    node(&format!("node-{number}"))
        .label("topology.kubernetes.io/zone", &format!("zone-{}", number % 3))
        .allocatable("cpu", "32")
        .allocatable("memory", "256Gi")
        .set("status.images", json!(images))
}

fn plain_pod(name: &str) -> PodFixture {
    pod(name).label("app", "plain").image("registry.example/image-0:v1").cpu("500m").memory("512Mi")
}

#[derive(Clone, Copy)]
struct Setting {
    /// One of [`affinity::WORKLOADS`]; none for plain pods.
    affinity: Option<&'static str>,
    nodes: usize,
    parallelism: i32,
    percentage: i32,
    assume: bool,
    cycles: usize,
}

impl Setting {
    fn pod(&self, name: &str, running: bool, number: usize) -> PodFixture {
        self.affinity.map_or_else(|| plain_pod(name), |workload| affinity::pod(workload, name, running, number))
    }
}

fn engine(runtime: &tokio::runtime::Runtime, setting: &Setting) -> Engine {
    let _inside = runtime.enter();
    let gates = FeatureGates::default();
    let mut config = match setting.affinity {
        None | Some(affinity::SPREAD) => Config::defaults(&gates),
        Some(_) => Config::parse(affinity::config().to_string().as_bytes(), &gates).expect("a valid configuration"),
    };
    config.parallelism = setting.parallelism;
    config.percentage_of_nodes_to_score = setting.percentage;
    let wall = SimClock::new(jiff::Timestamp::UNIX_EPOCH);
    let server = ApiServer::new(Options::new(move || wall.now().wall));
    let options = EngineOptions {
        client: server.client(),
        config,
        gates,
        plugins: plugins::registry(),
        extenders: Vec::new(),
        clock: Clock::real(),
        metrics: prometheus::Registry::new(),
        seed: 0,
        hostname: "bench".to_owned(),
        runtime: runtime.handle().clone(),
        max_in_unschedulable: Duration::from_mins(5),
    };
    runtime.block_on(Engine::new(options)).expect("an engine with default profiles")
}

/// The mean time of a cycle.
fn time(runtime: &tokio::runtime::Runtime, setting: &Setting) -> Duration {
    let mut engine = engine(runtime, setting);
    let shared = engine.shared.clone();
    let info = |pod: PodFixture| Arc::new(PodInfo::new(pod.build(), &shared.classes));
    for namespace in setting.affinity.iter().flat_map(|_| affinity::namespaces()) {
        shared.listers.namespaces.apply(Arc::new(serde_json::from_value(namespace).expect("a namespace")));
    }
    for number in 0..setting.nodes {
        shared.cache.add_node(plain_node(number).build());
        let running = setting.pod(&format!("running-{number}"), true, number).on(&format!("node-{number}"));
        let running = info(running);
        shared.cache.add_pod(running).expect("a pod that the cache does not know");
    }
    let pending: Vec<_> =
        (0..setting.cycles).map(|number| info(setting.pod(&format!("pending-{number}"), false, number))).collect();
    engine.scheduler.find_node(&pending[0], shared.clock.now()).expect("every node fits");
    let mut total = Duration::ZERO;
    for pod in &pending {
        let now = shared.clock.now();
        let began = Instant::now();
        let host = engine.scheduler.find_node(pod, now).expect("every node fits");
        total += began.elapsed();
        if setting.assume {
            shared.cache.assume_pod(Arc::new(pod.assumed_on(&host))).expect("a pod that the cache does not know");
        }
    }
    total / u32::try_from(setting.cycles).expect("few cycles")
}

fn print(runtime: &tokio::runtime::Runtime, setting: &Setting) {
    let mean = time(runtime, setting);
    let mut line = json!({
        "nodes": setting.nodes, "parallelism": setting.parallelism, "percentageOfNodesToScore": setting.percentage,
        "assume": setting.assume, "cycles": setting.cycles,
        "nsPerOp": u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX),
    });
    if let Some(workload) = setting.affinity {
        line["affinity"] = workload.into();
    }
    println!("{line}");
}

fn main() {
    let cycles = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1000);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    if std::env::args().any(|argument| argument == "affinity") {
        for workload in affinity::WORKLOADS {
            for percentage in [0, 100] {
                let setting = Setting {
                    nodes: 5000,
                    parallelism: 16,
                    percentage,
                    assume: true,
                    cycles,
                    affinity: Some(workload),
                };
                print(&runtime, &setting);
            }
        }
        return;
    }
    for nodes in [1000, 5000, 15000] {
        for parallelism in [16, 1] {
            for percentage in [0, 100] {
                for assume in [false, true] {
                    let setting = Setting { nodes, parallelism, percentage, assume, cycles, affinity: None };
                    print(&runtime, &setting);
                }
            }
        }
    }
}
