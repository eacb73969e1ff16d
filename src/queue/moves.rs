//! Moves of pods because of events and of activation requests.

use std::sync::Arc;

use super::hints::EventPlan;
use super::in_flight::meant_for;
use super::pods::{EventClass, Slot};
use super::requeue::QueueingStrategy;
use super::state::{Origin, State};
use super::{Place, PreCheck, QueuedPodInfo};
use crate::clock::Mono;
use crate::model::{ClusterEvent, EventObjects};

impl State {
    /// Moves the pods that an event may help, and keeps the event for the pods in flight.
    ///
    /// Upstream checks all pods in unschedulablePods. This function checks only the pods whose class the event can matter to.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.moveAllToActiveOrBackoffQueue @v1.36.3`.
    pub(super) fn move_all(
        &mut self,
        event: &ClusterEvent,
        objects: &EventObjects,
        pre_check: Option<&PreCheck<'_>>,
        now: Mono,
    ) {
        let plan = self.plan(event);
        if !plan.of_interest {
            return;
        }
        let candidates = self.pods.unschedulable_of(|class| matters_to(&plan, class));
        self.move_pods(candidates, &plan, objects, pre_check, now);
    }

    /// Moves those of `slots` that the event may help, and keeps the event for the pods in flight. All `slots` must be in
    /// unschedulablePods, and may include pods to which the event does not matter.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.movePodsToActiveOrBackoffQueue @v1.36.3`.
    pub(super) fn move_pods(
        &mut self,
        slots: Vec<Slot>,
        plan: &Arc<EventPlan>,
        objects: &EventObjects,
        pre_check: Option<&PreCheck<'_>>,
        now: Mono,
    ) {
        if !plan.of_interest {
            return;
        }
        for slot in slots {
            let record = self.pods.get(slot);
            if record.class.gating.is_some_and(|gating| !plan.opens.contains(gating)) {
                continue;
            }
            if pre_check.is_some_and(|check| !check(&record.info.pod)) {
                continue;
            }
            let strategy =
                self.worth_requeuing(&record.info, record.class.profile, &record.class.rejectors, plan, objects);
            if strategy != QueueingStrategy::Skip {
                let info = self.take(slot);
                self.requeue(info, strategy, plan, Origin::Outside, now);
            }
        }
        self.move_request_cycle = self.scheduling_cycle;
        if self.modes.hints {
            self.in_flight.push(plan, objects.clone());
        }
    }

    /// Moves the pod `namespace/name` to activeQ from another place. Returns whether it moved.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.activate @v1.36.3`.
    pub(super) fn activate(&mut self, key: &str, now: Mono) -> bool {
        let Some(slot) = self.pods.find(key) else { return false };
        let origin = match self.pods.get(slot).place() {
            Place::Active => return false,
            Place::Unschedulable => Origin::Unschedulable,
            Place::Backoff | Place::ErrorBackoff => Origin::Backoff,
        };
        let info = self.take(slot);
        let event = self.own.force_activate.clone();
        self.move_to_active(info, &event, origin, now)
    }

    /// Activates each of the pods. A pod in flight is retried if its attempt fails.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.Activate @v1.36.3`.
    pub(super) fn activate_all(&mut self, keys: &[String], now: Mono) {
        let event = self.own.force_activate.clone();
        for key in keys {
            if self.activate(key, now) {
                continue;
            }
            if let Some(objects) = self.in_flight.find(key).map(|pod| meant_for(pod.pod())) {
                self.in_flight.push(&event, objects);
            }
            self.move_request_cycle = self.scheduling_cycle;
        }
    }

    /// Pops a certain pod from any place. Returns `None` if the pod is not queued, or if it is gated.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.PopSpecificPod @v1.36.3`.
    pub(super) fn pop_specific(&mut self, key: &str, now: Mono) -> Option<QueuedPodInfo> {
        self.activate(key, now);
        let slot = self.pods.find(key).filter(|slot| self.pods.get(*slot).place() == Place::Active)?;
        let mut info = self.take(slot);
        self.mark_in_flight(&mut info).then_some(info)
    }
}

/// Whether an event could move a pod of this class. If a plugin gates the pod, that plugin must have registered for the event.
/// One of the plugins that rejected the pod must have registered for the event, too.
fn matters_to(plan: &EventPlan, class: &EventClass) -> bool {
    if class.gating.is_some_and(|gating| !plan.opens.contains(gating)) {
        return false;
    }
    // Any event of interest moves pods without rejectors or of an unknown profile. A wildcard event matters to all pods.
    class.rejectors.is_empty()
        || plan.event.is_wildcard()
        || class.profile.is_none_or(|profile| plan.hints[profile].plugins.intersects(&class.rejectors))
}
