//! Indexes of a store, which find objects by their content.

use std::any::Any;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Store;

/// A rule by which objects are indexed. The type that implements it identifies the index: all callers that ask for the same
/// type share one index.
pub trait IndexBy<K>: Send + Sync + 'static {
    /// Type of the index's keys.
    type Key: Ord + Send + Sync + 'static;

    /// Returns the keys under which an object is found. They must depend only on the object.
    fn keys(object: &K) -> Vec<Self::Key>;
}

/// A read-only index of a store. Cheap to clone. It is updated together with the store, under the same lock.
pub struct Index<K, I> {
    store: Arc<Store<K>>,
    /// Position of the index in the store.
    at: usize,
    rule: PhantomData<fn() -> I>,
}

/// The entries of an index, inside the store.
pub(super) trait Entries<K>: Any + Send + Sync {
    fn insert(&mut self, name: &str, object: &Arc<K>);
    fn remove(&mut self, name: &str, object: &K);
}

/// The objects for each key of an index, by `namespace/name`.
pub(super) struct EntriesBy<K, I: IndexBy<K>>(BTreeMap<I::Key, BTreeMap<String, Arc<K>>>);

impl<K, I: IndexBy<K>> Default for EntriesBy<K, I> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Send + Sync + 'static, I: IndexBy<K>> Entries<K> for EntriesBy<K, I> {
    fn insert(&mut self, name: &str, object: &Arc<K>) {
        for key in I::keys(object) {
            self.0.entry(key).or_default().insert(name.to_owned(), object.clone());
        }
    }

    fn remove(&mut self, name: &str, object: &K) {
        for key in I::keys(object) {
            let Some(objects) = self.0.get_mut(&key) else { continue };
            objects.remove(name);
            if objects.is_empty() {
                self.0.remove(&key);
            }
        }
    }
}

impl<K: Send + Sync + 'static, I: IndexBy<K>> Index<K, I> {
    pub(super) fn new(store: Arc<Store<K>>, at: usize) -> Self {
        Self { store, at, rule: PhantomData }
    }

    /// Returns the objects with this key, sorted by `namespace/name`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Vec<Arc<K>>
    where
        I::Key: Borrow<Q>,
    {
        self.store.with_index(self.at, |entries| {
            let entries: &dyn Any = entries;
            let EntriesBy::<K, I>(objects) = entries.downcast_ref().expect("the position is that of this index");
            objects.get(key).map(|objects| objects.values().cloned().collect()).unwrap_or_default()
        })
    }
}

impl<K, I> Clone for Index<K, I> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), at: self.at, rule: PhantomData }
    }
}

impl<K, I> fmt::Debug for Index<K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} of {:?})", self.at, self.store)
    }
}
