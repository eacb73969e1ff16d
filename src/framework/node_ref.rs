//! A node with its position in the snapshot.

use std::ops::Deref;

use crate::model::{NodeInfo, NodeOrdinal, Snapshot};

/// A node with its ordinal in the cycle's snapshot. It dereferences to [`NodeInfo`].
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    /// The node with its pods. These pods differ from the snapshot's if nominated pods were added or victims removed. Plugins
    /// must use the pods in `info`.
    pub info: &'a NodeInfo,
    /// Ordinal of the node in the snapshot. The snapshot's node has the same labels, taints and capacity as `info`. `None` for a
    /// node that an extender returned, because its object may differ from the snapshot's node of the same name.
    pub ordinal: Option<NodeOrdinal>,
}

impl<'a> NodeRef<'a> {
    /// Returns the node of the snapshot with this ordinal.
    pub fn new(snapshot: &'a Snapshot, ordinal: NodeOrdinal) -> Self {
        Self { info: snapshot.node(ordinal), ordinal: Some(ordinal) }
    }

    /// Returns all nodes of the snapshot, in the snapshot's order.
    pub fn all(snapshot: &'a Snapshot) -> Vec<Self> {
        snapshot.ordinals().map(|ordinal| Self::new(snapshot, ordinal)).collect()
    }

    /// Returns the node of the snapshot with this name.
    pub fn named(snapshot: &'a Snapshot, name: &str) -> Option<Self> {
        snapshot.ordinal(name).map(|ordinal| Self::new(snapshot, ordinal))
    }

    /// Returns a node that is not in the snapshot.
    pub fn outside(info: &'a NodeInfo) -> Self {
        Self { info, ordinal: None }
    }

    /// Returns the same node with the pods of `info`.
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
