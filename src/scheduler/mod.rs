//! The scheduling cycle and the binding cycle, which take one pod from the head of the queue to its node.
//!
//! The scheduling thread, the simulator and the tests all run the same cycle. It is synchronous. It uses the network only to call
//! extenders, and to wait for the evictions of a synchronous preemption. Tasks make all writes to the API.

mod batch;
mod binding;
mod effects;
mod evaluate;
mod evaluation;
mod extender;
mod failure;
mod feasible;
mod filtering;
mod observer;
mod preempting;
mod reservation;
mod scoring;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::Instrument as _;

pub use effects::{ApiEffects, Spawn};
pub use evaluate::{evaluate, evaluate_filters, evaluate_then, feasible_nodes};
pub use evaluation::{Evaluation, NodeEvaluation, PreFilterEvaluation, ScoreEvaluation, StatusEvaluation};
pub use extender::{Extender, ExtenderFilter, Kept, Victims, WholeObjects};
pub use failure::Failure;

use batch::{Attempt, Batches};
use binding::BindingCycle;
use preempting::Preempting;
use reservation::Reservation;
use search::NodeSearch;

use crate::cache::Cache;
use crate::clock::{Clock, Now, Rng};
use crate::dispatcher::ApiWrites;
use crate::framework::{
    CycleContext, CycleState, Effects, Framework, NominatingInfo, Nominator, PermitRun, PluginError, PodEvent,
    PodsInPreBind, PodsToActivate, PostFilterContext, Scratch, WaitingPods,
};
use crate::k8s::{Node, Pod};
use crate::listers::{Lister, Listers};
use crate::metrics::{CacheKind, Metrics, PLUGIN_SAMPLE_PERCENT};
use crate::model::{LabelClasses, PodInfo, ResourceGates, Snapshot};
use crate::queue::{Queue, QueuedPodInfo};

/// State that all scheduling and binding cycles share.
pub struct SchedulerContext {
    /// Nodes and the pods on them, including assumed pods.
    pub cache: Arc<Cache>,
    /// Pods that wait to be scheduled.
    pub queue: Arc<Queue>,
    /// Stores of all kinds that plugins or the scheduler asked for.
    pub listers: Arc<Listers>,
    /// Pods of all schedulers that have not terminated.
    pub pods: Lister<Pod>,
    /// Lister of the nodes.
    pub nodes: Lister<Node>,
    /// Writes to the API about pods.
    pub writes: ApiWrites,
    /// Writer of bindings and events.
    pub effects: Arc<dyn Effects>,
    /// The scheduler's metric families.
    pub metrics: Arc<Metrics>,
    /// Clock of the scheduler.
    pub clock: Clock,
    /// Interned classes of pods with the same labels.
    pub classes: LabelClasses,
    /// The resources of a pod that count with the feature gates.
    pub resource_gates: ResourceGates,
    /// Pods that wait at `Permit`.
    pub waiting_pods: WaitingPods,
    /// Pods between `Permit` and `Bind`.
    pub pods_in_pre_bind: PodsInPreBind,
    /// Webhooks that take part in scheduling.
    pub extenders: Arc<[Arc<dyn Extender>]>,
    /// Spawns the binding cycles.
    pub tasks: Arc<dyn Spawn>,
    /// Whether the pod's `nominatedNodeName` is written before a slow binding: gate `NominatedNodeNameForExpectation`.
    pub nominates_expected_node: bool,
    /// Whether the results of one pod's evaluation are used for equal pods: gate `OpportunisticBatching`.
    pub batches: bool,
    /// Number of reservations that were dropped without being settled. Always 0 without a bug.
    pub bugs: AtomicUsize,
}

impl SchedulerContext {
    fn nominator(&self) -> &dyn Nominator {
        &**self.queue.nominator()
    }

    /// Updates the gauges of the cache's sizes and flushes the buffers of sampled durations. Called once a second.
    /// Follows `pkg/scheduler/backend/cache/cache.go#updateMetrics @v1.36.3`.
    pub fn observe_sizes(&self) {
        let counts = self.cache.counts();
        for (kind, count) in [
            (CacheKind::Nodes, counts.nodes),
            (CacheKind::Pods, counts.pods),
            (CacheKind::AssumedPods, counts.assumed_pods),
        ] {
            self.metrics.cache_size(kind).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.metrics.flush();
    }

    /// Records the event of a failed attempt.
    fn warn(&self, framework: &Framework, pod: &PodInfo, note: &str) {
        let event =
            PodEvent { regarding: pod.pod(), warning: true, reason: "FailedScheduling", action: "Scheduling", note };
        self.effects.record(framework.name(), event);
    }

    fn count_bug(&self) {
        self.bugs.fetch_add(1, Ordering::Relaxed);
    }
}

/// Schedules pods, one at a time. One thread owns the scheduler.
pub struct Scheduler {
    shared: Arc<SchedulerContext>,
    /// The profiles by schedulerName.
    profiles: BTreeMap<String, Arc<Framework>>,
    batches: Batches,
    extenders: Arc<[Arc<dyn Extender>]>,
    snapshot: Snapshot,
    /// Index of the node at which the next search starts. It moves on with each search, so that all nodes get the same chance.
    next_start_node_index: usize,
    percentage_of_nodes_to_score: i32,
    /// Random numbers for ties between nodes if extenders score, and for the node at which preemption starts.
    rng: Rng,
    /// Random numbers that select the attempts whose plugin calls are measured. Separate from `rng`, so that measuring changes
    /// no decision.
    sampling: Rng,
}

/// The node chosen for a pod.
struct Chosen {
    node: Arc<str>,
    /// Scratch slots that the filters filled for the node, by plugin.
    scratch: Vec<(usize, Scratch)>,
}

impl Scheduler {
    /// Creates a scheduler with these profiles. `rng` decides only between equal nodes and where preemption starts.
    pub fn new(
        shared: Arc<SchedulerContext>,
        profiles: impl IntoIterator<Item = Arc<Framework>>,
        percentage_of_nodes_to_score: i32,
        mut rng: Rng,
    ) -> Self {
        let profiles: BTreeMap<String, Arc<Framework>> =
            profiles.into_iter().map(|profile| (profile.name().to_string(), profile)).collect();
        let batching = profiles.keys().filter(|_| shared.batches);
        Self {
            extenders: shared.extenders.clone(),
            batches: Batches::new(batching.cloned()),
            profiles,
            snapshot: Snapshot::default(),
            next_start_node_index: 0,
            percentage_of_nodes_to_score,
            sampling: rng.split(),
            rng,
            shared,
        }
    }

    /// Pops the next pod from the queue, if there is one, and tries to schedule it. Returns whether there was a pod.
    /// Follows `pkg/scheduler/schedule_one.go#ScheduleOne @v1.36.3`.
    pub fn schedule_one(&mut self, now: Now) -> bool {
        let Some(queued) = self.shared.queue.try_pop(now) else { return false };
        self.schedule(queued, now);
        true
    }

    /// Schedules pods until the queue is closed.
    pub fn run(&mut self) {
        let clock = self.shared.clock.clone();
        while let Some(queued) = self.shared.queue.pop_blocking(&clock) {
            self.schedule(queued, clock.now());
        }
    }

    /// Finds the node to which the pod would go now, without assuming the pod. If there is no such node, returns the failure with
    /// the nomination by `PostFilter`. The snapshot is updated first. As after any attempt, the next search starts where this
    /// search ended.
    pub fn find_node(&mut self, pod: &Arc<PodInfo>, now: Now) -> Result<Arc<str>, (Failure, NominatingInfo)> {
        let Some(framework) = self.profiles.get(pod.pod().scheduler_name()).cloned() else {
            let name = pod.pod().scheduler_name();
            let error = PluginError::new(format!("profile not found for scheduler name {name:?}"));
            return Err((Failure::Error(error), NominatingInfo::Keep));
        };
        self.choose_node(&framework, pod, None, &mut CycleState::default(), now).map(|chosen| chosen.node)
    }

    /// Tries to schedule a popped pod. Follows `pkg/scheduler/schedule_one.go#scheduleOnePod @v1.36.3`.
    fn schedule(&mut self, queued: QueuedPodInfo, now: Now) {
        let pod = queued.pod.clone();
        let _span = tracing::debug_span!("schedule", pod = &**pod.key()).entered();
        let Some(framework) = self.profiles.get(pod.pod().scheduler_name()).cloned() else {
            let name = pod.pod().scheduler_name();
            tracing::error!(pod = &**pod.key(), "profile not found for scheduler name {name:?}");
            self.shared.queue.done(pod.uid());
            return;
        };
        if self.skips(&framework, &pod) {
            // The pod is not in the queue any more. The nominator keeps only the pod's name, until the pod is deleted.
            self.shared.queue.nominator().reduce(&pod, &self.shared.classes);
            self.shared.queue.done(pod.uid());
            return;
        }
        tracing::trace!(pod = &**pod.key(), "Attempting to schedule pod");
        let mut state = CycleState::default();
        state.record_plugin_metrics = self.sampling.chance(PLUGIN_SAMPLE_PERCENT, 100);
        let pods_to_activate = PodsToActivate::default();
        state.set(framework.handle().pods_to_activate(), pods_to_activate.clone());

        let chosen = match self.choose_node(&framework, &pod, queued.signature.as_ref(), &mut state, now) {
            Ok(chosen) => chosen,
            Err((failure, nominating)) => {
                let later = self.shared.clock.now();
                self.shared.handle_failure(&framework, queued, &failure, nominating, now.mono, later);
                return;
            }
        };
        match self.reserve(&framework, &pod, &mut state, chosen, now) {
            Ok(reservation) => {
                self.shared.activate(&pods_to_activate, now);
                let cycle = BindingCycle {
                    shared: self.shared.clone(),
                    framework,
                    state,
                    reservation,
                    queued,
                    started: now.mono,
                    pods_to_activate,
                };
                let span = tracing::debug_span!(parent: None, "bind", pod = &**pod.key());
                self.shared.tasks.spawn("binding", effects::task(cycle.run().instrument(span)));
            }
            Err(failure) => {
                let nominating = NominatingInfo::Override(String::new());
                let later = self.shared.clock.now();
                self.shared.handle_failure(&framework, queued, &failure, nominating, now.mono, later);
            }
        }
    }

    /// Whether the pod need not be scheduled any more, because it is terminating or already assumed.
    /// Follows `pkg/scheduler/schedule_one.go#skipPodSchedule @v1.36.3`.
    fn skips(&self, framework: &Framework, pod: &PodInfo) -> bool {
        if pod.pod().is_terminating() {
            let note = format!("skip schedule deleting pod: {}", pod.key());
            self.shared.warn(framework, pod, &note);
            return true;
        }
        self.shared.cache.is_assumed(pod.pod()).unwrap_or_else(|error| {
            tracing::error!(pod = &**pod.key(), %error, "Failed to check whether pod is assumed");
            false
        })
    }

    /// Chooses a node for the pod. If no node is feasible, runs `PostFilter`.
    /// Follows `pkg/scheduler/schedule_one.go#schedulingAlgorithm @v1.36.3`.
    fn choose_node(
        &mut self,
        framework: &Arc<Framework>,
        pod: &Arc<PodInfo>,
        signature: Option<&Arc<str>>,
        state: &mut CycleState,
        now: Now,
    ) -> Result<Chosen, (Failure, NominatingInfo)> {
        let clear = || NominatingInfo::Override(String::new());
        if let Err(error) = self.shared.cache.update_snapshot(&mut self.snapshot) {
            return Err((Failure::Error(PluginError::new(error.to_string())), clear()));
        }
        let snapshot = std::mem::take(&mut self.snapshot);
        let mut cx = CycleContext { pod, snapshot: &snapshot, state, now };
        let attempt = Attempt { cycle: self.shared.queue.scheduling_cycle(), signature };
        let outcome = match self.fit(framework, &mut cx, attempt) {
            Ok(chosen) => Ok(chosen),
            Err(Failure::Fit { mut diagnosis, num_all_nodes }) if framework.has_post_filter_plugins() => {
                let failed = PostFilterContext {
                    diagnosis: &diagnosis,
                    filters: &**framework,
                    extenders: &Preempting(&self.extenders),
                    random: self.rng.next_u64(),
                };
                let _span = tracing::debug_span!("PostFilter").entered();
                let run = framework.run_post_filter(&mut cx, &failed);
                diagnosis.post_filter_message = run.message;
                let nominating = run.nominated.map_or(NominatingInfo::Keep, NominatingInfo::Override);
                Err((Failure::Fit { diagnosis, num_all_nodes }, nominating))
            }
            Err(failure) => Err((failure, clear())),
        };
        self.snapshot = snapshot;
        self.shared.metrics.scheduling_algorithm_duration().observe(self.shared.clock.mono().seconds_since(now.mono));
        outcome
    }

    /// Searches for a node, and stores the outcome for the next equal pods.
    fn fit(
        &mut self,
        framework: &Framework,
        cx: &mut CycleContext<'_>,
        attempt: Attempt<'_>,
    ) -> Result<Chosen, Failure> {
        let Self { batches, extenders, next_start_node_index, rng, .. } = self;
        let own = framework.percentage_of_nodes_to_score();
        let mut search = NodeSearch {
            framework,
            extenders,
            percentage_of_nodes_to_score: own.unwrap_or(self.percentage_of_nodes_to_score),
            next_start_node_index,
            rng,
        };
        let mut choice = search.choose(cx, |cx| batches.hint(framework, cx, attempt), &mut ())?;
        batches.keep(framework, attempt, &mut choice);
        let node = choice.feasible.nodes()[choice.host].name_arc().clone();
        Ok(Chosen { node, scratch: choice.feasible.scratch.into_node(choice.host) })
    }

    /// Assumes the pod on its node, and runs `Reserve` and `Permit`.
    /// Follows `pkg/scheduler/schedule_one.go#prepareForBindingCycle @v1.36.3`.
    fn reserve(
        &self,
        framework: &Arc<Framework>,
        pod: &Arc<PodInfo>,
        state: &mut CycleState,
        chosen: Chosen,
        now: Now,
    ) -> Result<Reservation, Failure> {
        let Chosen { node, scratch } = chosen;
        let assumed = Arc::new(pod.assumed_on(&node));
        let reservation = Reservation::assume(&self.shared, framework, assumed.clone(), node.clone())
            .map_err(|error| Failure::Error(PluginError::new(error.to_string())))?;
        debug_assert_eq!(
            reservation.pod().pod().node_name().unwrap_or_default(),
            &*node,
            "an assumed pod names its node"
        );
        let _span = tracing::debug_span!("Reserve", node = &*node).entered();
        let mut cx = CycleContext { pod: &assumed, snapshot: &self.snapshot, state, now };
        let rejected = match framework.run_reserve(&mut cx, &node, &scratch) {
            Ok(None) => match framework.run_permit(&mut cx, &node) {
                Ok(PermitRun::Allow) => return Ok(reservation),
                Ok(PermitRun::Wait(timeouts)) => {
                    self.shared.waiting_pods.add(&assumed, timeouts, now.mono);
                    return Ok(reservation);
                }
                Ok(PermitRun::Reject(plugin, rejection)) => Failure::of_plugin(plugin, rejection),
                Err(error) => Failure::Error(error),
            },
            Ok(Some((plugin, rejection))) => Failure::of_plugin(plugin, rejection),
            Err(error) => Failure::Error(error),
        };
        let unwound = reservation.unwind(state);
        for write in unwound.writes {
            self.shared.tasks.spawn("unreserve", write);
        }
        Err(rejected)
    }
}
