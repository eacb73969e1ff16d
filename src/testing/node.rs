//! Fixtures of nodes: `node("a").zone("z").taint("dedicated", "", "NoSchedule")`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::json::{list, object, set, toleration_or_taint};
use crate::k8s::Node;
use crate::model::NodeInfo;

/// Returns a node with 4 cores, 8 GiB, room for 110 pods, and its name in the label `kubernetes.io/hostname`.
pub fn node(name: &str) -> NodeFixture {
    NodeFixture(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }))
}

/// Builder of a node for tests, with the final methods `json`, `build` and `info` like [`PodFixture`](super::PodFixture).
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeFixture(Value);

impl NodeFixture {
    /// Adds a label to the node.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        object(&mut self.0, &["metadata", "labels"]).insert(key.into(), value.into());
        self
    }

    /// Sets the zone label of the node.
    pub fn zone(self, zone: &str) -> Self {
        self.label("topology.kubernetes.io/zone", zone)
    }

    /// Adds a taint to the node.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        list(&mut self.0, &["spec"], "taints").push(Value::Object(toleration_or_taint(key, value, effect)));
        self
    }

    /// Marks the node as unschedulable.
    pub fn unschedulable(mut self) -> Self {
        object(&mut self.0, &["spec"]).insert("unschedulable".into(), true.into());
        self
    }

    /// Sets the allocatable amount of a resource.
    pub fn allocatable(mut self, resource: &str, amount: &str) -> Self {
        object(&mut self.0, &["status", "allocatable"]).insert(resource.into(), amount.into());
        self
    }

    /// Adds an image to the node.
    pub fn image(mut self, name: &str, size: i64) -> Self {
        list(&mut self.0, &["status"], "images").push(json!({"names": [name], "sizeBytes": size}));
        self
    }

    /// Sets a field by its path, such as `status.declaredFeatures`.
    pub fn set(mut self, path: &str, value: Value) -> Self {
        set(&mut self.0, path, value);
        self
    }

    /// Returns the node as JSON.
    pub fn json(self) -> Value {
        self.0
    }

    /// Decodes the node as the scheduler does.
    ///
    /// # Panics
    ///
    /// Panics if the JSON is not a node.
    pub fn build(self) -> Arc<Node> {
        Arc::new(serde_json::from_value(self.0).expect("the fixture is a node"))
    }

    /// Returns the node as plugins see it, without pods. Its images count as present on this node only.
    pub fn info(self) -> NodeInfo {
        NodeInfo::new(self.build())
    }
}
