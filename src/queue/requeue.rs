//! Requeueing of pods after an attempt or because of an event.

use std::sync::Arc;

use super::hints::{EventPlan, Hint};
use super::plugin_set::PluginSet;
use super::state::{Origin, State};
use super::{AlreadyQueued, Place, QueuedPodInfo};
use crate::clock::Mono;
use crate::framework::QueueingHint;
use crate::metrics::HintResult;
use crate::model::{EventObjects, Object};

/// Effect of an event on a pod in unschedulablePods.
/// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#queueingStrategy @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueingStrategy {
    /// The pod stays in unschedulablePods.
    Skip,
    /// The pod is retried after its backoff.
    AfterBackoff,
    /// The pod is retried at once.
    Immediately,
}

impl State {
    /// Decides how an event affects a pod with these rejectors. Only hints of plugins that rejected the pod are called.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.isPodWorthRequeuing @v1.36.3`.
    pub(super) fn worth_requeuing(
        &self,
        info: &QueuedPodInfo,
        profile: Option<usize>,
        rejectors: &PluginSet,
        event: &EventPlan,
        objects: &EventObjects,
    ) -> QueueingStrategy {
        if rejectors.is_empty() {
            return QueueingStrategy::AfterBackoff;
        }
        if event.event.is_wildcard() {
            let for_it = match &objects.new {
                None => true,
                Some(Object::Pod(pod)) => pod.uid() == info.pod.uid(),
                Some(_) => false,
            };
            return if for_it { QueueingStrategy::AfterBackoff } else { QueueingStrategy::Skip };
        }
        let Some(profile) = profile else {
            tracing::error!(pod = &**info.pod.key(), "No profile found for the pod's schedulerName");
            return QueueingStrategy::AfterBackoff;
        };
        let hints = &event.hints[profile];
        if !hints.plugins.intersects(rejectors) {
            return QueueingStrategy::Skip;
        }
        let mut strategy = QueueingStrategy::Skip;
        for hint in hints.hints.iter().filter(|hint| rejectors.contains(hint.plugin)) {
            if self.ask(hint, info, event, objects) == QueueingHint::Skip {
                continue;
            }
            if info.pending_plugins.contains(self.names.name(hint.plugin)) {
                return QueueingStrategy::Immediately;
            }
            strategy = QueueingStrategy::AfterBackoff;
            if info.pending_plugins.is_empty() {
                // Only a pending plugin could make the pod more urgent.
                break;
            }
        }
        strategy
    }

    /// Calls the hint of one plugin. An error counts as `Queue`, so that no pod is stuck because of it.
    fn ask(&self, hint: &Hint, info: &QueuedPodInfo, event: &EventPlan, objects: &EventObjects) -> QueueingHint {
        let started = self.clock.mono();
        let answer = hint.ask.as_ref().map_or(Ok(QueueingHint::Queue), |ask| ask(&info.pod, objects));
        let result = match &answer {
            Ok(QueueingHint::Queue) => HintResult::Queue,
            Ok(QueueingHint::Skip) => HintResult::QueueSkip,
            Err(error) => {
                let plugin = &**self.names.name(hint.plugin);
                tracing::error!(pod = &**info.pod.key(), event = &*event.label, plugin, %error, "QueueingHintFn returns error");
                HintResult::Error
            }
        };
        self.recorder.observe(hint.durations.series(result), self.clock.mono().seconds_since(started));
        answer.unwrap_or(QueueingHint::Queue)
    }

    /// Inserts a pod that is not in the queue into the place that `strategy` demands, and returns the place of the pod. A gated
    /// pod goes to unschedulablePods.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.requeuePodWithQueueingStrategy @v1.36.3`.
    pub(super) fn requeue(
        &mut self,
        mut info: QueuedPodInfo,
        strategy: QueueingStrategy,
        event: &EventPlan,
        origin: Origin,
        now: Mono,
    ) -> Place {
        let moved = match strategy {
            QueueingStrategy::Skip => {
                self.put_back(info, event, origin);
                return Place::Unschedulable;
            }
            // The backoff may have ended while the pod was in unschedulablePods.
            QueueingStrategy::AfterBackoff if self.is_backing_off(&mut info, now) => {
                self.move_to_backoff(info, event, origin).then_some(Place::Backoff)
            }
            QueueingStrategy::AfterBackoff | QueueingStrategy::Immediately => {
                self.move_to_active(info, event, origin, now).then_some(Place::Active)
            }
        };
        moved.unwrap_or(Place::Unschedulable)
    }

    pub(super) fn is_backing_off(&self, info: &mut QueuedPodInfo, now: Mono) -> bool {
        let expiration = self.backoff.expiration(info);
        self.backoff.is_backing_off(expiration, now)
    }

    /// Takes back a pod whose attempt failed.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.AddUnschedulableIfNotPresent @v1.36.3`.
    pub(super) fn add_unschedulable(&mut self, mut info: QueuedPodInfo, now: Mono) -> Result<(), AlreadyQueued> {
        if let Some(slot) = self.pods.find(info.pod.key()) {
            return Err(AlreadyQueued { pod: info.pod.key().clone(), place: self.pods.get(slot).place() });
        }
        if info.has_no_rejector() {
            info.consecutive_errors_count += 1;
        } else {
            info.unschedulable_count += 1;
            info.consecutive_errors_count = 0;
        }
        info.timestamp = now;
        info.order = self.next_order();
        info.backoff_expiration = None;
        info.was_flushed_from_unschedulable = false;

        let event = self.own.attempt_failure.clone();
        if self.modes.hints {
            let strategy = self.strategy_for_in_flight(&info);
            self.requeue(info, strategy, &event, Origin::Outside, now);
        } else if self.move_request_cycle >= self.scheduling_cycle || info.has_no_rejector() {
            self.move_to_backoff(info, &event, Origin::Outside);
        } else {
            self.put_back(info, &event, Origin::Outside);
        }
        Ok(())
    }

    /// Decides how the events that arrived during the pod's attempt affect it.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.determineSchedulingHintForInFlightPod @v1.36.3`.
    fn strategy_for_in_flight(&mut self, info: &QueuedPodInfo) -> QueueingStrategy {
        let grouped = self.modes.groups && info.pod.pod().spec.scheduling_group.is_some();
        if info.has_no_rejector() || grouped {
            return QueueingStrategy::AfterBackoff;
        }
        let class = self.class_of(info);
        let Some(missed) = self.in_flight.missed(info.pod.uid()) else {
            tracing::error!(pod = &**info.pod.key(), "Pod returned to the scheduling queue is not in flight");
            return QueueingStrategy::AfterBackoff;
        };
        let mut strategy = QueueingStrategy::Skip;
        for event in missed {
            match self.worth_requeuing(info, class.profile, &class.rejectors, &event.plan, &event.objects) {
                QueueingStrategy::Skip => {}
                QueueingStrategy::Immediately => return QueueingStrategy::Immediately,
                QueueingStrategy::AfterBackoff => {
                    strategy = QueueingStrategy::AfterBackoff;
                    if info.pending_plugins.is_empty() {
                        break;
                    }
                }
            }
        }
        strategy
    }

    /// Returns the plan of an event, which is computed at the first call for this event.
    pub(super) fn plan(&mut self, event: &crate::model::ClusterEvent) -> Arc<EventPlan> {
        self.events.plan(event, &self.names)
    }
}
