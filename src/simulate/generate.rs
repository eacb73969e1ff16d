//! Generates a simple cluster: equal nodes in three zones, and pods of four sizes.

use serde_json::{Value, json};

/// Number of zones, between which the nodes alternate.
const ZONES: usize = 3;

/// CPU and memory requests, between which the pods alternate.
const SIZES: [(&str, &str); 4] = [("100m", "128Mi"), ("250m", "256Mi"), ("500m", "512Mi"), ("1", "1Gi")];

/// Generates a node with 32 cores, 128 GiB and room for 110 pods.
pub(super) fn node(number: usize) -> Value {
    let name = format!("node-{number}");
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/region": "region",
            "topology.kubernetes.io/zone": format!("zone-{}", number % ZONES),
        }},
        "status": {
            "capacity": {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"},
            "allocatable": {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

/// Generates a pod with one container.
pub(super) fn pod(number: usize) -> Value {
    let (cpu, memory) = SIZES[number % SIZES.len()];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number}"), "namespace": "default",
            "labels": {"app": format!("app-{}", number % 10)},
        },
        "spec": {"containers": [{
            "name": "main", "image": "registry.example/app:1",
            "resources": {"requests": {"cpu": cpu, "memory": memory}},
        }]},
    })
}
