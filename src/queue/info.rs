//! A queued pod with the state of its scheduling attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Mono;
use crate::framework::QueueSortKey;
use crate::model::PodInfo;

/// A pod that is queued or being scheduled, with the state of its attempts.
/// Follows `pkg/scheduler/framework/types.go#QueuedPodInfo @v1.36.3`.
#[derive(Clone, Debug)]
pub struct QueuedPodInfo {
    /// The latest version of the pod.
    pub pod: Arc<PodInfo>,
    /// When the pod was added, or when its last attempt failed.
    pub timestamp: Mono,
    /// Number of times the pod was popped.
    pub attempts: usize,
    /// Number of attempts that ended with a rejection.
    pub unschedulable_count: u32,
    /// Number of consecutive attempts, up to the last one, that ended with an error.
    pub consecutive_errors_count: u32,
    /// When the pod first entered activeQ. The time before, in which the pod was gated, does not count as scheduling time.
    pub initial_attempt_timestamp: Option<Mono>,
    /// The plugins that rejected the pod in its last attempt or gate it. Their events may make it schedulable.
    pub unschedulable_plugins: BTreeSet<Arc<str>>,
    /// The plugins that returned `Pending` and will signal by events when to retry the pod.
    pub pending_plugins: BTreeSet<Arc<str>>,
    /// Whether the pod last left unschedulablePods because it had been there for too long.
    pub was_flushed_from_unschedulable: bool,
    /// Signature of the pod. Every plugin treats pods with the same signature alike. `None` if the pod cannot be signed, or
    /// without `OpportunisticBatching`.
    pub signature: Option<Arc<str>>,
    /// The plugin that keeps the pod out of activeQ.
    pub(super) gating_plugin: Option<Arc<str>>,
    /// When the pod's backoff ends. Computed when first needed.
    pub(super) backoff_expiration: Option<Mono>,
    /// Arrival number of the pod. It orders pods with the same timestamp.
    pub(super) order: u64,
}

impl QueuedPodInfo {
    /// Creates the info of a pod that was never tried.
    pub fn new(pod: Arc<PodInfo>, timestamp: Mono) -> Self {
        Self {
            pod,
            timestamp,
            attempts: 0,
            unschedulable_count: 0,
            consecutive_errors_count: 0,
            initial_attempt_timestamp: None,
            unschedulable_plugins: BTreeSet::new(),
            pending_plugins: BTreeSet::new(),
            was_flushed_from_unschedulable: false,
            signature: None,
            gating_plugin: None,
            backoff_expiration: None,
            order: 0,
        }
    }

    /// Returns the plugin that keeps the pod out of activeQ, if one does.
    pub fn gating_plugin(&self) -> Option<&Arc<str>> {
        self.gating_plugin.as_ref()
    }

    /// Whether a plugin keeps the pod out of activeQ.
    pub fn is_gated(&self) -> bool {
        self.gating_plugin.is_some()
    }

    /// Clears the rejecting plugins. Call this after an attempt has failed, before the new ones are set.
    /// Follows `pkg/scheduler/framework/types.go#QueuedPodInfo.ClearRejectorPlugins @v1.36.3`.
    pub fn clear_rejector_plugins(&mut self) {
        self.unschedulable_plugins.clear();
        self.pending_plugins.clear();
        self.gating_plugin = None;
    }

    /// Returns the plugins that rejected the pod or are pending, without duplicates.
    pub fn rejector_plugins(&self) -> impl Iterator<Item = &Arc<str>> {
        self.unschedulable_plugins.union(&self.pending_plugins)
    }

    /// Whether no plugin rejected the pod. If the pod failed, an error was the reason.
    pub fn has_no_rejector(&self) -> bool {
        self.unschedulable_plugins.is_empty() && self.pending_plugins.is_empty()
    }

    /// Returns the data that the queue sort plugin compares.
    pub fn sort_key(&self) -> QueueSortKey<'_> {
        QueueSortKey { pod: &self.pod, timestamp: self.timestamp }
    }
}
