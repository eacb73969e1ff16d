//! State guarded by the queue's lock, and the moves of pods between the places of the queue.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use prometheus::IntGauge;

use super::backoff::Backoff;
use super::gate::PreEnqueue;
use super::hints::{EventPlan, EventTable};
use super::in_flight::InFlight;
use super::plugin_set::{PluginId, PluginNames};
use super::pods::{EventClass, Pods, Slot, Sorting};
use super::timers::Timers;
use super::{Place, PodNominator, QueueOptions, QueuedPodInfo};
use crate::clock::{Clock, Mono, Now};
use crate::config::Gate;
use crate::framework::{Framework, NominatingInfo, Nominator, PluginError};
use crate::listers::Lister;
use crate::metrics::{IncomingQueue, Metrics, PendingQueue, Recorder};
use crate::model::{ClusterEvent, PodInfo};

/// Modes of the queue that feature gates switch.
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each named after a gate")]
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueModes {
    /// `SchedulerQueueingHints`: hints of plugins decide which events help, and events are kept for pods in flight.
    pub(super) hints: bool,
    /// `SchedulerPopFromBackoffQ`: podBackoffQ is popped from when activeQ is empty.
    pub(super) pop_from_backoff: bool,
    /// `GenericWorkload`: members of pod groups are retried after their backoff, regardless of events.
    pub(super) groups: bool,
    /// `OpportunisticBatching`: pods are signed, so that pods with the same signature can share scheduling results.
    pub(super) sign: bool,
}

/// Plans of the events that the queue itself causes.
pub(super) struct OwnEvents {
    pub(super) pod_add: Arc<EventPlan>,
    pub(super) pod_update: Arc<EventPlan>,
    pub(super) attempt_failure: Arc<EventPlan>,
    pub(super) backoff_complete: Arc<EventPlan>,
    pub(super) pop_from_backoff: Arc<EventPlan>,
    pub(super) force_activate: Arc<EventPlan>,
    pub(super) timeout: Arc<EventPlan>,
}

/// Place of a pod before a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The pod was not in the queue: it is new, comes back from an attempt, or has already left unschedulablePods.
    Outside,
    /// The pod was in unschedulablePods. If it returns there, it is not counted as incoming.
    Unschedulable,
    /// The pod was in a backoff queue. With `SchedulerPopFromBackoffQ` it has already passed `PreEnqueue`.
    Backoff,
}

/// State guarded by the queue's lock. All functions run under this lock. The only other locks that they take are those of the
/// nominator and of the listers.
pub(super) struct State {
    pub(super) modes: QueueModes,
    pub(super) backoff: Backoff,
    pub(super) max_in_unschedulable: Duration,
    pub(super) profiles: Vec<Arc<Framework>>,
    profiles_by_name: HashMap<Arc<str>, usize>,
    pub(super) pre_enqueue: PreEnqueue,
    pub(super) names: PluginNames,
    pub(super) events: EventTable,
    pub(super) own: OwnEvents,
    pub(super) pods: Pods,
    pub(super) in_flight: InFlight,
    pub(super) nominator: Arc<PodNominator>,
    pub(super) namespaces: Lister<Namespace>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) recorder: Recorder,
    /// Clock for durations in metrics only.
    pub(super) clock: Clock,
    rejected: BTreeMap<(PluginId, Option<usize>), IntGauge>,
    /// Number of pods popped so far.
    pub(super) scheduling_cycle: i64,
    /// The scheduling cycle of the last move request. Used only with hints off.
    pub(super) move_request_cycle: i64,
    pub(super) timers: Option<Timers>,
    pub(super) closed: bool,
    /// Whether something changed that matters to the thread that waits to pop.
    pub(super) changed: bool,
    /// Whether a thread waits to pop.
    pub(super) waiting: bool,
    sequence: u64,
}

impl State {
    /// Creates an empty state. Fails if a plugin cannot register its events.
    pub(super) fn new(
        profiles: &[Arc<Framework>],
        options: QueueOptions,
        now: Now,
        nominator: Arc<PodNominator>,
    ) -> Result<Self, PluginError> {
        let handle = profiles.first().expect("there is at least one profile").handle();
        let gates = *handle.gates();
        let metrics = handle.metrics().clone();
        let modes = QueueModes {
            hints: gates.enabled(Gate::SchedulerQueueingHints),
            pop_from_backoff: gates.enabled(Gate::SchedulerPopFromBackoffQ),
            groups: gates.enabled(Gate::GenericWorkload),
            sign: gates.enabled(Gate::OpportunisticBatching),
        };
        let mut names = PluginNames::default();
        let mut events = EventTable::new(profiles, options.extenders, &mut names, metrics.clone())?;
        let own = OwnEvents::new(&mut events, &names);
        let sorting = Sorting { plugin: profiles[0].queue_sort().clone(), windows: modes.pop_from_backoff };
        Ok(Self {
            modes,
            backoff: Backoff::new(options.initial_backoff, options.max_backoff, modes.pop_from_backoff, now),
            max_in_unschedulable: options.max_in_unschedulable,
            profiles: profiles.to_vec(),
            profiles_by_name: profiles.iter().enumerate().map(|(at, profile)| (profile.name().clone(), at)).collect(),
            pre_enqueue: PreEnqueue::new(profiles, &metrics),
            names,
            events,
            own,
            pods: Pods::new(sorting),
            in_flight: InFlight::new(metrics.clone()),
            nominator,
            namespaces: handle.lister()?,
            recorder: metrics.recorder(),
            metrics,
            clock: handle.clock().clone(),
            rejected: BTreeMap::new(),
            scheduling_cycle: 0,
            move_request_cycle: -1,
            timers: None,
            closed: false,
            changed: false,
            waiting: false,
            sequence: 0,
        })
    }

    /// Returns the index of the pod's profile.
    pub(super) fn profile_of(&self, pod: &PodInfo) -> Option<usize> {
        self.profiles_by_name.get(pod.pod().scheduler_name()).copied()
    }

    /// Returns the next arrival number.
    pub(super) fn next_order(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Creates the info of a pod that is new to the queue.
    pub(super) fn new_info(&mut self, pod: Arc<PodInfo>, now: Mono) -> QueuedPodInfo {
        let mut info = QueuedPodInfo::new(pod, now);
        info.order = self.next_order();
        info.signature = self.sign(&info.pod);
        info
    }

    /// Signs a pod if batching is on.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.signPod @v1.36.3`.
    pub(super) fn sign(&self, pod: &PodInfo) -> Option<Arc<str>> {
        if !self.modes.sign {
            return None;
        }
        self.profiles[self.profile_of(pod)?].sign_pod(pod).map(Arc::from)
    }

    /// Returns the class of the pod in unschedulablePods.
    pub(super) fn class_of(&mut self, info: &QueuedPodInfo) -> EventClass {
        EventClass {
            profile: self.profile_of(&info.pod),
            gating: info.gating_plugin.as_ref().map(|plugin| self.names.intern(plugin)),
            rejectors: info.rejector_plugins().map(|plugin| self.names.intern(plugin)).collect(),
        }
    }

    /// Inserts a pod, which must not be queued, into `place`. If `event` is given, the metric of incoming pods counts the pod
    /// under this event.
    fn put(&mut self, info: QueuedPodInfo, place: Place, event: Option<&EventPlan>) {
        let class = self.class_of(&info);
        self.gauge(&info, &class, place, 1);
        if let Some(event) = event {
            event.count_incoming(place.incoming(), &self.metrics);
            tracing::trace!(
                pod = &**info.pod.key(),
                event = &*event.label,
                ?place,
                "Pod moved to an internal scheduling queue"
            );
        }
        self.pods.insert(info, class, place, &self.backoff);
        self.changed = true;
    }

    /// Removes a pod from the queue.
    pub(super) fn take(&mut self, slot: Slot) -> QueuedPodInfo {
        let record = self.pods.remove(slot);
        self.gauge(&record.info, &record.class, record.place(), -1);
        record.info
    }

    /// Adds `by` to the gauges of pending and unschedulable pods. A pod counts once in its place and once for each rejecting
    /// plugin.
    fn gauge(&mut self, info: &QueuedPodInfo, class: &EventClass, place: Place, by: i64) {
        let queue =
            if place == Place::Unschedulable && info.is_gated() { PendingQueue::Gated } else { place.pending() };
        self.metrics.pending_pods(queue).add(by);
        for plugin in class.rejectors.iter() {
            let name = self.names.name(plugin);
            let metrics = &self.metrics;
            match class.profile {
                Some(_) => self
                    .rejected
                    .entry((plugin, class.profile))
                    .or_insert_with(|| metrics.unschedulable_pods(name, info.pod.pod().scheduler_name()))
                    .add(by),
                None => metrics.unschedulable_pods(name, info.pod.pod().scheduler_name()).add(by),
            }
        }
    }

    /// Moves a pod that is not in the queue to activeQ, or to unschedulablePods if a plugin gates it. Returns whether it is
    /// in activeQ. A queued pod of the same name is replaced, unless the new pod is gated and the queued pod is not in
    /// unschedulablePods. In that case the new pod is dropped.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.moveToActiveQ @v1.36.3`.
    pub(super) fn move_to_active(
        &mut self,
        mut info: QueuedPodInfo,
        event: &EventPlan,
        origin: Origin,
        now: Mono,
    ) -> bool {
        if !(self.modes.pop_from_backoff && origin == Origin::Backoff) {
            self.run_pre_enqueue(&mut info);
        }
        if info.is_gated() {
            self.put_back(info, event, origin);
            return false;
        }
        info.initial_attempt_timestamp.get_or_insert(now);
        self.evict(&info);
        let nominate = (event.event == ClusterEvent::UNSCHEDULED_POD_ADD
            || event.event == ClusterEvent::UNSCHEDULED_POD_UPDATE)
            .then(|| info.pod.clone());
        self.put(info, Place::Active, Some(event));
        if let Some(pod) = nominate {
            self.nominator.add_nominated_pod(&pod, &NominatingInfo::Keep);
        }
        true
    }

    /// Moves a pod that is not in the queue to its backoff queue, or to unschedulablePods if a plugin gates it. Returns
    /// whether it is in a backoff queue.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.moveToBackoffQ @v1.36.3`.
    pub(super) fn move_to_backoff(&mut self, mut info: QueuedPodInfo, event: &EventPlan, origin: Origin) -> bool {
        if self.modes.pop_from_backoff {
            self.run_pre_enqueue(&mut info);
            if info.is_gated() {
                self.put_back(info, event, origin);
                return false;
            }
        }
        self.evict(&info);
        let place = if info.has_no_rejector() { Place::ErrorBackoff } else { Place::Backoff };
        self.put(info, place, Some(event));
        true
    }

    /// Moves a pod that is not in the queue to unschedulablePods. The pod counts as incoming unless it comes from
    /// unschedulablePods or replaces a pod of the same name there. Does nothing if a pod of the same name is in another place.
    pub(super) fn put_back(&mut self, info: QueuedPodInfo, event: &EventPlan, origin: Origin) {
        let mut counts = origin != Origin::Unschedulable;
        if let Some(slot) = self.pods.find(info.pod.key()) {
            if self.pods.get(slot).place() != Place::Unschedulable {
                return;
            }
            self.take(slot);
            counts = false;
        }
        self.put(info, Place::Unschedulable, counts.then_some(event));
    }

    /// Removes the queued pod with the same namespace and name, if there is one.
    fn evict(&mut self, info: &QueuedPodInfo) {
        if let Some(slot) = self.pods.find(info.pod.key()) {
            self.take(slot);
        }
    }

    /// Pops the first pod of activeQ and marks it as in flight. If activeQ is empty and `SchedulerPopFromBackoffQ` is on, pops
    /// the first pod of podBackoffQ instead.
    /// Follows `pkg/scheduler/backend/queue/active_queue.go#activeQueue.unlockedPop @v1.36.3`.
    pub(super) fn pop(&mut self) -> Option<QueuedPodInfo> {
        loop {
            let slot = match self.pods.first(Place::Active) {
                Some(slot) => slot,
                None if self.modes.pop_from_backoff => {
                    let slot = self.pods.first(Place::Backoff)?;
                    self.own.pop_from_backoff.count_incoming(IncomingQueue::Active, &self.metrics);
                    slot
                }
                None => return None,
            };
            let mut info = self.take(slot);
            if self.mark_in_flight(&mut info) {
                return Some(info);
            }
        }
    }

    /// Counts an attempt and marks the pod as in flight. Returns false if the pod is in flight already and has to be dropped.
    /// With hints off, the queue does not track the pods in flight, and the result is always true.
    /// Follows `pkg/scheduler/backend/queue/active_queue.go#activeQueue.unlockedMovePodToInFlight @v1.36.3`.
    pub(super) fn mark_in_flight(&mut self, info: &mut QueuedPodInfo) -> bool {
        info.attempts += 1;
        if self.modes.hints && !self.in_flight.insert(&info.pod) {
            tracing::error!(
                pod = &**info.pod.key(),
                "Discarding the popped pod: the same pod is tracked in multiple places in the scheduler"
            );
            return false;
        }
        self.scheduling_cycle += 1;
        true
    }
}

impl OwnEvents {
    fn new(events: &mut EventTable, names: &PluginNames) -> Self {
        let mut plan = |event: ClusterEvent| events.plan(&event, names);
        Self {
            pod_add: plan(ClusterEvent::UNSCHEDULED_POD_ADD),
            pod_update: plan(ClusterEvent::UNSCHEDULED_POD_UPDATE),
            attempt_failure: plan(ClusterEvent::SCHEDULE_ATTEMPT_FAILURE),
            backoff_complete: plan(ClusterEvent::BACKOFF_COMPLETE),
            pop_from_backoff: plan(ClusterEvent::POP_FROM_BACKOFF_Q),
            force_activate: plan(ClusterEvent::FORCE_ACTIVATE),
            timeout: plan(ClusterEvent::UNSCHEDULABLE_TIMEOUT),
        }
    }
}
