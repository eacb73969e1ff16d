//! Changes of a store, and observers that follow them.

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
        /// Whether the deletion itself was missed, so that `last` may be an earlier state than the final one.
        missed: bool,
    },
}

/// The changes that one delivered object makes: none, one, or two where an object was replaced by another of its name.
#[derive(Debug)]
pub struct Changes<K: ?Sized>(pub(super) [Option<Change<K>>; 2]);

/// State that follows the changes of a store.
///
/// A store calls its observers in the order in which they were added, once for each change, in the order of the changes and
/// before the change reaches queue and cache. It does so with its writers locked out, but not its readers: an observer may
/// read the store and its indexes, which already include the change, and must not write to the store. Every reader of the
/// observer's own lock may read the store, too.
pub trait Observer<K>: Send + Sync {
    /// Takes in one change.
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
    /// The changes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Change<K>> {
        self.0.iter().flatten()
    }
}

impl<K: kube::Resource> Changes<K> {
    /// The changes from `old`, which was known until now, to `new`. A version that is known already is no change, and an
    /// object with another UID is another object, of which the first one's deletion was missed.
    /// Follows `client-go/tools/cache/shared_informer.go#sharedIndexInformer.OnUpdate @v1.36.3`, but for the UID, which
    /// upstream does not look at: it would end the process for a pod that was replaced by one of the same name on another
    /// node while no watch was open.
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
