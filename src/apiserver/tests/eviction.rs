//! Tests of the eviction subresource. `tests/controlplane` compares its replies with those of a real server.

use http::Method;
use serde_json::{Value, json};

use super::World;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b";

/// Creates a pod that runs and is ready.
async fn run(world: &World, name: &str) {
    world
        .server
        .create(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        }))
        .unwrap();
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    merge(world, &format!("{PODS}/{name}/status"), &status).await;
}

async fn merge(world: &World, path: &str, patch: &Value) {
    let (code, reply) = world.call(Method::PATCH, path, "application/merge-patch+json", &patch.to_string()).await;
    assert_eq!(code, 200, "{reply}");
}

async fn evict(world: &World, name: &str) -> (u16, Value) {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let (code, reply) = world.post(&format!("{PODS}/{name}/eviction"), &body).await;
    (code.as_u16(), reply)
}

#[tokio::test]
async fn eviction_spends_the_budget() {
    let world = World::new();
    run(&world, "p").await;
    run(&world, "q").await;
    world
        .server
        .create(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        }))
        .unwrap();
    let (code, reply) = evict(&world, "p").await;
    assert_eq!((code, &reply["details"]["retryAfterSeconds"]), (429, &json!(10)), "nobody has looked at it: {reply}");
    let counts = json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1});
    merge(&world, &format!("{BUDGET}/status"), &json!({"status": counts})).await;
    assert_eq!(evict(&world, "p").await.0, 201);
    let pod = world.get(&format!("{PODS}/p")).await.1;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    let status = world.get(BUDGET).await.1["status"].clone();
    assert_eq!(status["disruptionsAllowed"], 0);
    assert_eq!(status["disruptedPods"], json!({"p": "2026-01-01T00:00:00Z"}));
    let (code, reply) = evict(&world, "q").await;
    assert_eq!(code, 429);
    let why = "The disruption budget b does not allow evicting pods currently";
    assert_eq!(reply["details"]["causes"], json!([{"reason": "DisruptionBudget", "message": why}]));
}
