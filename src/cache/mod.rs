//! The scheduler's view of the cluster: nodes, the pods on them, and assumed pods (placed by the scheduler, not yet confirmed
//! by the API server).
//!
//! ```text
//!  ingest ──add/update/remove──▶ ┌────────────── Cache ───────────────┐
//!                                │ entries, most recently changed ─┐  │──update_snapshot──▶ Snapshot, one a cycle
//!  scheduler ──assume/forget───▶ │ node tree · image counts · pods │  │
//!                                └────────────────────────────────────┘
//! ```
//!
//! A pod is in the cache from the moment that it is assumed or observed with a node, until it is forgotten or deleted. Assumed
//! pods do not expire. An entry may have pods but no node: because its pods arrived before the node, or because the node was
//! deleted before its pods. Snapshots leave such entries out. The cost of a snapshot grows with the changes since the last
//! one, not with the size of the cluster.
//!
//! This module knows neither the queue, nor a clock, nor the network.

mod debugger;
mod error;
mod images;
mod node_tree;
mod nodes;
mod state;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use debugger::{Mismatch, compare, dump_nodes, dump_pods};
pub use error::{CacheError, PodRef};
pub use node_tree::zone_key;
use state::State;

use crate::k8s::{Node, Pod};
use crate::model::{NodeInfo, PodInfo, Snapshot};

/// Numbers of cached objects, for the `scheduler_cache_size` gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries, including those that have pods but no node.
    pub nodes: usize,
    /// Pods, assumed or confirmed.
    pub pods: usize,
    /// Pods that are assumed and not yet confirmed.
    pub assumed_pods: usize,
}

/// A pod in the cache, with its node and state.
#[derive(Clone, Debug)]
pub struct CachedPod {
    /// The pod itself, with precomputed data.
    pub pod: Arc<PodInfo>,
    /// Name of the pod's node.
    pub node: Arc<str>,
    /// Whether the pod is assumed and not yet confirmed.
    pub assumed: bool,
}

/// State of a pod in the cache before [`Cache::add_pod`] added it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodAdded {
    /// The pod was not in the cache.
    New,
    /// The pod was assumed on the same node.
    Confirmed,
    /// The pod was assumed on another node.
    Moved {
        /// Name of the node on which the pod was assumed.
        assumed: Arc<str>,
    },
}

/// The scheduler cache of nodes and pods. One lock guards all of its state and is held for the duration of a call. Pod
/// operations take constant time, except that a node's entry is copied when a snapshot shares it.
/// Follows `pkg/scheduler/backend/cache/cache.go#cacheImpl @v1.36.3`.
///
/// The UID identifies a pod: all calls fail with [`CacheError::EmptyUid`] for a pod without one. The pod's node is its
/// `spec.nodeName`.
#[derive(Debug, Default)]
pub struct Cache(Mutex<State>);

impl Cache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a node, and returns its entry.
    pub fn set_node(&self, node: Arc<Node>) -> Arc<NodeInfo> {
        self.lock().set_node(node)
    }

    /// Removes a node from the cache. Its entry stays as long as it has pods, because their deletions arrive by another watch.
    ///
    /// Fails with [`CacheError::NoSuchNode`], or with [`CacheError::NotInTree`] if the entry had only pods and no node.
    pub fn remove_node(&self, node: &Node) -> Result<(), CacheError> {
        self.lock().remove_node(node)
    }

    /// Assumes a pod: adds it to the node that was chosen for it, before the binding is written to the API server.
    ///
    /// Fails with [`CacheError::AlreadyCached`].
    pub fn assume_pod(&self, pod: Arc<PodInfo>) -> Result<(), CacheError> {
        self.lock().assume(pod)
    }

    /// Forgets an assumed pod: removes it from its node. Does nothing if the pod is not in the cache.
    ///
    /// Fails with [`CacheError::ForgottenElsewhere`] or [`CacheError::NotAssumed`].
    pub fn forget_pod(&self, pod: &Pod) -> Result<(), CacheError> {
        self.lock().forget(pod)
    }

    /// Adds a pod that the API server reports with a node, or confirms the pod if it was assumed.
    ///
    /// Fails with [`CacheError::AlreadyAdded`].
    pub fn add_pod(&self, pod: Arc<PodInfo>) -> Result<PodAdded, CacheError> {
        self.lock().add(pod)
    }

    /// Replaces a pod that has a node by its new state.
    ///
    /// Fails with [`CacheError::UnknownUpdated`], [`CacheError::AssumedUpdated`] or, fatally, [`CacheError::Corrupted`]. Fails
    /// with [`CacheError::AlreadyAdded`] if `new` has another UID than `old` and is already in the cache.
    pub fn update_pod(&self, old: &Pod, new: Arc<PodInfo>) -> Result<(), CacheError> {
        self.lock().update(old, new)
    }

    /// Removes a deleted pod. If its deletion event was missed, `pod` may be an old state from before the pod had a node.
    ///
    /// Fails with [`CacheError::UnknownRemoved`] or, fatally, [`CacheError::Corrupted`].
    pub fn remove_pod(&self, pod: &Pod) -> Result<(), CacheError> {
        self.lock().remove(pod)
    }

    /// Returns whether the pod is assumed and not yet confirmed.
    pub fn is_assumed(&self, pod: &Pod) -> Result<bool, CacheError> {
        self.lock().is_assumed(pod)
    }

    /// Returns the cached version of the pod. An assumed pod has its node set.
    ///
    /// Fails with [`CacheError::NoSuchPod`].
    pub fn get_pod(&self, pod: &Pod) -> Result<Arc<PodInfo>, CacheError> {
        self.lock().get(pod)
    }

    /// Counts the nodes and pods in the cache.
    pub fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// Returns every pod, sorted by UID. Expensive: for checks and dumps only.
    pub fn pods(&self) -> Vec<CachedPod> {
        self.lock().pods()
    }

    /// Returns every entry, sorted by node name, including entries without a node. Expensive: for checks and dumps only.
    pub fn nodes(&self) -> Vec<Arc<NodeInfo>> {
        self.lock().nodes()
    }

    /// Returns the entry of a node name, including an entry without a node.
    pub fn node(&self, name: &str) -> Option<Arc<NodeInfo>> {
        self.lock().node(name)
    }

    /// Updates a snapshot with all changes since its last update. The list of nodes is rebuilt only when nodes were added or
    /// removed.
    ///
    /// Fails with [`CacheError::InconsistentSnapshot`], after the snapshot was rebuilt and is consistent again.
    pub fn update_snapshot(&self, snapshot: &mut Snapshot) -> Result<(), CacheError> {
        self.lock().update_snapshot(snapshot)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
