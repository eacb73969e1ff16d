//! Handlers of changes of pods. Assigned pods go to the cache, and this scheduler's unassigned pods go to the queue.

use std::sync::Arc;

use super::{Handlers, only_fatal};
use crate::cache::{CacheError, PodAdded};
use crate::clock::Now;
use crate::k8s::Pod;
use crate::listers::Change;
use crate::model::{ClusterEvent, EventObjects, PodInfo};
use crate::queue::pod_events;

impl Handlers {
    /// Handles a change of a pod.
    pub fn pod_changed(&self, change: &Change<Pod>, now: Now) -> Result<(), CacheError> {
        match change {
            Change::Added(new) => self.pod_added(new, now),
            Change::Updated { old, new } => self.pod_updated(old, new, now),
            Change::Deleted { last, missed } => self.pod_deleted(last, *missed, now),
        }
    }

    /// Adds a pod to cache or queue. Follows `pkg/scheduler/eventhandlers.go#Scheduler.addPod @v1.36.3`.
    fn pod_added(&self, pod: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        if pod.node_name().is_some() {
            self.assigned_pod_added(pod, now)?;
        } else if self.is_responsible_for(pod) {
            self.unscheduled_pod_added(pod, now);
        }
        Ok(())
    }

    /// Updates a pod in cache or queue. Follows `pkg/scheduler/eventhandlers.go#Scheduler.updatePod @v1.36.3`.
    fn pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        if old.node_name().is_some() {
            self.assigned_pod_updated(old, new, now)?;
        } else if new.node_name().is_some() {
            self.assigned_pod_added(new, now)?;
            if self.is_responsible_for(old) {
                // The pod was bound. If it is still queued, another scheduler bound it.
                self.unscheduled_pod_deleted(old, true, now);
            }
        } else if self.is_responsible_for(old) {
            self.unscheduled_pod_updated(old, new, now);
        }
        Ok(())
    }

    /// Handles the deletion of a pod. If the deletion event was `missed`, `pod` may be a state before the binding.
    /// Follows `pkg/scheduler/eventhandlers.go#Scheduler.deletePod @v1.36.3`.
    fn pod_deleted(&self, pod: &Arc<Pod>, missed: bool, now: Now) -> Result<(), CacheError> {
        let assigned = pod.node_name().is_some();
        if assigned || missed {
            self.assigned_pod_deleted(pod, now)?;
        }
        if (!assigned || missed) && self.is_responsible_for(pod) {
            self.unscheduled_pod_deleted(pod, false, now);
        }
        Ok(())
    }

    fn is_responsible_for(&self, pod: &Pod) -> bool {
        self.parts.profiles.contains(pod.scheduler_name())
    }

    fn assigned_pod_added(&self, pod: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        let start = self.start();
        match self.parts.cache.add_pod(self.info(pod)) {
            Ok(PodAdded::New | PodAdded::Confirmed) => {}
            Ok(PodAdded::Moved { assumed }) => tracing::info!(
                pod = pod.key(),
                %assumed,
                node = pod.node_name(),
                "Pod was added to a different node than it was assumed"
            ),
            Err(error) => only_fatal(Err(error), "AddPod", &pod.key())?,
        }
        self.parts.queue.assigned_pod_added(pod, now);
        self.observe_since(&ClusterEvent::ASSIGNED_POD_ADD, start);
        Ok(())
    }

    fn assigned_pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        let start = self.start();
        only_fatal(self.parts.cache.update_pod(old, self.info(new)), "UpdatePod", &old.key())?;
        let updating = self.elapsed(start);
        for event in pod_events(old, new, &self.parts.gates) {
            let start = self.start();
            self.parts.queue.assigned_pod_updated(old, new, &event, now);
            self.observe(&event, updating + self.elapsed(start));
        }
        self.observe_since(&ClusterEvent::ASSIGNED_POD_UPDATE, start);
        Ok(())
    }

    fn assigned_pod_deleted(&self, pod: &Arc<Pod>, now: Now) -> Result<(), CacheError> {
        let start = self.start();
        only_fatal(self.parts.cache.remove_pod(pod), "RemovePod", &pod.key())?;
        self.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &EventObjects::of_pods(Some(pod), None), now, None);
        self.observe_since(&ClusterEvent::ASSIGNED_POD_DELETE, start);
        Ok(())
    }

    fn unscheduled_pod_added(&self, pod: &Arc<Pod>, now: Now) {
        let start = self.start();
        self.parts.queue.add(self.info(pod), now);
        if self.gangs {
            self.move_all(&ClusterEvent::UNSCHEDULED_POD_ADD, &EventObjects::of_pods(None, Some(pod)), now, None);
        }
        self.observe_since(&ClusterEvent::UNSCHEDULED_POD_ADD, start);
    }

    /// Updates a pod in the queue. Follows `pkg/scheduler/eventhandlers.go#Scheduler.updatePodInSchedulingQueue @v1.36.3`.
    fn unscheduled_pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, now: Now) {
        if old.metadata.resource_version == new.metadata.resource_version {
            return;
        }
        let start = self.start();
        let events = pod_events(old, new, &self.parts.gates);
        if self.is_assumed(new) {
            if new.is_terminating() && !old.is_terminating() {
                self.assumed_pod_deleted(new, now);
            }
        } else {
            self.parts.queue.update(old, &self.info(new), &events, now);
            if old.nominated_node_name().is_some() && old.nominated_node_name() != new.nominated_node_name() {
                self.nomination_dropped(old, now);
            }
        }
        for event in events.iter().filter(|event| **event != ClusterEvent::UNSCHEDULED_POD_UPDATE) {
            self.observe_since(event, start);
        }
        self.observe_since(&ClusterEvent::UNSCHEDULED_POD_UPDATE, start);
    }

    /// Removes a pod from the queue, because it was bound or deleted.
    /// Follows `pkg/scheduler/eventhandlers.go#Scheduler.deletePodFromSchedulingQueue @v1.36.3`.
    fn unscheduled_pod_deleted(&self, pod: &Arc<Pod>, in_binding: bool, now: Now) {
        let start = self.start();
        self.parts.queue.delete(pod);
        if !in_binding {
            if self.is_assumed(pod) {
                self.assumed_pod_deleted(pod, now);
            } else if pod.nominated_node_name().is_some() {
                self.nomination_dropped(pod, now);
            }
        }
        self.observe_since(&ClusterEvent::UNSCHEDULED_POD_DELETE, start);
    }

    fn is_assumed(&self, pod: &Pod) -> bool {
        self.parts.cache.is_assumed(pod).unwrap_or_else(|error| {
            tracing::error!(pod = pod.key(), %error, "Failed to check whether pod is assumed");
            false
        })
    }

    /// Handles the deletion of an assumed pod, whose resources become free at once. Its binding continues, and is expected to
    /// fail.
    /// Follows `pkg/scheduler/eventhandlers.go#Scheduler.handleAssumedPodDeletion @v1.36.3`.
    fn assumed_pod_deleted(&self, pod: &Pod, now: Now) {
        // Only the cache's copy of the pod has the node name.
        let Ok(assumed) = self.parts.cache.get_pod(pod) else { return };
        let assumed = assumed.pod();
        if !self.is_responsible_for(assumed) {
            tracing::error!(pod = assumed.key(), "Unable to get profile for pod");
            return;
        }
        // A pod that waits at `Permit` is rejected instead, and its binding cycle undoes the reservation.
        if !self.parts.waiting_pods.reject(assumed.uid(), "removed")
            && let Err(error) = self.parts.cache.forget_pod(assumed)
        {
            tracing::error!(pod = assumed.key(), %error, "Scheduler cache ForgetPod failed");
        }
        self.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &EventObjects::of_pods(Some(assumed), None), now, None);
    }

    /// Handles the loss of a pod's nomination. This may help pods of the same or lower priority, for which the nominated pod
    /// counted as running on the node.
    fn nomination_dropped(&self, pod: &Arc<Pod>, now: Now) {
        let priority = pod.priority();
        let check = |other: &PodInfo| other.priority() <= priority;
        self.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &EventObjects::of_pods(Some(pod), None), now, Some(&check));
    }
}
