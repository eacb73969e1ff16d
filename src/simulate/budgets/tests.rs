//! Tests of the computed status of budgets.

use super::*;
use crate::apiserver::Options;

const NOW: &str = "2026-01-01T00:10:00Z";

fn server(objects: impl IntoIterator<Item = Value>) -> ApiServer {
    let now: Timestamp = NOW.parse().expect("a time");
    let server = ApiServer::new(Options { create_namespaces: true, ..Options::new(move || now) });
    for object in objects {
        server.load(object).expect("a server takes it");
    }
    server
}

fn budget(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": spec,
    })
}

fn owner(kind: &str, version: &str, name: &str) -> Value {
    json!([{"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": true}])
}

/// Creates a pod on a node, which the replica set `set` owns.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "labels": {"app": "web"},
            "ownerReferences": owner("ReplicaSet", "apps/v1", "set"),
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    })
}

fn workload(kind: &str, name: &str, replicas: i64, owners: &Value) -> Value {
    let labels = json!({"app": "web"});
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": owners},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

fn status(server: &ApiServer) -> Value {
    Budgets::default().refresh(server, NOW.parse().expect("a time"));
    server.get(&kinds::POD_DISRUPTION_BUDGETS, "default", "b").expect("the budget").value()["status"].clone()
}

/// Checks the expected, desired, healthy and allowed pods, and the condition's reason.
#[track_caller]
fn check(objects: Vec<Value>, counts: [i64; 4], reason: &str) {
    let status = status(&server(objects));
    let number = |key: &str| status[key].as_i64().unwrap_or(0);
    let found = ["expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"].map(number);
    assert_eq!((found, status["conditions"][0]["reason"].as_str()), (counts, Some(reason)), "{status}");
}

#[test]
fn budget_amounts_are_numbers_or_percentages() {
    let with = |spec: Value| {
        let set = workload("ReplicaSet", "set", 5, &Value::Null);
        vec![set, pod("a"), pod("b"), pod("c"), budget(&spec)]
    };
    check(with(json!({"minAvailable": 2})), [3, 2, 3, 1], "SufficientPods");
    check(with(json!({"minAvailable": "50%"})), [5, 3, 3, 0], "InsufficientPods");
    check(with(json!({"maxUnavailable": 3})), [5, 2, 3, 1], "SufficientPods");
    check(with(json!({"maxUnavailable": "50%"})), [5, 2, 3, 1], "SufficientPods");
    check(with(json!({"maxUnavailable": 9})), [5, 0, 3, 3], "SufficientPods");
    check(with(json!({})), [0, 0, 3, 0], "InsufficientPods");
}

#[test]
fn expected_pods_come_from_the_topmost_scalable_controller() {
    let deployment = workload("Deployment", "deploy", 4, &Value::Null);
    let set = workload("ReplicaSet", "set", 9, &owner("Deployment", "apps/v1", "deploy"));
    let all = vec![deployment, set, pod("a"), pod("b"), budget(&json!({"maxUnavailable": 3}))];
    check(all, [4, 1, 2, 1], "SufficientPods");
    let orphan = vec![pod("a"), budget(&json!({"maxUnavailable": 1}))];
    check(orphan, [0, 0, 0, 0], "SyncFailed");
    let mut alone = pod("a");
    alone["metadata"]["ownerReferences"] = Value::Null;
    check(vec![alone.clone(), budget(&json!({"maxUnavailable": 1}))], [0, 0, 1, 0], "InsufficientPods");
    check(vec![alone, budget(&json!({"minAvailable": 0}))], [1, 0, 1, 1], "SufficientPods");
}

#[test]
fn only_running_pods_not_being_disrupted_are_healthy() {
    let mut pods = ["here", "pending", "unready", "ending", "failed", "announced", "late"].map(pod);
    pods[1]["spec"]["nodeName"] = Value::Null;
    pods[1]["status"]["phase"] = "Pending".into();
    pods[2]["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    pods[3]["metadata"]["deletionTimestamp"] = "2026-01-01T00:11:00Z".into();
    pods[3]["metadata"]["deletionGracePeriodSeconds"] = 60.into();
    pods[4]["status"]["phase"] = "Failed".into();
    let mut budget = budget(&json!({"minAvailable": 0}));
    budget["metadata"]["uid"] = "b".into();
    budget["status"] = json!({
        "disruptedPods": {"announced": "2026-01-01T00:09:00Z", "late": "2026-01-01T00:01:00Z", "gone": "2026-01-01T00:09:00Z"},
        "disruptionsAllowed": 7, "currentHealthy": 7, "desiredHealthy": 0, "expectedPods": 7,
    });
    let objects: Vec<Value> = pods.into_iter().chain([budget]).collect();
    let server = server(objects);
    let status = status(&server);
    assert_eq!((&status["expectedPods"], &status["currentHealthy"]), (&json!(7), &json!(2)), "{status}");
    assert_eq!(status["disruptedPods"], json!({"announced": "2026-01-01T00:09:00Z"}));
}

#[test]
fn unchanged_budgets_are_not_written() {
    let server = server([pod("a"), budget(&json!({"minAvailable": 0}))]);
    let mut budgets = Budgets::default();
    let now: Timestamp = NOW.parse().expect("a time");
    assert!(budgets.refresh(&server, now) && !budgets.refresh(&server, now));
    server.load(pod("b")).expect("a pod");
    assert!(budgets.refresh(&server, now));
    server.load(workload("ReplicaSet", "other", 1, &Value::Null)).expect("a set");
    assert!(!budgets.refresh(&server, now));
}
