//! Changes and deletions of queued pods.

use std::sync::Arc;

use super::Place;
use super::events::has_new_claims;
use super::pods::Slot;
use super::requeue::QueueingStrategy;
use super::state::{Origin, State};
use crate::clock::Mono;
use crate::k8s::Pod;
use crate::model::{ClusterEvent, EventObjects, PodInfo};

impl State {
    /// Adds a new unassigned pod. Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.Add @v1.36.3`.
    pub(super) fn add(&mut self, pod: Arc<PodInfo>, now: Mono) {
        let info = self.new_info(pod, now);
        let event = self.own.pod_add.clone();
        self.move_to_active(info, &event, Origin::Outside, now);
    }

    /// Updates an unassigned pod, which may move it.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.Update @v1.36.3`.
    pub(super) fn update(&mut self, old: &Arc<Pod>, new: &Arc<PodInfo>, events: &[ClusterEvent], now: Mono) {
        if self.modes.hints && self.in_flight.contains(new.uid()) {
            // The pod comes back in its newest version. Then the kept events decide whether this change helped it.
            let objects = EventObjects::of_pods(Some(old), Some(new.pod()));
            for event in events {
                let plan = self.plan(event);
                self.in_flight.push(&plan, objects.clone());
            }
            return;
        }
        let Some(slot) = self.pods.find(new.key()) else {
            let info = self.new_info(new.clone(), now);
            let event = self.own.pod_update.clone();
            self.move_to_active(info, &event, Origin::Outside, now);
            return;
        };
        self.replace(slot, old, new);
        if self.pods.get(slot).place() != Place::Unschedulable {
            return;
        }
        if self.modes.hints {
            self.requeue_updated(old, new, events, now);
        } else if may_help(old, new.pod()) {
            let mut info = self.take(slot);
            let event = self.own.pod_update.clone();
            if self.is_backing_off(&mut info, now) {
                self.move_to_backoff(info, &event, Origin::Unschedulable);
            } else {
                self.move_to_active(info, &event, Origin::Unschedulable, now);
            }
        }
    }

    /// Replaces a queued pod by its new version.
    fn replace(&mut self, slot: Slot, old: &Pod, new: &Arc<PodInfo>) {
        let signature = self.sign(new);
        self.pods.change(slot, |info| {
            info.pod = new.clone();
            info.signature = signature;
        });
        self.nominator.update(old, new);
        // The order of the heap may have changed, and with it the next pod to pop.
        self.changed = true;
    }

    /// Asks the plugins that rejected a pod in unschedulablePods about each of the pod's own changes.
    fn requeue_updated(&mut self, old: &Arc<Pod>, new: &Arc<PodInfo>, events: &[ClusterEvent], now: Mono) {
        let objects = EventObjects::of_pods(Some(old), Some(new.pod()));
        for event in events {
            let plan = self.plan(event);
            let Some(slot) = self.pods.find(new.key()) else { return };
            let record = self.pods.get(slot);
            let (place, class) = (record.place(), &record.class);
            let strategy = self.worth_requeuing(&record.info, class.profile, &class.rejectors, &plan, &objects);
            let in_backoff = matches!(place, Place::Backoff | Place::ErrorBackoff);
            // Without SchedulerPopFromBackoffQ, a pod in a backoff queue may still become more urgent.
            if strategy == QueueingStrategy::Skip || (in_backoff && strategy == QueueingStrategy::AfterBackoff) {
                continue;
            }
            let origin = if in_backoff { Origin::Outside } else { Origin::Unschedulable };
            let info = self.take(slot);
            let moved = self.requeue(info, strategy, &plan, origin, now);
            if moved == Place::Active || (self.modes.pop_from_backoff && moved == Place::Backoff) {
                return;
            }
        }
    }

    /// Removes a deleted or bound pod.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.Delete @v1.36.3`.
    pub(super) fn delete(&mut self, pod: &Pod) {
        self.nominator.delete(pod.uid());
        if let Some(slot) = self.pods.find(&pod.key()) {
            self.take(slot);
        }
    }
}

/// Whether an update may help the pod. Used with hints off. Every change counts, except changes of the resource version, of the
/// generation, and of status fields other than the resource claims. Fields that a slim pod does not keep are not compared.
/// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#isPodUpdated @v1.36.3`.
fn may_help(old: &Pod, new: &Pod) -> bool {
    let strip = |pod: &Pod| {
        let mut metadata = pod.metadata.clone();
        metadata.resource_version = None;
        metadata.generation = None;
        metadata
    };
    old.spec != new.spec || has_new_claims(old, new) || strip(old) != strip(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodFixture, pod};

    #[track_caller]
    fn check(change: impl FnOnce(PodFixture) -> PodFixture, expected: bool) {
        assert_eq!(may_help(&pod("a").build(), &change(pod("a")).build()), expected);
    }

    #[test]
    fn with_hints_off_spec_and_metadata_changes_requeue() {
        check(|pod| pod, false);
        check(|pod| pod.set("metadata.resourceVersion", json!("7")), false);
        check(|pod| pod.set("metadata.generation", json!(7)), false);
        check(|pod| pod.nominated("n"), false);
        check(|pod| pod.set("metadata.annotations", json!({"a": "b"})), true);
        check(|pod| pod.label("a", "b"), true);
        check(|pod| pod.toleration("a", "", ""), true);
        check(|pod| pod.set("status.resourceClaimStatuses", json!([{"name": "c"}])), true);
        check(|pod| pod.set("status.extendedResourceClaimStatus", json!({"resourceClaimName": "c"})), true);
    }
}
