//! Changes of a store, and observers of these changes.

use std::sync::Arc;

/// A change of one object in a store.
#[derive(Debug)]
pub enum Change<K: ?Sized> {
    /// An object was added.
    Added(Arc<K>),
    /// The object was replaced by a later version of it.
    Updated {
        /// The version before the change.
        old: Arc<K>,
        /// The version after the change.
        new: Arc<K>,
    },
    /// An object was deleted.
    Deleted {
        /// The last known state.
        last: Arc<K>,
        /// Whether the deletion event was missed, in which case `last` may be older than the final state.
        missed: bool,
    },
}

/// The changes that one delivered object makes: none, one or two. There are two, a deletion and an addition, if the object
/// replaces one with the same name and another UID.
#[derive(Debug)]
pub struct Changes<K: ?Sized>(pub(super) [Option<Change<K>>; 2]);

/// State that is kept up to date with the changes of a store.
///
/// A store calls its observers in the order in which they were added, once per change and in the order of the changes. They are
/// called before the change reaches the queue and the cache. During the call, other threads can read the store, but cannot write
/// to it. So an observer may read the store and its indexes, which already include the change, but must not write to the store.
/// An observer's own lock cannot cause a deadlock: any thread may read the store while it holds that lock.
pub trait Observer<K>: Send + Sync {
    /// Updates the state for one change.
    fn changed(&self, change: &Change<K>);
}

impl<K: ?Sized> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(new) => Self::Added(new.clone()),
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted { last, missed } => Self::Deleted { last: last.clone(), missed: *missed },
        }
    }
}

impl<K: ?Sized> Changes<K> {
    /// Iterates over the changes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Change<K>> {
        self.0.iter().flatten()
    }
}

impl<K: kube::Resource> Changes<K> {
    /// Returns the changes from `old`, the known object, to `new`. An equal resource version is no change. A different UID
    /// means that the known object was deleted and that its deletion event was missed. Follows
    /// `client-go/tools/cache/shared_informer.go#sharedIndexInformer.OnUpdate @v1.36.3` except for the UID, which upstream
    /// ignores. So upstream exits if a pod is replaced by a pod of the same name on another node while no watch is open.
    pub(super) fn between(old: Option<Arc<K>>, new: Arc<K>) -> Self {
        let Some(old) = old else { return Self([Some(Change::Added(new)), None]) };
        let (before, after) = (old.meta(), new.meta());
        if before.uid != after.uid {
            return Self([Some(Change::Deleted { last: old, missed: true }), Some(Change::Added(new))]);
        }
        if before.resource_version == after.resource_version {
            return Self([None, None]);
        }
        Self([Some(Change::Updated { old, new }), None])
    }
}
