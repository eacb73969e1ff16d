//! Stores of the kinds with the handlers of their changes.

use std::sync::Arc;

use super::deliver::Sink;
use super::handlers::Handlers;
use crate::cache::CacheError;
use crate::clock::Now;
use crate::k8s::{Node, Pod};
use crate::listers::{AnyChange, AnyObject, AnyStore, Change, Store};
use crate::model::{ActionType, EventResource};

/// Handler of one change of a pod or a node.
type Handle<K> = fn(&Handlers, &Change<K>, Now) -> Result<(), CacheError>;

/// The store of pods or nodes. Every change goes to cache and queue.
pub(super) struct Scheduled<K> {
    handlers: Arc<Handlers>,
    store: Arc<Store<K>>,
    handle: Handle<K>,
}

/// The store of any other kind. Changes go to the plugins that registered events of the kind.
pub(super) struct Other {
    pub(super) handlers: Arc<Handlers>,
    pub(super) store: Arc<dyn AnyStore>,
    /// The kind's name in events with the actions that plugins registered. `None` if the kind is only used by listers.
    pub(super) registered: Option<(EventResource, ActionType)>,
}

impl Scheduled<Pod> {
    pub(super) fn pods(handlers: Arc<Handlers>, store: Arc<Store<Pod>>) -> Self {
        Self { handlers, store, handle: Handlers::pod_changed }
    }
}

impl Scheduled<Node> {
    pub(super) fn nodes(handlers: Arc<Handlers>, store: Arc<Store<Node>>) -> Self {
        Self { handlers, store, handle: Handlers::node_changed }
    }
}

impl<K: kube::Resource + Send + Sync + 'static> Sink for Scheduled<K> {
    type Object = K;

    fn keys(&self) -> Vec<String> {
        self.store.keys()
    }

    fn apply(&self, object: K, now: Now) -> Result<(), CacheError> {
        let changes = self.store.apply(Arc::new(object));
        changes.iter().try_for_each(|change| (self.handle)(&self.handlers, change, now))
    }

    fn delete(&self, last: K, now: Now) -> Result<(), CacheError> {
        (self.handle)(&self.handlers, &self.store.delete(Arc::new(last)), now)
    }

    fn remove(&self, key: &str, now: Now) -> Result<(), CacheError> {
        self.store.remove(key).map_or(Ok(()), |change| (self.handle)(&self.handlers, &change, now))
    }
}

impl Other {
    fn handle(&self, change: &AnyChange, now: Now) {
        if let Some((resource, actions)) = &self.registered {
            self.handlers.other_changed(resource, *actions, change, now);
        }
    }
}

impl Sink for Other {
    type Object = AnyObject;

    fn keys(&self) -> Vec<String> {
        self.store.keys()
    }

    fn apply(&self, object: AnyObject, now: Now) -> Result<(), CacheError> {
        self.store.apply(object).iter().for_each(|change| self.handle(change, now));
        Ok(())
    }

    fn delete(&self, last: AnyObject, now: Now) -> Result<(), CacheError> {
        self.handle(&self.store.delete(last), now);
        Ok(())
    }

    fn remove(&self, key: &str, now: Now) -> Result<(), CacheError> {
        if let Some(change) = self.store.remove(key) {
            self.handle(&change, now);
        }
        Ok(())
    }
}
