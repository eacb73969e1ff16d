//! From what a server tells of a kind to what changed in it: stores are kept, and each change goes to its handler once.
//!
//! Synchronous and without a network; the reflector calls it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decode::Item;
use crate::cache::CacheError;
use crate::clock::Now;
use crate::listers::Store;

/// Where the changes of one kind go. A handler fails only when the process has to end.
pub(super) trait Sink: Send + Sync + 'static {
    /// The kind.
    type Object: kube::Resource + Send + Sync + 'static;
    /// What is known of the kind; written here alone.
    fn store(&self) -> &Store<Self::Object>;
    /// An object came.
    fn added(&self, object: &Arc<Self::Object>, now: Now) -> Result<(), CacheError>;
    /// An object changed.
    fn updated(&self, old: &Arc<Self::Object>, new: &Arc<Self::Object>, now: Now) -> Result<(), CacheError>;
    /// An object went. If its deletion was `missed`, this is an earlier state.
    fn deleted(&self, object: &Arc<Self::Object>, missed: bool, now: Now) -> Result<(), CacheError>;
}

/// An object is there: it came, or changed. One with the version that is known already is kept but goes to no handler, and
/// one with another UID is another object, of which the first one's end was missed.
/// Follows `client-go/tools/cache/shared_informer.go#sharedIndexInformer.OnUpdate @v1.36.3`, but for the UID, which upstream
/// does not look at: it would end the process for a pod that was replaced by one of the same name on another node while no
/// watch was open.
pub(super) fn apply<S: Sink>(sink: &S, item: Item<S::Object>, now: Now) -> Result<(), CacheError> {
    let Item::Read(object) = item else { return Ok(()) };
    let new = Arc::new(object);
    let Some(old) = sink.store().apply(new.clone()) else { return sink.added(&new, now) };
    let (before, after) = (kube::Resource::meta(&*old), kube::Resource::meta(&*new));
    if before.uid != after.uid {
        sink.deleted(&old, true, now)?;
        return sink.added(&new, now);
    }
    if before.resource_version == after.resource_version {
        return Ok(());
    }
    sink.updated(&old, &new, now)
}

/// An object was deleted.
pub(super) fn delete<S: Sink>(sink: &S, item: Item<S::Object>, now: Now) -> Result<(), CacheError> {
    let known = sink.store().remove(&item.key());
    match (item, known) {
        (Item::Read(last), _) => sink.deleted(&Arc::new(last), false, now),
        (Item::Unreadable { .. }, Some(known)) => sink.deleted(&known, true, now),
        (Item::Unreadable { .. }, None) => Ok(()),
    }
}

/// These are all objects that there are: what else is known is gone, before anything is added or changed.
/// Follows `client-go/tools/cache/the_real_fifo.go#reconcileReplacement @v1.36.3`.
pub(super) fn replace<S: Sink>(sink: &S, items: BTreeMap<String, Item<S::Object>>, now: Now) -> Result<(), CacheError> {
    for key in sink.store().keys() {
        if !items.contains_key(&key)
            && let Some(gone) = sink.store().remove(&key)
        {
            sink.deleted(&gone, true, now)?;
        }
    }
    items.into_values().try_for_each(|item| apply(sink, item, now))?;
    Ok(())
}

/// Adds an item to those of a list, by its key.
pub(super) fn collect<K: kube::Resource>(items: &mut BTreeMap<String, Item<K>>, item: Item<K>) {
    items.insert(item.key(), item);
}

#[cfg(test)]
pub(super) mod tests;
