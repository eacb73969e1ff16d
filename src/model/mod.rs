//! The data that the scheduler computes with: pods and nodes with derived values, resources, cluster events.
//!
//! This module has data and arithmetic only. The modules `queue` and `cache` know whether a pod is queued or assumed, and plugins
//! decide where a pod fits.

mod affinity;
mod class_count;
mod domains;
mod event;
mod host_port;
mod index_set;
mod intern;
mod node_info;
mod occurrence;
mod ordinal;
mod pod_info;
mod resources;
mod snapshot;
mod term_count;

pub use affinity::{AffinityTerm, AffinityTerms, WeightedAffinityTerm, required_anti_affinity};
pub use class_count::ClassCount;
pub use domains::Domains;
pub use event::{ActionType, ClusterEvent, EventLabel, EventObjects, EventResource, Object};
pub use host_port::{HostPort, HostPorts};
pub use index_set::IndexSet;
pub use intern::{ClassId, LabelClass, LabelClasses};
pub use node_info::{ImageState, NodeInfo};
pub use occurrence::Occurrence;
pub use ordinal::NodeOrdinal;
pub use pod_info::{NonZeroRequest, PodInfo, ResourceGates};
pub use resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources, quantity_of};
pub use snapshot::Snapshot;
pub use term_count::TermCount;
