//! Handling of failed attempts: events, requeueing, and the pod's status.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::SchedulerContext;
use crate::clock::{Mono, Now};
use crate::dispatcher::StatusUpdate;
use crate::events;
use crate::framework::{Diagnosis, Framework, NO_NODES_AVAILABLE, NominatingInfo, PluginError, Rejection};
use crate::metrics::AttemptResult;
use crate::model::PodInfo;
use crate::queue::QueuedPodInfo;

/// Reason of the pod's condition after a rejection.
const REASON_UNSCHEDULABLE: &str = "Unschedulable";

/// Reason of the pod's condition after an error.
const REASON_SCHEDULER_ERROR: &str = "SchedulerError";

/// Reasons why an attempt failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The cluster has no nodes.
    NoNodes,
    /// The pod fits on no node, or a plugin rejected it at `Reserve` or `Permit` or while it waited.
    Fit {
        /// The reasons of the rejection.
        diagnosis: Box<Diagnosis>,
        /// Number of nodes in the message.
        num_all_nodes: usize,
    },
    /// A plugin rejected the pod at `PreBind` or `Bind`. The pod is retried after its backoff, regardless of events.
    Rejected(Rejection),
    /// No plugin bound the pod. As in upstream, there is no message.
    NotBound,
    /// An error occurred in the scheduler or a plugin.
    Error(PluginError),
}

impl Failure {
    /// Returns the failure for a rejection at `Reserve` or `Permit`.
    pub(super) fn of_plugin(plugin: Arc<str>, rejection: Rejection) -> Self {
        Self::Fit { diagnosis: Box::new(Diagnosis::of_plugin(plugin, rejection)), num_all_nodes: 1 }
    }

    /// Whether the pod was rejected. Otherwise, an error occurred or no plugin bound the pod.
    pub fn is_rejection(&self) -> bool {
        !matches!(self, Self::NotBound | Self::Error(_))
    }

    /// Returns the message of the failure.
    pub fn message(&self) -> String {
        match self {
            Self::NoNodes => NO_NODES_AVAILABLE.to_owned(),
            Self::Fit { diagnosis, num_all_nodes } => diagnosis.message(*num_all_nodes),
            Self::Rejected(rejection) => rejection.reasons.to_string(),
            Self::NotBound => String::new(),
            Self::Error(error) => error.to_string(),
        }
    }
}

impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        Self::Error(error)
    }
}

impl SchedulerContext {
    /// Ends a failed attempt. Counts it, puts the pod back into the queue unless it was deleted or bound, records the
    /// nomination, and writes the event and the condition.
    /// Follows `pkg/scheduler/schedule_one.go#handleSchedulingFailure @v1.36.3`.
    pub(super) fn handle_failure(
        &self,
        framework: &Framework,
        mut queued: QueuedPodInfo,
        failure: &Failure,
        nominating: NominatingInfo,
        started: Mono,
        now: Now,
    ) {
        let (reason, result) = if failure.is_rejection() {
            (REASON_UNSCHEDULABLE, AttemptResult::Unschedulable)
        } else {
            (REASON_SCHEDULER_ERROR, AttemptResult::Error)
        };
        framework.metrics().attempt(result, now.mono.seconds_since(started));
        let message = failure.message();
        queued.clear_rejector_plugins();
        (queued.unschedulable_plugins, queued.pending_plugins) = rejectors(failure);
        log(&queued, failure, &message);

        let known = self.pods.get(queued.pod.key());
        let pod = match known {
            None => {
                tracing::info!(pod = &**queued.pod.key(), "Pod doesn't exist in informer cache");
                self.queue.done(queued.pod.uid());
                queued.pod.clone()
            }
            Some(known) if known.node_name().is_some() => {
                let (pod, node) = (queued.pod, known.node_name().unwrap_or_default());
                tracing::info!(
                    pod = &**pod.key(),
                    node,
                    "Pod has been assigned to node. Abort adding it back to queue."
                );
                self.queue.done(pod.uid());
                pod.clone()
            }
            Some(known) if known.uid() != queued.pod.uid() => {
                self.queue.done(queued.pod.uid());
                return;
            }
            Some(known) => {
                // The pod has usually not changed since it was queued.
                if !Arc::ptr_eq(&known, queued.pod.pod()) {
                    queued.pod = Arc::new(PodInfo::with_gates(known, &self.classes, self.resource_gates));
                }
                let pod = queued.pod.clone();
                if let Err(error) = self.queue.add_unschedulable_if_not_present(queued, now) {
                    tracing::error!(%error, "Error occurred");
                }
                pod
            }
        };
        self.nominator().add_nominated_pod(&pod, &nominating);
        if *failure != Failure::NotBound {
            self.report(framework, &pod, reason, &message, nominating);
        }
    }

    /// Writes the event and the condition.
    fn report(
        &self,
        framework: &Framework,
        pod: &Arc<PodInfo>,
        reason: &str,
        message: &str,
        nominating: NominatingInfo,
    ) {
        // Upstream passes the message as a format string.
        self.warn(framework, pod, &events::without_arguments(&events::truncate(message)));
        let nominated = match nominating {
            NominatingInfo::Keep => None,
            NominatingInfo::Override(node) => Some(node),
        };
        self.writes.patch_status(pod.pod(), StatusUpdate::not_scheduled(pod.pod(), reason, message, nominated));
    }
}

/// Returns the plugins that rejected the pod, and the plugins among these that returned `Pending`. Both sets are empty unless
/// the failure is [`Failure::Fit`].
fn rejectors(failure: &Failure) -> (BTreeSet<Arc<str>>, BTreeSet<Arc<str>>) {
    match failure {
        Failure::Fit { diagnosis, .. } => (diagnosis.unschedulable_plugins.clone(), diagnosis.pending_plugins.clone()),
        _ => (BTreeSet::new(), BTreeSet::new()),
    }
}

fn log(queued: &QueuedPodInfo, failure: &Failure, message: &str) {
    let pod = &**queued.pod.key();
    match failure {
        Failure::NoNodes => {
            tracing::debug!(pod, "Unable to schedule pod; no nodes are registered to the cluster; waiting");
        }
        Failure::Fit { .. } => tracing::debug!(pod, err = message, "Unable to schedule pod; no fit; waiting"),
        Failure::Rejected(_) | Failure::NotBound | Failure::Error(_) => {
            tracing::error!(pod, err = message, "Error scheduling pod; retrying");
        }
    }
}
