//! Mean time of one scheduling cycle, from the update of the snapshot to the chosen host. The clusters, the pods and the format
//! of the output are those of `tests/controlplane/cmd/bench`, which times upstream. For a pod that fits no node, the cycle ends
//! with the nomination of a node. The victims are not evicted.
//!
//! ```sh
//! cargo bench --bench cycle -- [CYCLES]                            plain clusters of 1,000, 5,000 and 15,000 nodes
//! cargo bench --bench cycle -- workloads [CYCLES]                  all workloads on 5,000 nodes
//! cargo bench --bench cycle -- against path/to/bench [WORKLOAD…]   a table of both, timed by turns
//! ```

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod against;
mod workload;

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::SimClock;
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::engine::Engine;
use kube_scheduler::model::PodInfo;
use kube_scheduler::plugins;
use kube_scheduler::testing::PodFixture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use workload::{PLAIN, PREEMPTION, WORKLOADS};

#[derive(Clone, Copy)]
struct Setting {
    /// Name of the workload, one of [`WORKLOADS`].
    workload: &'static str,
    nodes: usize,
    parallelism: i32,
    /// Percentage of nodes to score. 0 means that it adapts to the size of the cluster.
    percentage: i32,
    /// Whether each pod is assumed on its host, so that the next snapshot differs by one node.
    assume: bool,
    /// Number of timed cycles. Before them, a tenth of this number is run as a warm-up.
    cycles: usize,
}

fn engine(runtime: &tokio::runtime::Runtime, setting: &Setting) -> Engine {
    let _inside = runtime.enter();
    let gates = FeatureGates::default();
    let config = workload::config(setting.workload).to_string();
    let mut config =
        Config::parse(config.as_bytes(), &gates, plugins::registry().catalog()).expect("a valid configuration");
    config.parallelism = setting.parallelism;
    config.percentage_of_nodes_to_score = setting.percentage;
    let wall = SimClock::new(jiff::Timestamp::UNIX_EPOCH);
    let server = ApiServer::new(Options::new(move || wall.now().wall));
    let building = Engine::builder(server.client(), config, plugins::registry()).gates(gates).build();
    runtime.block_on(building).expect("an engine with default profiles")
}

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).expect("an object of its kind"))
}

/// Returns the mean time of a cycle.
fn time(setting: &Setting) -> Duration {
    // Once the engine is built, nothing drives this runtime. So spawned tasks do not run, and no victim is evicted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut engine = engine(&runtime, setting);
    let shared = engine.shared.clone();
    let info = |pod: PodFixture| Arc::new(PodInfo::new(pod.build(), &shared.classes));
    workload::namespaces().for_each(|namespace| shared.listers.put(object::<Namespace>(namespace)));
    if setting.workload == PREEMPTION {
        workload::budgets().for_each(|budget| shared.listers.put(object::<PodDisruptionBudget>(budget)));
    }
    for number in 0..setting.nodes {
        shared.cache.set_node(workload::plain_node(number).build());
        for pod in workload::running(setting.workload, number) {
            shared.cache.add_pod(info(pod)).expect("a pod that the cache does not know");
        }
    }
    let warm_up = setting.cycles / 10;
    let pending = (0..warm_up + setting.cycles).map(|number| info(workload::pending(setting.workload, number)));
    let pending: Vec<_> = pending.collect();
    pending.iter().for_each(|pod| shared.listers.put(pod.pod().clone()));
    let mut total = Duration::ZERO;
    for (number, pod) in pending.iter().enumerate() {
        let now = shared.clock.now();
        let began = Instant::now();
        let found = engine.scheduler.find_node(pod, now);
        if number >= warm_up {
            total += began.elapsed();
        }
        match found {
            Ok(host) if setting.assume => {
                shared.cache.assume_pod(Arc::new(pod.assumed_on(&host))).expect("a pod that the cache does not know");
            }
            Ok(_) => {}
            Err((_, nominating)) => assert!(setting.workload == PREEMPTION, "{nominating:?}"),
        }
    }
    total / u32::try_from(setting.cycles).expect("few cycles")
}

fn print(setting: &Setting) {
    let mean = time(setting);
    let line = json!({
        "workload": setting.workload, "nodes": setting.nodes, "parallelism": setting.parallelism,
        "percentageOfNodesToScore": setting.percentage, "assume": setting.assume, "cycles": setting.cycles,
        "nsPerOp": u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX),
    });
    println!("{line}");
}

fn print_plain(cycles: usize) {
    for nodes in [1000, 5000, 15000] {
        for parallelism in [16, 1] {
            for percentage in [0, 100] {
                for assume in [false, true] {
                    print(&Setting { workload: PLAIN, nodes, parallelism, percentage, assume, cycles });
                }
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let cycles =
        |arguments: &[String]| arguments.first().map_or(1000, |count| count.parse().expect("a number of cycles"));
    match arguments.split_first() {
        Some((mode, rest)) if mode == "against" => against::print(&rest[0], &rest[1..]),
        Some((mode, rest)) if mode == "workloads" => {
            for workload in WORKLOADS {
                for percentage in [0, 100] {
                    let cycles = cycles(rest);
                    print(&Setting { workload, nodes: 5000, parallelism: 16, percentage, assume: true, cycles });
                }
            }
        }
        _ => print_plain(cycles(&arguments)),
    }
}
