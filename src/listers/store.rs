//! A store of one kind, by `namespace/name`.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::k8s::object_key;

/// An object with a key: `namespace/name`, or the name alone for kinds without namespace.
pub trait Keyed {
    /// The key.
    fn key(&self) -> String;
}

impl<K: kube::Resource> Keyed for K {
    fn key(&self) -> String {
        object_key(self.meta())
    }
}

/// The objects of one kind, sorted by key. The lock guards the map; objects are shared, so it is held for a look-up or for
/// copying references, and never while a caller works with them.
#[derive(Debug)]
pub struct Store<K>(RwLock<BTreeMap<String, Arc<K>>>);

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }
}

impl<K> Store<K> {
    /// The object with this key.
    pub fn get(&self, key: &str) -> Option<Arc<K>> {
        self.read().get(key).cloned()
    }

    /// The object with this name in this namespace.
    pub fn get_in(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.get(&format!("{namespace}/{name}"))
    }

    /// All objects, sorted by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().values().cloned().collect()
    }

    /// All objects of a namespace, sorted by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<K>> {
        let prefix = format!("{namespace}/");
        self.read()
            .range(prefix.clone()..)
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Adds or replaces an object, and returns the one that was there.
    pub fn apply(&self, object: Arc<K>) -> Option<Arc<K>>
    where
        K: Keyed,
    {
        self.write().insert(object.key(), object)
    }

    /// Removes the object with this key, and returns it.
    pub fn remove(&self, key: &str) -> Option<Arc<K>> {
        self.write().remove(key)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<K>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Arc<K>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::Pod;

    fn pod(namespace: &str, name: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.namespace = Some(namespace.into());
        pod.metadata.name = Some(name.into());
        Arc::new(pod)
    }

    #[test]
    fn namespaces_do_not_run_into_each_other() {
        let store = Store::default();
        for (namespace, name) in [("a", "x"), ("a-b", "y"), ("ab", "z"), ("a", "w")] {
            store.apply(pod(namespace, name));
        }
        let names: Vec<String> = store.list_in("a").iter().map(|pod| pod.name().to_owned()).collect();
        assert_eq!(names, ["w", "x"]);
    }

    #[test]
    fn apply_and_remove_return_what_was_there() {
        let store = Store::default();
        assert!(store.apply(pod("a", "x")).is_none());
        assert!(store.apply(pod("a", "x")).is_some());
        assert!(store.remove("a/x").is_some());
        assert!(store.remove("a/x").is_none() && store.is_empty());
    }
}
