//! Sources of new objects: clients, dumps of other clusters, and manifests.

/// Source of a new object, which decides which of its fields are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A request of a client. The server sets identity, times and status.
    Client,
    /// A dump of another cluster, where the object was valid. Identity, times and status are kept.
    Dump,
    /// A manifest that describes part of a cluster. Status, node and priority are kept, and the object must be valid.
    Manifest,
}
