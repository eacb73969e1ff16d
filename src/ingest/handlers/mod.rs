//! Handlers that apply changes in the cluster to cache and queue.
//!
//! Handlers are synchronous and use no network. Reflectors and tests call them. A handler fails only if the process must exit.
//! All other errors are logged, as in upstream.
//! Follows `pkg/scheduler/eventhandlers.go @v1.36.3`.

mod nodes;
mod others;
mod pods;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::Histogram;

use crate::cache::{Cache, CacheError};
use crate::clock::{Clock, Mono, Now};
use crate::config::{FeatureGates, Gate};
use crate::framework::WaitingPods;
use crate::k8s::Pod;
use crate::metrics::Metrics;
use crate::model::{ClusterEvent, EventObjects, LabelClasses, NodeInfo, PodInfo, ResourceGates};
use crate::queue::{PreCheck, Queue};

/// Decides whether a pod may fit on an added or updated node. It is used only with `SchedulerQueueingHints` disabled.
/// Follows `pkg/scheduler/eventhandlers.go#preCheckForNode @v1.36.3`.
pub type NodeCheck = Arc<dyn Fn(&PodInfo, &NodeInfo) -> bool + Send + Sync>;

/// The parts that handlers use.
pub struct HandlerParts {
    /// Nodes and the pods on them, including assumed pods.
    pub cache: Arc<Cache>,
    /// Pods that wait to be scheduled.
    pub queue: Arc<Queue>,
    /// Pods that wait at `Permit`.
    pub waiting_pods: WaitingPods,
    /// Interned classes of pods with the same labels.
    pub classes: LabelClasses,
    /// Feature gates that decide which sources a pod's requests come from.
    pub resource_gates: ResourceGates,
    /// Feature gates of the scheduler.
    pub gates: FeatureGates,
    /// The schedulerNames of all profiles.
    pub profiles: BTreeSet<String>,
    /// The scheduler's metric families.
    pub metrics: Arc<Metrics>,
    /// Clock that measures the duration of handlers.
    pub clock: Clock,
    /// Decides which pods a node event may help, with queueing hints disabled. `None` stands for all pods.
    pub node_check: Option<NodeCheck>,
}

/// Handlers that apply changes in the cluster to cache and queue.
pub struct Handlers {
    parts: HandlerParts,
    hints: bool,
    gangs: bool,
    /// The histograms of `scheduler_event_handling_duration_seconds` that have been used so far. The lock guards the map and is
    /// held for a lookup.
    durations: Mutex<HashMap<ClusterEvent, Histogram>>,
}

impl Handlers {
    /// Sets the check of added and updated nodes.
    pub(super) fn set_node_check(&mut self, check: NodeCheck) {
        self.parts.node_check = Some(check);
    }

    /// Creates handlers with these parts.
    pub fn new(parts: HandlerParts) -> Self {
        let hints = parts.gates.enabled(Gate::SchedulerQueueingHints);
        let gangs = parts.gates.enabled(Gate::GangScheduling);
        Self { parts, hints, gangs, durations: Mutex::default() }
    }

    /// Returns the [`PodInfo`] of the pod.
    fn info(&self, pod: &Arc<Pod>) -> Arc<PodInfo> {
        Arc::new(PodInfo::with_gates(pod.clone(), &self.parts.classes, self.parts.resource_gates))
    }

    fn move_all(&self, event: &ClusterEvent, objects: &EventObjects, now: Now, check: Option<&PreCheck<'_>>) {
        self.parts.queue.move_all(event, objects, now, check);
    }

    fn start(&self) -> Mono {
        self.parts.clock.mono()
    }

    fn elapsed(&self, start: Mono) -> f64 {
        self.parts.clock.mono().seconds_since(start)
    }

    /// Observes the duration of a handled event.
    fn observe(&self, event: &ClusterEvent, seconds: f64) {
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(duration) = durations.get(event) {
            duration.observe(seconds);
            return;
        }
        let duration = self.parts.metrics.event_handling_duration(&event.label().to_string());
        duration.observe(seconds);
        durations.insert(event.clone(), duration);
    }

    fn observe_since(&self, event: &ClusterEvent, start: Mono) {
        self.observe(event, self.elapsed(start));
    }
}

/// Returns errors for which the process must exit, and logs all others.
fn only_fatal(outcome: Result<(), CacheError>, action: &str, object: &str) -> Result<(), CacheError> {
    match outcome {
        Err(error) if error.is_fatal() => Err(error),
        Err(error) => {
            tracing::error!(object, %error, "Scheduler cache {action} failed");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
