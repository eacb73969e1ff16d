//! Slim [`Pod`] and [`Node`], and pure helpers on API types.
//!
//! Vocabulary only: nothing here knows a cache, a queue, a clock or a network. Every other module may import this one;
//! this one imports none of them.

pub mod conditions;
mod meta;
pub mod names;
mod node;
mod pod;
pub mod quantity;
pub mod requests;
mod resource_list;

pub use meta::{annotations, labels, object_key};
pub use node::{ContainerImage, Node, NodeSpec, NodeStatus};
pub use pod::{
    Container, ContainerPort, ContainerStatus, NodeAllocatableClaimStatus, Pod, PodSpec, PodStatus,
    ResourceRequirements, Volume, VolumeSource,
};
pub use quantity::Quantity;
pub use requests::{RequestOptions, Requests, pod_limits, pod_requests};
pub use resource_list::ResourceList;

/// Labels, annotations and selectors' `matchLabels`, as the API has them.
pub type StringMap = std::collections::BTreeMap<String, String>;
