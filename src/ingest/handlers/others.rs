//! Every kind but pods and nodes: plugins may want to hear of them, and nobody else does.

use k8s_openapi::api::storage::v1::StorageClass;

use super::Handlers;
use crate::clock::Now;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, Object};

impl Handlers {
    /// An object of another kind came, changed or went. Nothing happens unless a plugin registered one of `actions` that
    /// this is.
    /// Follows `pkg/scheduler/eventhandlers.go#addAllEventHandlers @v1.36.3`.
    pub fn other_changed(&self, resource: &EventResource, actions: ActionType, objects: &EventObjects, now: Now) {
        let action = match (&objects.old, &objects.new) {
            (None, _) => ActionType::ADD,
            (Some(_), Some(_)) => ActionType::UPDATE,
            (Some(_), None) => ActionType::DELETE,
        };
        if !actions.intersects(action) {
            return;
        }
        let event = ClusterEvent::new(resource.clone(), action);
        let start = self.start();
        if self.hints || !is_class_without_effect(objects) {
            self.move_all(&event, objects, now, None);
        }
        self.observe_since(&event, start);
    }
}

/// Whether this is a new storage class that does not wait for a pod: with hints off, only one that does can help.
fn is_class_without_effect(objects: &EventObjects) -> bool {
    let class = objects.new.as_ref().filter(|_| objects.old.is_none()).and_then(Object::downcast::<StorageClass>);
    class.is_some_and(|class| class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"))
}
