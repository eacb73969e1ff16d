//! Calls the queueing hints of a plugin.

use super::Harness;
use crate::framework::QueueingHint;
use crate::model::{ClusterEvent, EventObjects, Object};
use crate::testing::{NodeFixture, PodFixture};

impl Harness {
    /// Calls the hint of the first registered event that matches. Returns `Skip` if no event matches, and `Queue` if the
    /// matching event has no hint.
    pub fn hint_of(
        &self,
        pod: &PodFixture,
        event: &ClusterEvent,
        old: Option<Object>,
        new: Option<Object>,
    ) -> QueueingHint {
        match self.registered.iter().position(|registered| registered.event.matches(event)) {
            None => QueueingHint::Skip,
            Some(at) if self.registered[at].hint.is_none() => QueueingHint::Queue,
            Some(at) => self.hint(pod, at, old, new),
        }
    }

    /// Calls the hint of the event at position `at` of [`registered`](Self::registered).
    pub fn hint(&self, pod: &PodFixture, at: usize, old: Option<Object>, new: Option<Object>) -> QueueingHint {
        let hint = self.registered[at].hint.as_ref().expect("a hint");
        hint(&pod.clone().info(), &EventObjects { old, new }).expect("the hint does not fail")
    }

    /// Calls a hint for an updated pod.
    pub fn pod_update(&self, pod: &PodFixture, at: usize, old: PodFixture, new: PodFixture) -> QueueingHint {
        self.hint(pod, at, Some(Object::Pod(old.build())), Some(Object::Pod(new.build())))
    }

    /// Calls a hint for a deleted pod.
    pub fn pod_delete(&self, pod: &PodFixture, at: usize, old: PodFixture) -> QueueingHint {
        self.hint(pod, at, Some(Object::Pod(old.build())), None)
    }

    /// Calls a hint for an added node.
    pub fn node_add(&self, pod: &PodFixture, at: usize, new: NodeFixture) -> QueueingHint {
        self.hint(pod, at, None, Some(Object::Node(new.build())))
    }

    /// Calls a hint for an updated node.
    pub fn node_update(&self, pod: &PodFixture, at: usize, old: NodeFixture, new: NodeFixture) -> QueueingHint {
        self.hint(pod, at, Some(Object::Node(old.build())), Some(Object::Node(new.build())))
    }
}
