//! Changes of stored objects, as watches report them.

use std::sync::Arc;

use super::object::Object;

/// Type of a write, which is also the type of the watch event that it causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// Returns the name of the watch event type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One write to the store.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) kind: ChangeKind,
    /// The object after the write. For a delete, its last state with the version of the delete.
    pub(super) object: Arc<Object>,
    /// The object before the write.
    pub(super) previous: Option<Arc<Object>>,
}
