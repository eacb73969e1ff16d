//! The slim [`Node`], with the fields that scheduling needs.

use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::meta::{core_resource, nullable};
use super::{Original, ResourceList, StringMap, annotations, labels};

/// A node with the fields that scheduling needs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Name, UID, labels, annotations and times, without managed fields and finalizers.
    #[serde(deserialize_with = "super::meta::deserialize")]
    pub metadata: ObjectMeta,
    /// Specification of the node.
    pub spec: NodeSpec,
    /// Status that the node reports.
    pub status: NodeStatus,
    /// The complete node as JSON, kept only if an extender or plugin needs complete nodes.
    #[serde(skip)]
    pub original: Option<Original>,
}

/// The part of a node's specification that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Whether the node is cordoned, so that no new pods are scheduled to it.
    pub unschedulable: bool,
    /// Taints in the API's order.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
}

/// The part of a node's status that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// Total resources of the node.
    pub capacity: ResourceList,
    /// Resources of the node that pods may use.
    pub allocatable: ResourceList,
    /// Conditions in the API's order.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<NodeCondition>,
    /// Images on the node.
    #[serde(deserialize_with = "nullable")]
    pub images: Vec<ContainerImage>,
    /// Features that the kubelet declares, sorted.
    #[serde(deserialize_with = "nullable")]
    pub declared_features: Vec<String>,
}

/// A container image on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerImage {
    /// All names of the image.
    #[serde(deserialize_with = "nullable")]
    pub names: Vec<String>,
    /// Size of the image in bytes.
    pub size_bytes: i64,
}

impl Node {
    /// Returns the node's name; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the node's labels.
    pub fn labels(&self) -> &StringMap {
        labels(&self.metadata)
    }

    /// Returns the node's annotations.
    pub fn annotations(&self) -> &StringMap {
        annotations(&self.metadata)
    }
}

core_resource!(Node, ClusterResourceScope, "nodes");
