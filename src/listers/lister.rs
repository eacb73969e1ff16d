//! Read access to a store.

use std::fmt;
use std::sync::Arc;

use super::{Index, IndexBy, Observer, Sealed, Store};

/// Read access to the objects of one kind. Cheap to clone. All listers of a kind read the same store. A lookup holds the
/// store's lock for a short time.
pub struct Lister<K>(Arc<Store<K>>);

impl<K> Lister<K> {
    /// Creates a lister of this store.
    pub fn new(store: Arc<Store<K>>) -> Self {
        Self(store)
    }

    /// Returns the object with this key: `namespace/name`, or only the name for kinds without namespace.
    pub fn get(&self, key: &str) -> Option<Arc<K>> {
        self.0.read(|objects| objects.get(key).cloned())
    }

    /// Returns the object with this name in this namespace.
    pub fn get_in(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.get(&format!("{namespace}/{name}"))
    }

    /// Returns all objects, sorted by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.0.read(|objects| objects.values().cloned().collect())
    }

    /// Returns all objects of a namespace, sorted by name.
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

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.0.read(std::collections::BTreeMap::len)
    }

    /// Whether the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Send + Sync + 'static> Lister<K> {
    /// Returns the index of the objects by this rule. May be called only in a plugin factory: it fails once watches have
    /// started.
    pub fn index<I: IndexBy<K>>(&self) -> Result<Index<K, I>, Sealed> {
        self.0.index()
    }

    /// Adds an observer of the store. It is called with every object that exists, and with every later change. May be called
    /// only in a plugin factory: it fails once watches have started.
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
