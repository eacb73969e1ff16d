//! Cost of the embedded API server: microseconds of one thread for each kind of request that a simulated pod causes, and the
//! size of a stored pod in bytes. Run it with `cargo bench --bench apiserver`. No timing is asserted.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube_scheduler::apiserver::{ApiServer, DeleteOptions, Options, kinds};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const PODS: usize = 20_000;
const NODES: usize = 5_000;

fn pod(number: usize) -> Value {
    let env: Vec<Value> = (0..6).map(|at| json!({"name": format!("VARIABLE_{at}"), "value": "some value"})).collect();
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("app-{:05}-{number:05}", number / 100), "namespace": "default",
            "labels": {"app": format!("app-{}", number / 100), "tier": "web", "pod-template-hash": "5f7c9d"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "u",
                "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"containers": [{"name": "c", "image": "registry.example.com/team/app:1.2.3", "env": env,
            "ports": [{"containerPort": 8080}],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
            "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "x"}}}]}})
}

fn node(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node_name(number), "labels": {"topology.kubernetes.io/zone": format!("z{}", number % 3)}},
        "status": {"capacity": {"cpu": "32", "memory": "128Gi", "pods": "110"}}})
}

fn node_name(number: usize) -> String {
    format!("node-{:04}", number % NODES)
}

fn binding(number: usize, name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "target": {"kind": "Node", "name": node_name(number)}})
}

fn event(number: usize, name: &str) -> Value {
    json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": format!("{name}.{number:016x}"), "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "Scheduled", "action": "Binding",
        "note": format!("Successfully assigned default/{name} to {}", node_name(number)),
        "reportingController": "default-scheduler", "reportingInstance": "default-scheduler-host",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": "default", "resourceVersion": "1"}})
}

fn timed(what: &str, count: usize, mut step: impl FnMut(usize)) {
    let start = Instant::now();
    (0..count).for_each(&mut step);
    report(what, count, start);
}

fn report(what: &str, count: usize, start: Instant) {
    let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap());
    println!("{what:<44} {micros:8.2} µs");
}

fn resident_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) / 1024
}

async fn request(server: &ApiServer, method: &str, path: String, body: &Value) {
    let body = kube::client::Body::from(body.to_string().into_bytes());
    let media_type = if method == "PATCH" { "application/strategic-merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", media_type).body(body);
    let response = server.service().oneshot(request.unwrap()).await.unwrap();
    assert!(response.status().is_success());
    black_box(response.into_body().collect().await.unwrap());
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = ApiServer::new(Options::new(Timestamp::now));
    timed("create node, direct", NODES, |number| drop(server.create(node(number)).unwrap()));
    timed("create pod, direct", PODS, |number| drop(server.create(pod(number)).unwrap()));
    let names: Vec<String> = server.list(&kinds::PODS).iter().map(|pod| pod.name().to_owned()).collect();
    let bytes: usize = server.list(&kinds::PODS).iter().map(|pod| pod.bytes().len()).sum();
    println!("bytes a pod {}; resident {} MiB", bytes / PODS, resident_mib());

    let start = Instant::now();
    let watch =
        "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let get = http::Request::builder().uri(watch).body(kube::client::Body::empty()).unwrap();
    let mut stream = server.service().oneshot(get).await.unwrap().into_body().into_data_stream();
    while server.pending() > 0 {
        black_box(stream.next().await);
    }
    report("watch: initial event, to the stream", PODS, start);

    let half = PODS / 2;
    timed("patch status, direct", half, |at| {
        let patch = json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/5000 nodes are available: 5000 Insufficient cpu.", "observedGeneration": 1}]}});
        drop(server.patch_status(&kinds::PODS, "default", &names[at], patch).unwrap());
    });
    timed("bind, direct", half, |at| server.bind("default", &binding(at, &names[at])).unwrap());
    timed("create event, direct", half, |at| drop(server.create(event(at, &names[at])).unwrap()));
    let waiting = server.pending();
    let start = Instant::now();
    while server.pending() > 0 {
        black_box(stream.next().await);
    }
    report("watch: event, to the stream", waiting, start);

    let start = Instant::now();
    for (at, name) in names.iter().enumerate().skip(half) {
        let path = format!("/api/v1/namespaces/default/pods/{name}/binding");
        request(&server, "POST", path, &binding(at, name)).await;
    }
    report("bind, as a request", half, start);
    let start = Instant::now();
    for (at, name) in names.iter().enumerate().skip(half) {
        let path = "/apis/events.k8s.io/v1/namespaces/default/events".to_owned();
        request(&server, "POST", path, &event(at, name)).await;
    }
    report("create event, as a request", half, start);
    println!("resident {} MiB", resident_mib());
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    timed("delete pod, direct", half, |at| drop(server.delete(&kinds::PODS, "default", &names[at], &now).unwrap()));
    let start = Instant::now();
    let patch = json!({"status": {"phase": "Running"}});
    for name in names.iter().skip(half) {
        request(&server, "PATCH", format!("/api/v1/namespaces/default/pods/{name}/status"), &patch).await;
    }
    report("patch status, as a request", half, start);
    let start = Instant::now();
    request(&server, "GET", "/api/v1/pods".to_owned(), &Value::Null).await;
    report("list pods, a pod", half, start);
}
