//! The binding cycle: from waiting on `Permit` to `PostBind`, in the pod's own task.

use std::sync::Arc;

use tracing::Instrument as _;

use super::reservation::Reservation;
use super::{Failure, SchedulerContext};
use crate::clock::Mono;
use crate::dispatcher::StatusUpdate;
use crate::framework::{
    BindContext, BindOutcome, CycleState, Framework, NominatingInfo, PodEvent, PodsToActivate, PreFlight, WaitDecision,
};
use crate::metrics::{AttemptResult, Operation};
use crate::model::{ClusterEvent, EventObjects, PodInfo};
use crate::queue::{PreCheck, QueuedPodInfo};

/// A pod that was assumed and is about to be bound.
pub(super) struct BindingCycle {
    pub(super) shared: Arc<SchedulerContext>,
    pub(super) framework: Arc<Framework>,
    pub(super) state: CycleState,
    pub(super) reservation: Reservation,
    /// The pod as it was popped. It goes back into the queue if the binding fails.
    pub(super) queued: QueuedPodInfo,
    pub(super) started: Mono,
    pub(super) pods_to_activate: PodsToActivate,
}

impl BindingCycle {
    /// Runs the binding cycle, and undoes the reservation if it fails. Follows
    /// `pkg/scheduler/schedule_one.go#runBindingCycle @v1.36.3`.
    pub(super) async fn run(mut self) {
        let _running = self.shared.metrics.running(Operation::Binding);
        match self.bind().await {
            Ok(()) => self.finish().await,
            Err(failure) => self.fail(failure).await,
        }
    }

    /// Runs the extension points from `PreBindPreFlight` to `Bind`. Follows
    /// `pkg/scheduler/schedule_one.go#bindingCycle @v1.36.3`.
    async fn bind(&mut self) -> Result<(), Failure> {
        let work = self.pre_flight()?;
        self.wait_on_permit().instrument(tracing::debug_span!("WaitOnPermit")).await?;
        // A pod that fails after this point is retried after its backoff, regardless of events. So the events since the pod was
        // popped need not be kept any longer.
        self.shared.queue.done(self.reservation.pod().uid());
        self.pre_bind(work).instrument(tracing::debug_span!("PreBind")).await?;
        if let Some(by_extender) = self.bind_by_extender().await {
            return by_extender;
        }
        let cx = BindContext { pod: self.reservation.pod(), node: self.reservation.node(), state: &self.state };
        match self.framework.run_bind(cx).instrument(tracing::debug_span!("Bind")).await? {
            Ok(BindOutcome::Bound) => Ok(()),
            Ok(BindOutcome::Skip | BindOutcome::Reject(_)) => Err(Failure::NotBound),
            Err((_, rejection)) => Err(Failure::Rejected(rejection)),
        }
    }

    /// Runs the `PreBindPreFlight` plugins. If a plugin has work to do or the pod waits at `Permit`, writes the node to the pod's
    /// `nominatedNodeName`.
    fn pre_flight(&mut self) -> Result<PreFlight, Failure> {
        if !self.shared.nominates_expected_node {
            // `PreBindPreFlight` did not run, so `PreBind` may have work to do.
            return Ok(PreFlight::Work);
        }
        let (pod, node) = (self.reservation.pod(), self.reservation.node());
        let work = self.framework.run_pre_flight(&mut self.state, pod, node)?;
        if work == PreFlight::Work || self.shared.waiting_pods.get(pod.uid()).is_some() {
            self.shared.writes.patch_status(pod.pod(), StatusUpdate::nominate(node));
        }
        Ok(work)
    }

    async fn wait_on_permit(&self) -> Result<(), Failure> {
        let uid = self.reservation.pod().uid();
        let Some(waiting) = self.shared.waiting_pods.get(uid) else { return Ok(()) };
        let began = self.shared.clock.mono();
        let decision = waiting.wait(&self.shared.clock).await;
        self.shared.waiting_pods.remove(uid);
        let seconds = self.shared.clock.mono().seconds_since(began);
        self.shared.metrics.permit_wait_duration(decision.code()).observe(seconds);
        match decision {
            WaitDecision::Allowed => Ok(()),
            WaitDecision::Rejected { plugin, rejection } => Err(Failure::of_plugin(plugin, rejection)),
            WaitDecision::Preempted { error, .. } => Err(Failure::Error(error.context("waiting on permit for pod"))),
        }
    }

    /// Runs the `PreBind` plugins. While plugins have work to do, preemption can cancel the pod in memory.
    async fn pre_bind(&self, work: PreFlight) -> Result<(), Failure> {
        let cx = BindContext { pod: self.reservation.pod(), node: self.reservation.node(), state: &self.state };
        let pods = &self.shared.pods_in_pre_bind;
        let on_its_way = (work == PreFlight::Work).then(|| pods.add(cx.pod.uid()));
        let outcome = match self.framework.run_pre_bind(cx, on_its_way.as_deref()).await {
            Ok(Some((_, rejection))) => Err(Failure::Rejected(rejection)),
            Ok(None) => on_its_way.map_or(Ok(()), |pod| pod.mark_prebound().map_err(Failure::Error)),
            Err(error) => Err(Failure::Error(error)),
        };
        pods.remove(cx.pod.uid());
        outcome
    }

    /// Binds the pod with the first binder among the extenders that is interested in the pod. If an ignorable binder fails, the
    /// next one is tried. Returns `None` if there is no such binder, or if all of them are ignorable and failed.
    /// Follows `pkg/scheduler/schedule_one.go#extendersBinding @v1.36.3`.
    async fn bind_by_extender(&self) -> Option<Result<(), Failure>> {
        let (pod, node) = (self.reservation.pod(), self.reservation.node());
        for extender in self.shared.extenders.iter() {
            if !extender.is_binder() || !extender.is_interested(pod) {
                continue;
            }
            match extender.bind(pod, node).await {
                Err(error) if extender.is_ignorable() => {
                    tracing::info!(extender = extender.name(), %error, "Skipping extender in bind as it returned error and has ignorable flag set");
                }
                outcome => return Some(outcome.map_err(Failure::Error)),
            }
        }
        None
    }

    async fn finish(self) {
        let shared = &self.shared;
        let pod = self.reservation.pod().clone();
        let node = self.reservation.node().clone();
        if !self.reservation.keep() {
            shared.pod_left(&pod, None);
        }
        let text = format!("Successfully assigned {} to {node}", pod.key());
        shared.effects.record(
            self.framework.name(),
            PodEvent { regarding: pod.pod(), warning: false, reason: "Scheduled", action: "Binding", note: &text },
        );
        let now = shared.clock.mono();
        self.framework.metrics().attempt(AttemptResult::Scheduled, now.seconds_since(self.started));
        let attempts = self.queued.attempts;
        #[expect(clippy::cast_precision_loss, reason = "nobody tries a pod 2^52 times")]
        shared.metrics.pod_scheduling_attempts().observe(attempts as f64);
        if let Some(first) = self.queued.initial_attempt_timestamp {
            shared.metrics.pod_scheduling_sli_duration(attempts).observe(now.seconds_since(first));
        }
        tracing::debug!(pod = &**pod.key(), node = &*node, "Successfully bound pod to node");
        let cx = BindContext { pod: &pod, node: &node, state: &self.state };
        self.framework.run_post_bind(cx).instrument(tracing::debug_span!("PostBind")).await;
        shared.activate(&self.pods_to_activate, shared.clock.now());
    }

    /// Handles a failure of the binding cycle. The pod's place on the node is free again, which may help other pods. If the pod
    /// was rejected, the event about its free place must not requeue the pod itself.
    /// Follows `pkg/scheduler/schedule_one.go#handleBindingCycleError @v1.36.3`.
    async fn fail(self, failure: Failure) {
        let Self { shared, framework, state, reservation, queued, started, .. } = self;
        let pod = reservation.pod().clone();
        shared.waiting_pods.remove(pod.uid());
        let unwound = reservation.unwind(&state);
        let forgotten = unwound.forgotten.is_ok();
        if forgotten && !failure.is_rejection() {
            shared.pod_left(&pod, None);
        }
        let now = shared.clock.now();
        shared.handle_failure(&framework, queued, &failure, NominatingInfo::Override(String::new()), started, now);
        if forgotten && failure.is_rejection() {
            let others = |other: &PodInfo| other.uid() != pod.uid();
            shared.pod_left(&pod, Some(&others));
        }
        for write in unwound.writes {
            write.await;
        }
    }
}

impl SchedulerContext {
    /// Notifies the queue that an assumed pod left its node. `which` restricts the pods that may be requeued.
    fn pod_left(&self, pod: &Arc<PodInfo>, which: Option<&PreCheck<'_>>) {
        let objects = EventObjects::of_pods(Some(pod.pod()), None);
        self.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &objects, self.clock.now(), which);
    }

    /// Moves the pods that plugins named to activeQ.
    pub(super) fn activate(&self, pods: &PodsToActivate, now: crate::clock::Now) {
        let pods = pods.take();
        if !pods.is_empty() {
            self.queue.activate_at(&pods, now);
        }
    }
}
