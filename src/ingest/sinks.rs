//! Where the changes of each kind go.

use std::any::Any;
use std::sync::Arc;

use super::deliver::Sink;
use super::handlers::Handlers;
use crate::cache::CacheError;
use crate::clock::Now;
use crate::k8s::{Node, Pod};
use crate::listers::{Listers, Store};
use crate::model::{ActionType, EventObjects, EventResource, Object};

/// Pods go into cache and queue.
pub(super) struct Pods {
    pub(super) handlers: Arc<Handlers>,
    pub(super) listers: Arc<Listers>,
}

/// Nodes go into the cache.
pub(super) struct Nodes {
    pub(super) handlers: Arc<Handlers>,
    pub(super) listers: Arc<Listers>,
}

/// Every other kind is stored, and told to plugins that want to hear of it.
pub(super) struct Others<K> {
    pub(super) handlers: Arc<Handlers>,
    pub(super) store: StoreOf<K>,
    /// What the kind is called in events, and which actions plugins registered; none if it is only looked up.
    pub(super) registered: Option<(EventResource, ActionType)>,
}

/// The store of a kind.
pub(super) enum StoreOf<K> {
    /// One of the listers.
    Lister(Arc<Listers>, fn(&Listers) -> &Store<K>),
    /// One that nobody else reads, for kinds that only plugins' events know.
    Own(Store<K>),
}

impl Sink for Pods {
    type Object = Pod;

    fn store(&self) -> &Store<Pod> {
        &self.listers.pods
    }

    fn added(&self, object: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        self.handlers.pod_applied(None, object, now)
    }

    fn updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        self.handlers.pod_applied(Some(old), new, now)
    }

    fn deleted(&self, object: &Arc<Pod>, missed: bool, now: Now) -> Result<(), CacheError> {
        self.handlers.pod_deleted(object, missed, now)
    }
}

impl Sink for Nodes {
    type Object = Node;

    fn store(&self) -> &Store<Node> {
        &self.listers.nodes
    }

    fn added(&self, object: &Arc<Node>, now: Now) -> Result<(), CacheError> {
        self.handlers.node_applied(None, object, now);
        Ok(())
    }

    fn updated(&self, old: &Arc<Node>, new: &Arc<Node>, now: Now) -> Result<(), CacheError> {
        self.handlers.node_applied(Some(old), new, now);
        Ok(())
    }

    fn deleted(&self, object: &Arc<Node>, _: bool, now: Now) -> Result<(), CacheError> {
        self.handlers.node_deleted(object, now)
    }
}

impl<K: Any + Send + Sync> Others<K> {
    fn changed(&self, old: Option<&Arc<K>>, new: Option<&Arc<K>>, now: Now) {
        let Some((resource, actions)) = &self.registered else { return };
        let object = |object: &Arc<K>| Object::Other(object.clone());
        let objects = EventObjects { old: old.map(object), new: new.map(object) };
        self.handlers.other_changed(resource, *actions, &objects, now);
    }
}

impl<K: kube::Resource + Any + Send + Sync> Sink for Others<K> {
    type Object = K;

    fn store(&self) -> &Store<K> {
        match &self.store {
            StoreOf::Lister(listers, select) => select(listers),
            StoreOf::Own(store) => store,
        }
    }

    fn added(&self, object: &Arc<K>, now: Now) -> Result<(), CacheError> {
        self.changed(None, Some(object), now);
        Ok(())
    }

    fn updated(&self, old: &Arc<K>, new: &Arc<K>, now: Now) -> Result<(), CacheError> {
        self.changed(Some(old), Some(new), now);
        Ok(())
    }

    fn deleted(&self, object: &Arc<K>, _: bool, now: Now) -> Result<(), CacheError> {
        self.changed(Some(object), None, now);
        Ok(())
    }
}
