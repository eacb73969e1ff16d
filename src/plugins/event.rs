//! Helpers for queueing hints: typed access to the objects of an event, and the node events to register while queueing hints
//! are off.

use std::sync::Arc;

use crate::config::Gate;
use crate::framework::{Handle, PluginError, QueueingHint};
use crate::k8s::{Node, Pod};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource};

/// Returns the pod of an update event, as it is after the update.
pub(super) fn updated_pod(objects: &EventObjects) -> Result<&Arc<Pod>, PluginError> {
    objects.pods().1.ok_or_else(|| unexpected("a pod after its update"))
}

/// Returns the pod of a delete event, as it was before the deletion.
pub(super) fn deleted_pod(objects: &EventObjects) -> Result<&Arc<Pod>, PluginError> {
    objects.pods().0.ok_or_else(|| unexpected("a deleted pod"))
}

/// Returns the old and the new node of an add or update event. An add event has no old node.
pub(super) fn changed_node(objects: &EventObjects) -> Result<(Option<&Arc<Node>>, &Arc<Node>), PluginError> {
    let (old, new) = objects.nodes();
    Ok((old, new.ok_or_else(|| unexpected("a node"))?))
}

/// Returns the error of a hint that got an object of the wrong type. A hint that fails counts as `Queue`, so the pod is not lost.
pub(super) fn unexpected(what: &str) -> PluginError {
    PluginError::new(format!("expected {what}, but got another object"))
}

/// Returns `Queue` if the event helps the pod, and `Skip` otherwise.
pub(super) fn hint(helps: bool) -> QueueingHint {
    if helps { QueueingHint::Queue } else { QueueingHint::Skip }
}

/// Whether queueing hints are on. If they are off, the event of a node moves only the pods that pass
/// [`node_check`](super::admission::node_check).
pub(super) fn hints_enabled(handle: &Handle) -> bool {
    handle.gates().enabled(Gate::SchedulerQueueingHints)
}

/// Returns the node events that a plugin registers for. Without hints, the event of an added node does not move a pod that
/// fails the basic checks on that node. The pod may pass them after an update of the node's labels or taints. So a plugin that
/// registers for added nodes must also register for these updates.
/// Follows `pkg/scheduler/framework/plugins/nodename/node_name.go#EventsToRegister @v1.36.3` and the same code in other
/// plugins.
pub(super) fn node_event(hints: bool, actions: ActionType) -> ClusterEvent {
    let unannounced = ActionType::UPDATE_NODE_TAINT | ActionType::UPDATE_NODE_LABEL;
    ClusterEvent::new(EventResource::Node, if hints { actions } else { actions | unannounced })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeatureGates;
    use crate::model::Object;
    use crate::testing::{handle, node, pod};

    #[test]
    fn objects_of_another_kind_are_errors() {
        let of_a_node = EventObjects { old: None, new: Some(Object::Node(node("n").build())) };
        let of_a_pod = EventObjects { old: Some(Object::Pod(pod("p").build())), new: None };
        let check = |error: PluginError, expected: &str| {
            assert_eq!(error.to_string(), format!("expected {expected}, but got another object"));
        };
        check(updated_pod(&of_a_node).expect_err("a node"), "a pod after its update");
        check(updated_pod(&of_a_pod).expect_err("no pod any more"), "a pod after its update");
        check(changed_node(&of_a_pod).expect_err("a pod"), "a node");
        check(deleted_pod(&of_a_node).expect_err("a node"), "a deleted pod");
        assert_eq!(deleted_pod(&of_a_pod).expect("a pod").name(), "p");
        assert_eq!(changed_node(&of_a_node).expect("a node").1.name(), "n");
    }

    #[test]
    fn hints_map_booleans_and_need_the_gate() {
        assert_eq!((hint(true), hint(false)), (QueueingHint::Queue, QueueingHint::Skip));
        let enabled = |on| hints_enabled(&handle(FeatureGates::at(33).with(Gate::SchedulerQueueingHints, on)));
        assert!(enabled(true) && !enabled(false));
    }

    #[test]
    fn without_hints_more_node_events_are_registered() {
        let label = |hints| node_event(hints, ActionType::ADD).action;
        assert_eq!(label(true), ActionType::ADD);
        assert_eq!(label(false), ActionType::ADD | ActionType::UPDATE_NODE_TAINT | ActionType::UPDATE_NODE_LABEL);
    }
}
