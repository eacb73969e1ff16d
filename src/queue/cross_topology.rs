//! Pods that an assigned pod may make schedulable, for `SchedulerQueueingHints` off.

use std::sync::Arc;

use super::pods::Slot;
use super::state::State;
use super::{Place, QueuedPodInfo};
use crate::clock::Mono;
use crate::k8s::Pod;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource};

/// Name of the plugin that rejects pods because of topology spread constraints.
/// From `pkg/scheduler/framework/plugins/names/names.go#PodTopologySpread @v1.36.3`.
const POD_TOPOLOGY_SPREAD: &str = "PodTopologySpread";

impl State {
    /// Moves the pods that a new assigned pod may help.
    /// Follows `pkg/scheduler/eventhandlers.go#addAssignedPodToCache @v1.36.3` and, with hints off,
    /// `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.AssignedPodAdded @v1.36.3`.
    pub(super) fn assigned_pod_added(&mut self, pod: &Arc<Pod>, now: Mono) {
        let objects = EventObjects::of_pods(None, Some(pod));
        self.move_for_assigned(&ClusterEvent::ASSIGNED_POD_ADD, &objects, pod, self.modes.hints, now);
    }

    /// Moves the pods that a change of an assigned pod may help. `event` is one of the changes of the assigned pod.
    /// Follows `pkg/scheduler/eventhandlers.go#updateAssignedPodInCache @v1.36.3` and, with hints off,
    /// `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.AssignedPodUpdated @v1.36.3`.
    pub(super) fn assigned_pod_updated(&mut self, old: &Arc<Pod>, new: &Arc<Pod>, event: &ClusterEvent, now: Mono) {
        let scale_down = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_SCALE_DOWN);
        let objects = EventObjects::of_pods(Some(old), Some(new));
        self.move_for_assigned(event, &objects, new, self.modes.hints || scale_down.matches(event), now);
    }

    fn move_for_assigned(&mut self, event: &ClusterEvent, objects: &EventObjects, pod: &Pod, all: bool, now: Mono) {
        if all {
            self.move_all(event, objects, None, now);
            return;
        }
        let plan = self.plan(event);
        let slots = self.with_cross_topology_term(pod);
        self.move_pods(slots, &plan, objects, None, now);
    }

    /// Returns the pods in unschedulablePods that are in the pod's namespace and were rejected by `PodTopologySpread`, or that
    /// have a required affinity term that matches the pod, in order of arrival. Follows
    /// `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.getUnschedulablePodsWithCrossTopologyTerm @v1.36.3`.
    fn with_cross_topology_term(&self, pod: &Pod) -> Vec<Slot> {
        let namespace = self.namespaces.get(pod.namespace());
        let namespace_labels = namespace.as_deref().and_then(|namespace| namespace.metadata.labels.clone());
        let namespace_labels = namespace_labels.unwrap_or_default();
        let concerns = |info: &QueuedPodInfo| {
            let spreads = info.unschedulable_plugins.contains(POD_TOPOLOGY_SPREAD);
            (spreads && info.pod.namespace() == pod.namespace())
                || info.pod.affinity_terms().is_some_and(|terms| {
                    let mut terms = terms.required_affinity().iter();
                    terms.any(|term| term.matches(pod.namespace(), pod.labels(), &namespace_labels))
                })
        };
        self.pods.slots(Place::Unschedulable).into_iter().filter(|slot| concerns(&self.pods.get(*slot).info)).collect()
    }
}
