//! Handlers of changes of nodes.

use std::sync::Arc;

use super::{Handlers, only_fatal};
use crate::cache::CacheError;
use crate::clock::Now;
use crate::k8s::Node;
use crate::listers::Change;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, NodeInfo, Object, PodInfo};
use crate::queue::node_events;

const NODE_ADD: ClusterEvent = ClusterEvent::new(EventResource::Node, ActionType::ADD);
const NODE_DELETE: ClusterEvent = ClusterEvent::new(EventResource::Node, ActionType::DELETE);

impl Handlers {
    /// Handles a change of a node.
    pub fn node_changed(&self, change: &Change<Node>, now: Now) -> Result<(), CacheError> {
        match change {
            Change::Added(new) => self.node_added(new, now),
            Change::Updated { old, new } => self.node_updated(old, new, now),
            Change::Deleted { last, .. } => return self.node_deleted(last, now),
        }
        Ok(())
    }

    /// Adds a node to the cache. Follows `pkg/scheduler/eventhandlers.go#Scheduler.addNodeToCache @v1.36.3`.
    fn node_added(&self, node: &Arc<Node>, now: Now) {
        let start = self.start();
        let info = self.parts.cache.set_node(node.clone());
        self.node_moves(&NODE_ADD, &update(None, Some(node)), &info, now);
        self.observe_since(&NODE_ADD, start);
    }

    /// Updates a node in the cache. Follows `pkg/scheduler/eventhandlers.go#Scheduler.updateNodeInCache @v1.36.3`.
    fn node_updated(&self, old: &Arc<Node>, new: &Arc<Node>, now: Now) {
        let start = self.start();
        let info = self.parts.cache.set_node(new.clone());
        let objects = update(Some(old), Some(new));
        let events = node_events(old, new, &self.parts.gates);
        let updating = self.elapsed(start);
        for event in events {
            let start = self.start();
            self.node_moves(&event, &objects, &info, now);
            self.observe(&event, updating + self.elapsed(start));
        }
    }

    /// Removes a deleted node from the cache before pending pods are notified. Otherwise a pod that is retried at once could
    /// find the node, and then wait for an event that it has already received. Follows
    /// `pkg/scheduler/eventhandlers.go#Scheduler.deleteNodeFromCache @v1.36.3` except for the order: upstream moves pods while
    /// the node is still in its cache.
    fn node_deleted(&self, node: &Arc<Node>, now: Now) -> Result<(), CacheError> {
        let start = self.start();
        only_fatal(self.parts.cache.remove_node(node), "RemoveNode", node.name())?;
        self.move_all(&NODE_DELETE, &update(Some(node), None), now, None);
        self.observe_since(&NODE_DELETE, start);
        Ok(())
    }

    fn node_moves(&self, event: &ClusterEvent, objects: &EventObjects, info: &NodeInfo, now: Now) {
        match &self.parts.node_check {
            Some(check) if !self.hints => {
                self.move_all(event, objects, now, Some(&|pod: &PodInfo| check(pod, info)));
            }
            _ => self.move_all(event, objects, now, None),
        }
    }
}

fn update(old: Option<&Arc<Node>>, new: Option<&Arc<Node>>) -> EventObjects {
    EventObjects { old: old.cloned().map(Object::Node), new: new.cloned().map(Object::Node) }
}
