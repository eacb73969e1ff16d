//! Handlers of changes of all other kinds, which matter only to plugins.

use std::any::Any;
use std::sync::Arc;

use k8s_openapi::api::storage::v1::StorageClass;

use super::Handlers;
use crate::clock::Now;
use crate::listers::{AnyChange, Change};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, Object};

impl Handlers {
    /// Handles a change of an object of another kind. Changes whose action is not among the `actions` that plugins registered
    /// are ignored.
    /// Follows `pkg/scheduler/eventhandlers.go#addAllEventHandlers @v1.36.3`.
    pub fn other_changed(&self, resource: &EventResource, actions: ActionType, change: &AnyChange, now: Now) {
        let object = |object: &Arc<dyn Any + Send + Sync>| Some(Object::Other(object.clone()));
        let (action, old, new) = match change {
            Change::Added(new) => (ActionType::ADD, None, object(new)),
            Change::Updated { old, new } => (ActionType::UPDATE, object(old), object(new)),
            Change::Deleted { last, .. } => (ActionType::DELETE, object(last), None),
        };
        if !actions.intersects(action) {
            return;
        }
        let objects = EventObjects { old, new };
        let event = ClusterEvent::new(resource.clone(), action);
        let start = self.start();
        if self.hints || !is_class_without_effect(&objects) {
            self.move_all(&event, &objects, now, None);
        }
        self.observe_since(&event, start);
    }
}

/// Whether this is a new storage class without `WaitForFirstConsumer`, which helps no pod if hints are disabled.
fn is_class_without_effect(objects: &EventObjects) -> bool {
    let class = objects.new.as_ref().filter(|_| objects.old.is_none()).and_then(Object::downcast::<StorageClass>);
    class.is_some_and(|class| class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"))
}
