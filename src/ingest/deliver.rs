//! Delivery of one kind's objects: puts them into the kind's store, and passes each change to the handler once.
//!
//! This code is synchronous and uses no network. The reflector calls it.

use std::collections::BTreeMap;

use super::decode::Item;
use crate::cache::CacheError;
use crate::clock::Now;

/// The store of one kind, with the handler of its changes. A handler fails only if the process must exit.
pub(super) trait Sink: Send + Sync + 'static {
    /// Type of the kind's objects.
    type Object: kube::Resource + Send + 'static;
    /// Returns the keys of the objects in the store.
    fn keys(&self) -> Vec<String>;
    /// Stores an object that exists, and handles the resulting changes.
    fn apply(&self, object: Self::Object, now: Now) -> Result<(), CacheError>;
    /// Removes a deleted object with this last state, and handles the change.
    fn delete(&self, last: Self::Object, now: Now) -> Result<(), CacheError>;
    /// Removes the object with this key, whose deletion event was missed or cannot be decoded, and handles the change.
    fn remove(&self, key: &str, now: Now) -> Result<(), CacheError>;
}

/// Delivers an object that exists. If it could not be decoded, the store keeps the old version.
pub(super) fn apply<S: Sink>(sink: &S, item: Item<S::Object>, now: Now) -> Result<(), CacheError> {
    match item {
        Item::Read(object) => sink.apply(object, now),
        Item::Unreadable { .. } => Ok(()),
    }
}

/// Delivers the deletion of an object.
pub(super) fn delete<S: Sink>(sink: &S, item: Item<S::Object>, now: Now) -> Result<(), CacheError> {
    match item {
        Item::Read(last) => sink.delete(last, now),
        Item::Unreadable { key, .. } => sink.remove(&key, now),
    }
}

/// Delivers all objects that exist. Stored objects that are not in `items` are removed before any object is added or changed.
/// Follows `client-go/tools/cache/the_real_fifo.go#reconcileReplacement @v1.36.3`.
pub(super) fn replace<S: Sink>(sink: &S, items: BTreeMap<String, Item<S::Object>>, now: Now) -> Result<(), CacheError> {
    let mut gone = sink.keys().into_iter().filter(|key| !items.contains_key(key));
    gone.try_for_each(|key| sink.remove(&key, now))?;
    items.into_values().try_for_each(|item| apply(sink, item, now))
}

/// Adds an item to the items of a list, by its key.
pub(super) fn collect<K: kube::Resource>(items: &mut BTreeMap<String, Item<K>>, item: Item<K>) {
    items.insert(item.key(), item);
}

#[cfg(test)]
pub(super) mod tests;
