//! Schedulers on the embedded server, over a port: upstream's binary as it is by default, and the built one.

use std::process::Command;
use std::time::Duration;

use kube_scheduler::apiserver::kinds::{EVENTS, LEASES, PODS};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::Embedded;
use crate::support::cluster::{Process, free_ports, wait_for};
use crate::support::programs::program;

const COUNT: usize = 1000;
const NODES: usize = 20;

/// 1,000 bindings at upstream's 50 a second after a burst of 100 take 18 seconds, and events as long beside them.
const BOUND: Duration = Duration::from_mins(3);

/// 1,000 pods on 20 nodes under each scheduler: all are bound, and each has its event; who takes part in elections
/// holds the lease.
pub(crate) fn both_schedule_1000_pods_on_the_embedded_server() -> Result<(), Failed> {
    let [port] = free_ports()?;
    let mut upstream = Command::new(program("kube-scheduler"));
    upstream.args(["--bind-address=127.0.0.1", "--secure-port"]).arg(port.to_string());
    schedule("upstream", upstream, true).map_err(|error| format!("upstream: {error}"))?;
    let ours = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
        command.arg("--secure-port=0");
        command
    };
    for (name, elects) in [("ours-elected", true), ("ours", false)] {
        schedule(name, ours(), elects).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn schedule(name: &str, mut command: Command, elects: bool) -> Result<(), String> {
    let embedded = Embedded::start(name)?;
    fill(&embedded)?;
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": embedded.kubeconfig()}, "leaderElection": {"leaderElect": elects},
    });
    let path = embedded.folder.join("config.json");
    std::fs::write(&path, config.to_string()).map_err(|error| error.to_string())?;
    command.arg("--config").arg(path);
    let mut scheduler = embedded.run("scheduler", &mut command)?;
    let explained = |scheduler: &Process, error: String| format!("{error}; {}", scheduler.tail());
    let all = |scheduler: &mut Process, what: &str, count: &dyn Fn() -> usize| {
        let mut last = 0;
        wait_for(what, BOUND, || {
            if let Some(status) = scheduler.ended() {
                return Err(format!("the scheduler ended with {status}"));
            }
            last = count();
            Ok((last == COUNT).then_some(()))
        })
        .map_err(|error| format!("{error}: {last} of {COUNT}"))
    };
    let server = &embedded.server;
    let bound = || server.list(&PODS).iter().filter(|pod| pod.field("spec.nodeName") != Some("")).count();
    all(&mut scheduler, "all pods to be bound", &bound).map_err(|error| explained(&scheduler, error))?;
    let events = || server.list(&EVENTS).iter().filter(|event| event.field("reason") == Some("Scheduled")).count();
    all(&mut scheduler, "each pod's event", &events).map_err(|error| explained(&scheduler, error))?;
    let lease = server.get(&LEASES, "kube-system", "kube-scheduler").map(|lease| lease.value());
    let holder = lease.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str()).unwrap_or_default();
    if elects == holder.is_empty() {
        return Err(format!("the lease is held by {holder:?}"));
    }
    drop(scheduler);
    println!("{name}: {COUNT} pods bound over a port, with their events");
    embedded.remove()
}

fn fill(embedded: &Embedded) -> Result<(), String> {
    let create = |object: Value| embedded.server.create(object).map(drop).map_err(|status| status.message);
    for at in 0..NODES {
        let amounts = json!({"cpu": "32", "memory": "64Gi", "pods": "110"});
        create(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("node-{at}"), "labels": {"kubernetes.io/hostname": format!("node-{at}")}},
            "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
        }))?;
    }
    for at in 0..COUNT {
        let resources = json!({"requests": {"cpu": "500m", "memory": "256Mi"}});
        create(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{at}"), "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "registry.example/app:v1", "resources": resources}]},
        }))?;
    }
    Ok(())
}
