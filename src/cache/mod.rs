//! What the scheduler believes of the cluster: nodes, the pods on them, and the pods it has decided to put there.
//!
//! ```text
//!  ingest ──add/update/remove──▶ ┌────────────── Cache ───────────────┐
//!                                │ entries, most recently changed ─┐  │──update_snapshot──▶ Snapshot, one a cycle
//!  scheduler ──assume/forget───▶ │ node tree · image counts · pods │  │
//!                                └────────────────────────────────────┘
//! ```
//!
//! A pod is here from the moment that it is assumed or seen with a node, until it is forgotten or deleted. Assumed pods do
//! not expire. An entry whose node is unknown (pods arrived first) or gone (pods leave later) is in no snapshot. A snapshot
//! costs what has changed since it was last brought up to date, not what there is.
//!
//! Nothing here knows the queue, a clock or the network.

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

/// What there is, for the `scheduler_cache_size` gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries, those of unknown nodes included.
    pub nodes: usize,
    /// Pods, assumed or confirmed.
    pub pods: usize,
    /// Pods that are assumed and not confirmed.
    pub assumed_pods: usize,
}

/// A pod in the cache.
#[derive(Clone, Debug)]
pub struct CachedPod {
    /// The pod.
    pub pod: Arc<PodInfo>,
    /// The node it is on.
    pub node: Arc<str>,
    /// Whether it is assumed and not confirmed.
    pub assumed: bool,
}

/// What an added pod was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodAdded {
    /// Unknown.
    New,
    /// Assumed on this node.
    Confirmed,
    /// Assumed on another node.
    Moved {
        /// That node.
        assumed: Arc<str>,
    },
}

/// The cache. Its lock guards everything in it and is held for one call; every pod operation takes constant time but for
/// copying the node's entry when a snapshot shares it. Follows `pkg/scheduler/backend/cache/cache.go#cacheImpl @v1.36.3`.
///
/// A pod is known by its UID, and all calls fail with [`CacheError::EmptyUid`] for one without. Its node is the pod's own
/// `spec.nodeName`.
#[derive(Debug, Default)]
pub struct Cache(Mutex<State>);

impl Cache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a node, and returns its entry.
    pub fn set_node(&self, node: Arc<Node>) -> Arc<NodeInfo> {
        self.lock().set_node(node)
    }

    /// Removes a node. Its entry stays as long as pods are on it, since their deletions come by another watch.
    ///
    /// Fails with [`CacheError::NoSuchNode`] or, when only pods were left of it, with [`CacheError::NotInTree`].
    pub fn remove_node(&self, node: &Node) -> Result<(), CacheError> {
        self.lock().remove_node(node)
    }

    /// Puts a pod onto the node that was chosen for it, before the API server knows.
    ///
    /// Fails with [`CacheError::AlreadyCached`].
    pub fn assume_pod(&self, pod: Arc<PodInfo>) -> Result<(), CacheError> {
        self.lock().assume(pod)
    }

    /// Takes an assumed pod off its node; does nothing to a pod that is not known.
    ///
    /// Fails with [`CacheError::ForgottenElsewhere`] or [`CacheError::NotAssumed`].
    pub fn forget_pod(&self, pod: &Pod) -> Result<(), CacheError> {
        self.lock().forget(pod)
    }

    /// A pod has a node, says the API server: adds it, or confirms it if it was assumed.
    ///
    /// Fails with [`CacheError::AlreadyAdded`].
    pub fn add_pod(&self, pod: Arc<PodInfo>) -> Result<PodAdded, CacheError> {
        self.lock().add(pod)
    }

    /// A pod with a node changed.
    ///
    /// Fails with [`CacheError::UnknownUpdated`], [`CacheError::AssumedUpdated`] or, fatally, [`CacheError::Corrupted`].
    pub fn update_pod(&self, old: &Pod, new: Arc<PodInfo>) -> Result<(), CacheError> {
        self.lock().update(old, new)
    }

    /// A pod with a node is gone. If its deletion was missed, `pod` may be a state from before it had one.
    ///
    /// Fails with [`CacheError::UnknownRemoved`] or, fatally, [`CacheError::Corrupted`].
    pub fn remove_pod(&self, pod: &Pod) -> Result<(), CacheError> {
        self.lock().remove(pod)
    }

    /// Whether the pod is assumed and not confirmed.
    pub fn is_assumed(&self, pod: &Pod) -> Result<bool, CacheError> {
        self.lock().is_assumed(pod)
    }

    /// The pod as the cache has it: assumed ones with their node.
    ///
    /// Fails with [`CacheError::NoSuchPod`].
    pub fn get_pod(&self, pod: &Pod) -> Result<Arc<PodInfo>, CacheError> {
        self.lock().get(pod)
    }

    /// What there is.
    pub fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// Every pod, sorted by UID. Expensive: for checks and dumps.
    pub fn pods(&self) -> Vec<CachedPod> {
        self.lock().pods()
    }

    /// Every entry, sorted by node name, those of unknown nodes included. Expensive: for checks and dumps.
    pub fn nodes(&self) -> Vec<Arc<NodeInfo>> {
        self.lock().nodes()
    }

    /// The entry of a node, known or not.
    pub fn node(&self, name: &str) -> Option<Arc<NodeInfo>> {
        self.lock().node(name)
    }

    /// Brings a snapshot up to date, at the cost of what has changed since. The list of nodes is made anew only when nodes
    /// came or went.
    ///
    /// Fails with [`CacheError::InconsistentSnapshot`]; the snapshot is good again then.
    pub fn update_snapshot(&self, snapshot: &mut Snapshot) -> Result<(), CacheError> {
        self.lock().update_snapshot(snapshot)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
