//! Registration of events: which events may make a rejected pod schedulable, and the hints about them.

use std::fmt;
use std::sync::Arc;

use super::{Plugin, PluginError};
use crate::model::{ClusterEvent, EventObjects, PodInfo};

/// A plugin's opinion on whether an event helps a pod that the plugin rejected.
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

/// Decides whether an event may help a pod that the plugin rejected. An error counts as [`QueueingHint::Queue`]. The function
/// runs under the queue's lock, so it must be quick and must not call the queue.
pub type QueueingHintFn =
    Arc<dyn Fn(&PodInfo, &EventObjects) -> Result<QueueingHint, PluginError> + Send + Sync + 'static>;

/// An event that a plugin registers for. Without a hint function, the event always counts as [`QueueingHint::Queue`].
#[derive(Clone)]
pub struct EventRegistration {
    /// The event that the plugin registers for.
    pub event: ClusterEvent,
    /// Hint function for this event, if the plugin has one.
    pub hint: Option<QueueingHintFn>,
}

impl EventRegistration {
    /// Registers an event that always requeues the pods that the plugin rejected.
    pub fn new(event: ClusterEvent) -> Self {
        Self { event, hint: None }
    }

    /// Registers an event with a hint function, which decides for each pod whether the event helps.
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

/// Lists the events that may help a pod that the plugin rejected. The method is called once, after all profiles are built. If a
/// plugin with `PreEnqueue`, `PreFilter`, `Filter`, `Reserve` or `Permit` does not implement this trait, every event requeues
/// the pods that it rejected. If a plugin returns an empty list, no event requeues them.
pub trait EnqueueExtensions: Plugin {
    /// Returns the events that the plugin registers for.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError>;
}
