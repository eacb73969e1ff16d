//! The index of a node in a snapshot.

/// The position of a node in a snapshot: the index into [`Snapshot::nodes`](super::Snapshot::nodes). It is valid for that
/// snapshot only, so it must not be kept beyond the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeOrdinal(u32);

impl NodeOrdinal {
    /// The ordinal of the node at this index.
    ///
    /// # Panics
    ///
    /// Panics if the index does not fit into 32 bits. A cluster has fewer nodes.
    #[inline]
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("a cluster has fewer nodes"))
    }

    /// The index into the list of nodes, and into every array with one entry per node.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
