//! The store of one kind, by `namespace/name`.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::index::{Entries, EntriesBy};
use super::{Change, Changes, Index, IndexBy, Kind, Observer};
use crate::k8s::object_key;

/// Error for a lister, index or observer that was requested after watches had started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} was requested after watches had started; request it in the plugin's factory")]
pub struct Sealed(pub(super) String);

/// The objects of one kind, sorted by key: `namespace/name`, or only the name for kinds without namespace.
///
/// The store has two locks. The lock of `objects` guards objects and indexes. It is held to look up objects or to copy
/// references, and never while a caller uses the objects. The lock of `observers` serializes writers, so that observers receive
/// changes in order. Writers take the lock of `observers` first. Readers never take it.
pub struct Store<K> {
    kind: Kind,
    objects: RwLock<Objects<K>>,
    observers: Mutex<Vec<Arc<dyn Observer<K>>>>,
    /// Whether watches have started. Shared by the stores of all kinds.
    sealed: Arc<AtomicBool>,
}

struct Objects<K> {
    by_key: BTreeMap<String, Arc<K>>,
    indexes: Vec<Box<dyn Entries<K>>>,
}

impl<K: 'static> Objects<K> {
    fn insert(&mut self, key: String, object: &Arc<K>) -> Option<Arc<K>> {
        let old = self.by_key.get(&key);
        for index in &mut self.indexes {
            if let Some(old) = old {
                index.remove(&key, old);
            }
            index.insert(&key, object);
        }
        self.by_key.insert(key, object.clone())
    }

    fn remove(&mut self, key: &str) -> Option<Arc<K>> {
        let old = self.by_key.remove(key)?;
        self.indexes.iter_mut().for_each(|index| index.remove(key, &old));
        Some(old)
    }
}

impl<K: kube::Resource<DynamicType = ()>> Default for Store<K> {
    fn default() -> Self {
        Self::new(Kind::of::<K>(), Arc::default())
    }
}

impl<K> Store<K> {
    pub(super) fn new(kind: Kind, sealed: Arc<AtomicBool>) -> Self {
        let objects = RwLock::new(Objects { by_key: BTreeMap::new(), indexes: Vec::new() });
        Self { kind, objects, observers: Mutex::default(), sealed }
    }

    /// Returns the kind of the objects.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns all keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        self.read(|objects| objects.keys().cloned().collect())
    }

    /// Calls `look` with the objects by key, under the read lock.
    pub(super) fn read<T>(&self, look: impl FnOnce(&BTreeMap<String, Arc<K>>) -> T) -> T {
        look(&self.lock().by_key)
    }

    /// Calls `look` with one index, under the read lock.
    pub(super) fn with_index<T>(&self, at: usize, look: impl FnOnce(&dyn Entries<K>) -> T) -> T {
        look(&*self.lock().indexes[at])
    }

    fn lock(&self) -> RwLockReadGuard<'_, Objects<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_to_write(&self) -> RwLockWriteGuard<'_, Objects<K>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn observers(&self) -> MutexGuard<'_, Vec<Arc<dyn Observer<K>>>> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_open(&self, what: &str) -> Result<(), Sealed> {
        if self.sealed.load(Ordering::Acquire) { Err(Sealed(format!("{what} of {}", self.kind))) } else { Ok(()) }
    }
}

impl<K: kube::Resource + 'static> Store<K> {
    /// Adds or replaces an object, calls the observers, and returns the changes.
    pub fn apply(&self, object: Arc<K>) -> Changes<K> {
        let observers = self.observers();
        let old = self.lock_to_write().insert(object_key(object.meta()), &object);
        let changes = Changes::between(old, object);
        changes.iter().for_each(|change| tell(&observers, change));
        changes
    }

    /// Removes a deleted object whose last state is `last`. The observers are called only if the object was in the store.
    pub fn delete(&self, last: Arc<K>) -> Change<K> {
        let observers = self.observers();
        let known = self.lock_to_write().remove(&object_key(last.meta()));
        let change = Change::Deleted { last, missed: false };
        if known.is_some() {
            tell(&observers, &change);
        }
        change
    }

    /// Removes the object with this key, if it exists. Called if its deletion event was missed or could not be decoded.
    pub fn remove(&self, key: &str) -> Option<Change<K>> {
        let observers = self.observers();
        let last = self.lock_to_write().remove(key)?;
        let change = Change::Deleted { last, missed: true };
        tell(&observers, &change);
        Some(change)
    }
}

impl<K: Send + Sync + 'static> Store<K> {
    /// Adds an observer, and calls it with all existing objects. Fails once watches have started.
    pub(super) fn observe(&self, observer: Arc<dyn Observer<K>>) -> Result<(), Sealed> {
        self.check_open("an observer")?;
        let mut observers = self.observers();
        for object in self.read(|objects| objects.values().cloned().collect::<Vec<_>>()) {
            observer.changed(&Change::Added(object));
        }
        observers.push(observer);
        Ok(())
    }

    /// Returns the index by this rule, and creates it on the first request. Fails once watches have started.
    pub(super) fn index<I: IndexBy<K>>(self: &Arc<Self>) -> Result<Index<K, I>, Sealed> {
        self.check_open("an index")?;
        let mut objects = self.lock_to_write();
        let is_this = |entries: &dyn Entries<K>| {
            let entries: &dyn Any = entries;
            entries.is::<EntriesBy<K, I>>()
        };
        let at = objects.indexes.iter().position(|entries| is_this(&**entries)).unwrap_or_else(|| {
            let mut entries = EntriesBy::<K, I>::default();
            objects.by_key.iter().for_each(|(key, object)| entries.insert(key, object));
            objects.indexes.push(Box::new(entries));
            objects.indexes.len() - 1
        });
        Ok(Index::new(self.clone(), at))
    }
}

fn tell<K>(observers: &[Arc<dyn Observer<K>>], change: &Change<K>) {
    observers.iter().for_each(|observer| observer.changed(change));
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({}, {} objects)", self.kind, self.read(BTreeMap::len))
    }
}
