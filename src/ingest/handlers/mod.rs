//! What a change in the cluster means for cache and queue.
//!
//! Synchronous and without a network: reflectors call these, and tests may. A handler fails only when the process has to
//! end; what else goes wrong is logged, as upstream does.
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

/// Says of a node that came or changed whether a pod might fit on it. Asked only with `SchedulerQueueingHints` off.
/// Follows `pkg/scheduler/eventhandlers.go#preCheckForNode @v1.36.3`.
pub type NodeCheck = Arc<dyn Fn(&PodInfo, &NodeInfo) -> bool + Send + Sync>;

/// What handlers work on.
pub struct HandlerParts {
    /// Nodes and the pods on them.
    pub cache: Arc<Cache>,
    /// Pods that wait to be scheduled.
    pub queue: Arc<Queue>,
    /// Pods that wait at Permit.
    pub waiting_pods: WaitingPods,
    /// Interned label classes.
    pub classes: LabelClasses,
    /// Which of a pod's resources count.
    pub resource_gates: ResourceGates,
    /// Feature gates.
    pub gates: FeatureGates,
    /// The schedulerNames of all profiles.
    pub profiles: BTreeSet<String>,
    /// Metric families.
    pub metrics: Arc<Metrics>,
    /// Measures how long handlers take.
    pub clock: Clock,
    /// Which pods a node event may help, with queueing hints off. None for all.
    pub node_check: Option<NodeCheck>,
}

/// What a change in the cluster means for cache and queue.
pub struct Handlers {
    parts: HandlerParts,
    hints: bool,
    gangs: bool,
    /// Which of `scheduler_event_handling_duration_seconds` have been observed. The lock guards the map and is held for a
    /// look-up.
    durations: Mutex<HashMap<ClusterEvent, Histogram>>,
}

impl Handlers {
    /// Sets what says of a node whether a pod might fit on it.
    pub(super) fn set_node_check(&mut self, check: NodeCheck) {
        self.parts.node_check = Some(check);
    }

    /// Handlers for these.
    pub fn new(parts: HandlerParts) -> Self {
        let hints = parts.gates.enabled(Gate::SchedulerQueueingHints);
        let gangs = parts.gates.enabled(Gate::GangScheduling);
        Self { parts, hints, gangs, durations: Mutex::default() }
    }

    /// The pod with what is derived from it.
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

    /// Counts a handled event.
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

/// Hands on what the process has to end for, and logs the rest.
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
