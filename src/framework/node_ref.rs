//! A node that a plugin is asked about.

use std::ops::Deref;

use crate::model::{NodeInfo, NodeOrdinal, Snapshot};

/// A node that a plugin is asked about, with its place in the snapshot of the cycle. It can be used like a [`NodeInfo`].
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    /// The node. Its pods may differ from the snapshot's where nominated pods are added or victims removed, and are what
    /// counts.
    pub info: &'a NodeInfo,
    /// The ordinal of the node in the snapshot. The node has the labels, taints and capacity that the snapshot has under
    /// it. `None` for a node that is not of the snapshot: an extender returned it, and its object may differ from the
    /// snapshot's node of the same name.
    pub ordinal: Option<NodeOrdinal>,
}

impl<'a> NodeRef<'a> {
    /// The node of the snapshot with this ordinal.
    pub fn new(snapshot: &'a Snapshot, ordinal: NodeOrdinal) -> Self {
        Self { info: snapshot.node(ordinal), ordinal: Some(ordinal) }
    }

    /// All nodes of the snapshot, in its order.
    pub fn all(snapshot: &'a Snapshot) -> Vec<Self> {
        snapshot.ordinals().map(|ordinal| Self::new(snapshot, ordinal)).collect()
    }

    /// The node of the snapshot with this name.
    pub fn named(snapshot: &'a Snapshot, name: &str) -> Option<Self> {
        snapshot.ordinal(name).map(|ordinal| Self::new(snapshot, ordinal))
    }

    /// A node that is not of the snapshot.
    pub fn outside(info: &'a NodeInfo) -> Self {
        Self { info, ordinal: None }
    }

    /// The same node with other pods on it.
    #[must_use]
    pub fn with_pods_of<'b>(&self, info: &'b NodeInfo) -> NodeRef<'b> {
        debug_assert_eq!(self.info.name(), info.name(), "a what-if is about the same node");
        NodeRef { info, ordinal: self.ordinal }
    }
}

impl Deref for NodeRef<'_> {
    type Target = NodeInfo;

    fn deref(&self) -> &NodeInfo {
        self.info
    }
}
