//! A pod in the queue, with what the queue remembers of its attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clock::Mono;
use crate::framework::QueueSortKey;
use crate::model::PodInfo;

/// A pod that is queued, or that was popped and is being scheduled, with what the queue remembers of its attempts.
/// Follows `pkg/scheduler/framework/types.go#QueuedPodInfo @v1.36.3`.
#[derive(Clone, Debug)]
pub struct QueuedPodInfo {
    /// The pod, as of its last update.
    pub pod: Arc<PodInfo>,
    /// When it came into the queue: first, or after its last attempt.
    pub timestamp: Mono,
    /// How often it was popped.
    pub attempts: usize,
    /// How many of its attempts ended with a rejection.
    pub unschedulable_count: u32,
    /// How many of its last attempts in a row ended with an error.
    pub consecutive_errors_count: u32,
    /// When it first entered activeQ. The time before that, while it was gated, does not count as scheduling.
    pub initial_attempt_timestamp: Option<Mono>,
    /// The plugins that rejected it in its last attempt or gate it: their events may help it.
    pub unschedulable_plugins: BTreeSet<Arc<str>>,
    /// Those that will say themselves when to try again.
    pub pending_plugins: BTreeSet<Arc<str>>,
    /// Whether what moved it last out of unschedulablePods was that it had been there for too long.
    pub was_flushed_from_unschedulable: bool,
    /// Pods with the same signature get the same answers from every plugin. None if the pod cannot be signed, or without
    /// `OpportunisticBatching`.
    pub signature: Option<Arc<str>>,
    /// The plugin that keeps it out of activeQ.
    pub(super) gating_plugin: Option<Arc<str>>,
    /// When its backoff ends; worked out when first needed.
    pub(super) backoff_expiration: Option<Mono>,
    /// Tells apart pods with the same timestamp: the smaller came first.
    pub(super) order: u64,
}

impl QueuedPodInfo {
    /// A pod that was never tried.
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

    /// The plugin that keeps the pod out of activeQ, if one does.
    pub fn gating_plugin(&self) -> Option<&Arc<str>> {
        self.gating_plugin.as_ref()
    }

    /// Whether a plugin keeps the pod out of activeQ.
    pub fn is_gated(&self) -> bool {
        self.gating_plugin.is_some()
    }

    /// Forgets who rejected the pod: to be called once an attempt has failed, before the new reasons are set.
    /// Follows `pkg/scheduler/framework/types.go#QueuedPodInfo.ClearRejectorPlugins @v1.36.3`.
    pub fn clear_rejector_plugins(&mut self) {
        self.unschedulable_plugins.clear();
        self.pending_plugins.clear();
        self.gating_plugin = None;
    }

    /// The plugins that rejected the pod, pending or not, each once.
    pub fn rejector_plugins(&self) -> impl Iterator<Item = &Arc<str>> {
        self.unschedulable_plugins.union(&self.pending_plugins)
    }

    /// Whether no plugin rejected it: if it failed, an error was the reason.
    pub fn has_no_rejector(&self) -> bool {
        self.unschedulable_plugins.is_empty() && self.pending_plugins.is_empty()
    }

    /// What its place in activeQ depends on.
    pub fn sort_key(&self) -> QueueSortKey<'_> {
        QueueSortKey { pod: &self.pod, timestamp: self.timestamp }
    }
}
