//! Stores for every kind that scheduling reads: the informers' view, pods and nodes included.
//!
//! Written by `ingest` alone, read by everybody; shared by `Arc` with cache and queue. A store may lag behind the API
//! server, and be ahead of or behind a cycle's snapshot.

mod store;

pub use store::{Keyed, Store};

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment};

use crate::k8s::{Node, Pod};

/// The informers' view of every kind.
#[derive(Debug, Default)]
pub struct Listers {
    /// Pods that have not ended, of all schedulers.
    pub pods: Store<Pod>,
    /// Nodes.
    pub nodes: Store<Node>,
    /// Namespaces.
    pub namespaces: Store<Namespace>,
    /// Services.
    pub services: Store<Service>,
    /// Replication controllers.
    pub replication_controllers: Store<ReplicationController>,
    /// Replica sets.
    pub replica_sets: Store<ReplicaSet>,
    /// Stateful sets.
    pub stateful_sets: Store<StatefulSet>,
    /// Disruption budgets.
    pub pod_disruption_budgets: Store<PodDisruptionBudget>,
    /// Persistent volumes.
    pub persistent_volumes: Store<PersistentVolume>,
    /// Persistent volume claims.
    pub persistent_volume_claims: Store<PersistentVolumeClaim>,
    /// Storage classes.
    pub storage_classes: Store<StorageClass>,
    /// What nodes report of their CSI drivers.
    pub csi_nodes: Store<CSINode>,
    /// CSI drivers.
    pub csi_drivers: Store<CSIDriver>,
    /// Storage capacities.
    pub csi_storage_capacities: Store<CSIStorageCapacity>,
    /// Volume attachments.
    pub volume_attachments: Store<VolumeAttachment>,
    /// Device claims.
    pub resource_claims: Store<ResourceClaim>,
    /// Devices.
    pub resource_slices: Store<ResourceSlice>,
    /// Device classes.
    pub device_classes: Store<DeviceClass>,
}
