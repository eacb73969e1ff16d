//! Which events a plugin wants to hear of, and what it says of them.

use std::fmt;
use std::sync::Arc;

use super::{Plugin, PluginError};
use crate::model::{ClusterEvent, EventObjects, PodInfo};

/// What a plugin says of an event, for a pod that it rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueingHint {
    /// The event does not help the pod.
    Skip,
    /// The pod may be schedulable now.
    Queue,
}

impl QueueingHint {
    /// The hint's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "QueueSkip",
            Self::Queue => "Queue",
        }
    }
}

/// Says of an event whether it may help a pod that the plugin rejected. An error counts as [`QueueingHint::Queue`]. Runs
/// under the queue's lock: it has to be quick and must not call the queue.
pub type QueueingHintFn =
    Arc<dyn Fn(&PodInfo, &EventObjects) -> Result<QueueingHint, PluginError> + Send + Sync + 'static>;

/// An event that a plugin wants to hear of; without a hint function it always means [`QueueingHint::Queue`].
#[derive(Clone)]
pub struct EventRegistration {
    /// The event.
    pub event: ClusterEvent,
    /// What the plugin says of it.
    pub hint: Option<QueueingHintFn>,
}

impl EventRegistration {
    /// An event that always wakes the pods that the plugin rejected.
    pub fn new(event: ClusterEvent) -> Self {
        Self { event, hint: None }
    }

    /// An event of which the plugin says itself whether it helps.
    pub fn with_hint(
        event: ClusterEvent,
        hint: impl Fn(&PodInfo, &EventObjects) -> Result<QueueingHint, PluginError> + Send + Sync + 'static,
    ) -> Self {
        Self { event, hint: Some(Arc::new(hint)) }
    }
}

impl fmt::Debug for EventRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventRegistration({}, hint: {})", self.event.label(), self.hint.is_some())
    }
}

/// Says which events may help a pod that the plugin rejected. Asked once, after all profiles are built. A plugin with
/// `PreEnqueue`, `PreFilter`, `Filter`, `Reserve` or `Permit` that does not implement it is told of everything; one that
/// returns nothing never wakes a pod.
pub trait EnqueueExtensions: Plugin {
    /// The events.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError>;
}
