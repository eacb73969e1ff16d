//! Slim [`Pod`] and [`Node`], and pure helpers on API types.
//!
//! This module has types and pure functions only. It does not depend on the cache, the queue, a clock or the network. Every
//! other module may import this one.

pub mod conditions;
pub mod containers;
pub mod field_selector;
pub mod label_selector;
mod meta;
pub mod names;
mod node;
pub mod node_selector;
mod original;
mod pod;
pub mod quantity;
pub mod requests;
mod resource_list;
pub mod tolerations;

pub use containers::{QosClass, normalized_image_name};
pub use field_selector::FieldSelector;
pub use label_selector::{ParseSelectorError, Selector};
pub use meta::{annotations, labels, object_key};
pub use node::{ContainerImage, Node, NodeSpec, NodeStatus};
pub use node_selector::{NodeSelector, PreferredTerms, RequiredNodeAffinity};
pub use original::{Members, Original};
pub use pod::{
    Container, ContainerPort, ContainerStatus, NodeAllocatableClaimStatus, Pod, PodSpec, PodStatus,
    ResourceRequirements, Volume, VolumeSource,
};
pub use quantity::Quantity;
pub use requests::{RequestOptions, Requests, pod_limits, pod_requests};
pub use resource_list::ResourceList;
pub use tolerations::{find_untolerated_taint, tolerates};

/// A map of strings, the API's type of labels, annotations and `matchLabels`.
pub type StringMap = std::collections::BTreeMap<String, String>;
