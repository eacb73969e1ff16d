//! Evicted pods in a simulation: they terminate, and their owners replace them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::command::{file, run};

/// A node of two cores on which `victims` run, which their owner made, and a pod that needs all of it.
fn cluster(owner: Value, victims: Vec<Value>) -> Vec<Value> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "20"}},
    });
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100,
    });
    let high = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "high", "namespace": "default"},
        "spec": {"priorityClassName": "high", "containers": [container("2")]},
    });
    [node, class, owner].into_iter().chain(victims).chain([high]).collect()
}

fn container(cpu: &str) -> Value {
    json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}})
}

fn owner(version: &str, kind: &str, spec: &Value) -> Value {
    let labels = json!({"app": "w"});
    let mut spec = spec.clone();
    spec["template"] = json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [container("1")], "restartPolicy": if kind == "Job" { "Never" } else { "Always" }},
    });
    if kind != "Job" {
        spec["selector"] = if version == "v1" { labels } else { json!({"matchLabels": labels}) };
    }
    json!({
        "apiVersion": version, "kind": kind, "metadata": {"name": "w", "namespace": "default", "uid": "w"}, "spec": spec,
    })
}

fn victim(name: &str, version: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "w"},
            "ownerReferences": [{"apiVersion": version, "kind": kind, "name": "w", "uid": "w", "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": [container("1")], "terminationGracePeriodSeconds": 45},
    })
}

fn simulate(name: &str, objects: &[Value]) -> Value {
    let text = objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let path = file(name, text);
    let output = run(&["simulate", &path.display().to_string(), "-o", "json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{name}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The victims give way when their grace is over, and as many pods of their owner wait as there were.
#[track_caller]
fn check(version: &str, kind: &str, spec: &Value, names: [&str; 2], waiting: usize) {
    let victims = names.map(|name| {
        let mut pod = victim(name, version, kind);
        if kind == "Job" {
            pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
        }
        pod
    });
    let report = simulate(&format!("{kind}.yaml"), &cluster(owner(version, kind, spec), victims.into()));
    let pods = report["pods"].as_array().expect("pods");
    let high = pods.iter().find(|pod| pod["name"] == "high").expect("the pod that needs room");
    assert_eq!(high["node"], "n", "{kind}: {report}");
    assert_eq!(report["totals"]["virtualSeconds"].as_f64(), Some(45.0), "{kind}: {report}");
    let preempted: Vec<&str> =
        report["preempted"].as_array().expect("victims").iter().filter_map(|pod| pod["name"].as_str()).collect();
    assert_eq!(preempted.len(), 2, "{kind}: {report}");
    let others: Vec<&Value> = pods.iter().filter(|pod| pod["name"] != "high").collect();
    assert_eq!(others.len(), waiting, "{kind}: {report}");
    assert!(others.iter().all(|pod| pod["reason"] == "Unschedulable"), "{kind}: {report}");
}

#[test]
fn controllers_replace_preempted_pods() {
    let two = json!({"replicas": 2});
    check("apps/v1", "ReplicaSet", &two, ["w-aaaaa", "w-bbbbb"], 2);
    check("v1", "ReplicationController", &two, ["w-aaaaa", "w-bbbbb"], 2);
    check("apps/v1", "StatefulSet", &json!({"replicas": 2, "serviceName": "w"}), ["w-0", "w-1"], 2);
    check("batch/v1", "Job", &json!({"parallelism": 2, "completions": 2}), ["w-aaaaa", "w-bbbbb"], 2);
    check("apps/v1", "DaemonSet", &json!({}), ["w-aaaaa", "w-bbbbb"], 1);
}

/// When the pods were made that replace a job's victims, counted from the start of the simulation; the victims' grace is 45 s.
#[track_caller]
fn check_replaced(policy: &str, seconds: i64) {
    let spec = json!({
        "parallelism": 2, "completions": 2, "completionMode": "Indexed", "podReplacementPolicy": policy,
    });
    let victims = ["w-0-aaaaa", "w-1-bbbbb"].map(|name| {
        let mut pod = victim(name, "batch/v1", "Job");
        pod["metadata"]["annotations"] = json!({"batch.kubernetes.io/job-completion-index": &name[2..3]});
        pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
        pod
    });
    let objects = cluster(owner("batch/v1", "Job", &spec), victims.into());
    let text = objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let path = file(&format!("{policy}.yaml"), text).display().to_string();
    let output = run(&["simulate", &path, "--events", "-o", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // A pod is tried as soon as it is there.
    let mut tried: BTreeMap<String, i64> = BTreeMap::new();
    for event in report["events"].as_array().expect("events") {
        let object = event["object"].as_str().unwrap_or_default();
        let Some((_, name)) = object.split_once("/w-") else { continue };
        if event["reason"] == "FailedScheduling" {
            let at: Timestamp = event["time"].as_str().and_then(|time| time.parse().ok()).expect("a time");
            let began: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
            tried.entry(name[..2].to_owned()).or_insert(at.duration_since(began).as_secs());
        }
    }
    assert_eq!(tried, [("0-".to_owned(), seconds), ("1-".to_owned(), seconds)].into(), "{policy}: {report}");
}

#[test]
fn pod_replacement_policy_delays_job_pods() {
    check_replaced("TerminatingOrFailed", 0);
    check_replaced("Failed", 45);
}

#[test]
fn initially_terminating_pods_end_after_their_grace_period() {
    let mut leaving = victim("leaving", "apps/v1", "ReplicaSet");
    leaving["metadata"]["ownerReferences"] = Value::Null;
    leaving["metadata"]["uid"] = "leaving".into();
    leaving["metadata"]["deletionTimestamp"] = "2025-06-01T00:00:00Z".into();
    leaving["metadata"]["deletionGracePeriodSeconds"] = 20.into();
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "20"}},
    });
    let waits = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits", "namespace": "default"},
        "spec": {"containers": [container("1")]},
    });
    let report = simulate("leaving.yaml", &[node, leaving, waits]);
    assert_eq!(report["pods"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(
        (&report["pods"][0]["node"], &report["totals"]["virtualSeconds"]),
        (&json!("n"), &json!(20.0)),
        "{report}"
    );
}

fn yaml(name: &str, text: &str) -> (String, String) {
    let path = file(name, text).display().to_string();
    let output = run(&["simulate", &path]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    let (page, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!page.is_empty(), "{stderr}");
    (page, stderr)
}

/// The victim's replacement takes the place at once, since the nomination of a pod that is spread keeps nobody away.
#[test]
fn endless_preemption_and_replacement_ends_the_simulation() {
    let (page, stderr) = yaml(
        "replaced-for-ever.yaml",
        "
apiVersion: v1
kind: Node
metadata: {name: one, labels: {kubernetes.io/hostname: one}}
status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: low, namespace: default, uid: u}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: low-1
  namespace: default
  labels: {app: a}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: low, uid: u, controller: true}]
spec: {nodeName: one, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {app: a}}
spec:
  priorityClassName: high
  topologySpreadConstraints:
  - {maxSkew: 1, minDomains: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}
  containers: [{name: c, image: i}]
",
    );
    assert!(
        stderr.contains("warning: simulation stopped after 121 preemptions: preempted pods are replaced"),
        "{stderr}"
    );
    assert!(page.contains("0 already placed, 121 preempted, on 1 node"), "{page}");
}

/// A pod of two cores, one on the node that it needs, whose grace is this, and the page.
fn with_grace(name: &str, grace: &str) -> String {
    let pod = |name: &str, spec: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default}}, spec: {{{spec}, \
             containers: [{{name: c, image: i, resources: {{requests: {{cpu: '2'}}}}}}]}}}}\n"
        )
    };
    let text = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: one}}, status: {{allocatable: {{cpu: '2', memory: 8Gi, pods: '9'}}}}}}\n\
         ---\n{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: high}}, value: 10}}\n{}{}",
        pod("low", &format!("nodeName: one, terminationGracePeriodSeconds: {grace}")),
        pod("high", "priorityClassName: high"),
    );
    yaml(name, &text).0
}

#[test]
fn victims_without_grace_period_are_reported() {
    let page = with_grace("grace-0.yaml", "0");
    assert!(page.contains("default    low        one"), "{page}");
    assert!(page.ends_with("1 pod placed, 0 pending, 0 already placed, 1 preempted, on 1 node; the last one was placed after 0.0 s of virtual time\n"), "{page}");
}

#[test]
fn long_grace_periods_pass_in_virtual_time() {
    let page = with_grace("grace-10-years.yaml", "315360000");
    assert!(page.ends_with("the last one was placed after 315360000.0 s of virtual time\n"), "{page}");
    let page = with_grace("grace-for-ever.yaml", "9223372036854775807");
    assert!(page.ends_with("0 pods placed, 1 pending, 1 already placed, 1 preempted, on 1 node\n"), "{page}");
}

/// The one that never fits is tried once more 5 minutes after it was refused, and the other one 30 s later.
#[test]
fn pending_pods_are_retried_before_the_simulation_ends() {
    let (page, _) = yaml(
        "once-more.yaml",
        "
{apiVersion: v1, kind: Node, metadata: {name: one, labels: {zone: z}}, status: {allocatable: {cpu: '2', memory: 8Gi, pods: '9'}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: top}, value: 100}
---
apiVersion: v1
kind: Pod
metadata: {name: t, namespace: default, uid: t, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30}
spec: {nodeName: one, priorityClassName: top, containers: [{name: c, image: i, resources: {requests: {cpu: 1500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: v, namespace: default, labels: {app: v}}
spec: {nodeName: one, containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  priorityClassName: high
  containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, labelSelector: {matchLabels: {app: v}}}
      - {topologyKey: zone, labelSelector: {matchLabels: {app: other}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: never, namespace: default}, spec: {nodeSelector: {no: where}, containers: [{name: c, image: i}]}}
",
    );
    assert!(page.contains("default    p      one"), "{page}");
}
