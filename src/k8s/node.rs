//! The slim [`Node`].

use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::meta::{core_resource, nullable};
use super::{Original, ResourceList, StringMap, annotations, labels};

/// A node as scheduling sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Identity, labels, annotations and times; without managed fields and finalizers.
    #[serde(deserialize_with = "super::meta::deserialize")]
    pub metadata: ObjectMeta,
    /// What operators ask of it.
    pub spec: NodeSpec,
    /// What it reports.
    pub status: NodeStatus,
    /// All of it as JSON, where somebody has to be sent whole nodes.
    #[serde(skip)]
    pub original: Option<Original>,
}

/// The part of a node's specification that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Whether new pods are kept away.
    pub unschedulable: bool,
    /// Taints in the API's order.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
}

/// The part of a node's status that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeStatus {
    /// All that the node has.
    pub capacity: ResourceList,
    /// What pods may use of it.
    pub allocatable: ResourceList,
    /// Conditions in the API's order.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<NodeCondition>,
    /// Images on the node.
    #[serde(deserialize_with = "nullable")]
    pub images: Vec<ContainerImage>,
    /// Features that the node's agent says it has, sorted.
    #[serde(deserialize_with = "nullable")]
    pub declared_features: Vec<String>,
}

/// An image on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerImage {
    /// Every name it goes by.
    #[serde(deserialize_with = "nullable")]
    pub names: Vec<String>,
    /// Its size.
    pub size_bytes: i64,
}

impl Node {
    /// The node's name; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The node's labels.
    pub fn labels(&self) -> &StringMap {
        labels(&self.metadata)
    }

    /// The node's annotations.
    pub fn annotations(&self) -> &StringMap {
        annotations(&self.metadata)
    }
}

core_resource!(Node, ClusterResourceScope, "nodes");
