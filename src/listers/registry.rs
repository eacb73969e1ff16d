//! The kinds that were asked for, with their stores.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use super::{AnyStore, Kind, Lister, Sealed, Store};

/// The kinds that plugins and the scheduler itself asked for, shared by all profiles. The lock guards the map, and is held only
/// for a lookup or an insertion.
#[derive(Default)]
pub struct Listers {
    stores: Mutex<Stores>,
    /// Whether watches have started. Shared with the stores.
    sealed: Arc<AtomicBool>,
}

/// Stores by kind and Rust type. If two callers ask for a kind with different types, it is watched once for each type.
type Stores = BTreeMap<(Kind, TypeId), Arc<dyn AnyStore>>;

impl Listers {
    /// Returns the lister of a kind, and registers the kind to be watched. Fails once watches have started, unless the kind is
    /// watched already.
    pub fn ask<K>(&self) -> Result<Lister<K>, Sealed>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        self.ask_as(Kind::of::<K>())
    }

    /// Returns the lister of a kind that has no Rust type, like [`Self::ask`].
    pub fn ask_dynamic(&self, kind: Kind) -> Result<Lister<DynamicObject>, Sealed> {
        self.ask_as(kind)
    }

    fn ask_as<K>(&self, kind: Kind) -> Result<Lister<K>, Sealed>
    where
        K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let mut stores = self.lock();
        let key = (kind, TypeId::of::<K>());
        if let Some(store) = stores.get(&key) {
            return Ok(Lister::new(typed(store)));
        }
        if self.sealed.load(Ordering::Acquire) {
            return Err(Sealed(format!("a lister of {}", key.0)));
        }
        let store = Arc::new(Store::<K>::new(key.0.clone(), self.sealed.clone()));
        stores.insert(key, store.clone());
        Ok(Lister::new(store))
    }

    /// Returns the store of a kind for writing. `None` if the kind was not asked for.
    pub fn store<K>(&self) -> Option<Arc<Store<K>>>
    where
        K: kube::Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.lock().get(&(Kind::of::<K>(), TypeId::of::<K>())).map(typed)
    }

    /// Puts an object into the store of its kind, as a watch does. Registers the kind if necessary. For tests and benchmarks
    /// without watches.
    ///
    /// # Panics
    ///
    /// Panics if [`Self::seal`] was called before the kind was asked for.
    pub fn put<K>(&self, object: Arc<K>)
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let store = self.store::<K>().unwrap_or_else(|| {
            self.ask::<K>().expect("the kind was asked for before watching began");
            self.store::<K>().expect("it was asked for just now")
        });
        store.apply(object);
    }

    /// Ends the requests for listers. After this, the set of watched kinds does not change.
    pub fn seal(&self) {
        let _stores = self.lock();
        self.sealed.store(true, Ordering::Release);
    }

    /// Returns the stores of all kinds that were asked for, sorted by kind.
    pub fn stores(&self) -> Vec<Arc<dyn AnyStore>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn typed<K: Send + Sync + 'static>(store: &Arc<dyn AnyStore>) -> Arc<Store<K>> {
    store.clone().as_any().downcast().unwrap_or_else(|_| panic!("stores are found by the type of their objects"))
}

impl fmt::Debug for Listers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys().map(|(kind, _)| kind)).finish()
    }
}
