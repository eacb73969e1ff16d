//! Read access to a store.

use std::fmt;
use std::sync::Arc;

use super::{Index, IndexBy, Observer, Sealed, Store};

/// Read access to the objects of one kind. Cheap to clone; clones and everybody else who asked for the kind read the same
/// store. A look-up takes the store's lock for a moment.
pub struct Lister<K>(Arc<Store<K>>);

impl<K> Lister<K> {
    /// A lister of this store.
    pub fn new(store: Arc<Store<K>>) -> Self {
        Self(store)
    }

    /// The object with this key: `namespace/name`, or the name alone for kinds without namespace.
    pub fn get(&self, key: &str) -> Option<Arc<K>> {
        self.0.read(|objects| objects.get(key).cloned())
    }

    /// The object with this name in this namespace.
    pub fn get_in(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.get(&format!("{namespace}/{name}"))
    }

    /// Returns all objects, sorted by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.0.read(|objects| objects.values().cloned().collect())
    }

    /// All objects of a namespace, sorted by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        let prefix = format!("{namespace}/");
        self.0.read(|objects| {
            let from = objects.range(prefix.clone()..);
            from.take_while(|(key, _)| key.starts_with(&prefix)).map(|(_, object)| object.clone()).collect()
        })
    }

    /// Returns all keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.0.keys()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.0.read(std::collections::BTreeMap::len)
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Send + Sync + 'static> Lister<K> {
    /// Returns the index of the objects by this rule. In a factory only: fails once watching has begun.
    pub fn index<I: IndexBy<K>>(&self) -> Result<Index<K, I>, Sealed> {
        self.0.index()
    }

    /// Tells the observer of every object that there is, and of every change from now on. In a factory only: fails once
    /// watching has begun.
    pub fn observe(&self, observer: Arc<dyn Observer<K>>) -> Result<(), Sealed> {
        self.0.observe(observer)
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lister({:?})", self.0)
    }
}
