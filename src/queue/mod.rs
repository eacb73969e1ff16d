//! The scheduling queue, which decides the next pod to schedule and when to retry pods that failed.
//!
//! ```text
//!              ┌─────────── add, update ───────────┐ gated by PreEnqueue
//!              ▼                                   ▼
//!  pop ◀──  activeQ ◀── backoff is over ──┐  unschedulablePods
//!   │          ▲ ▲                        │   │ │        ▲
//!   │          │ └── event helps, or activate ┘ │ event helps, backoff is not over
//!   │          │        podBackoffQ, podErrorBackoffQ ◀┘ │
//!   ▼          │                 ▲                       │
//!  in flight ──┴─────────────────┴── attempt failed ─────┘──▶ done
//! ```
//!
//! A queued pod is in exactly one of activeQ, podBackoffQ, podErrorBackoffQ and unschedulablePods. A pod is in flight from
//! `pop` to `done` and then in none of them. Events that arrive meanwhile are kept, and checked when the pod comes back.
//!
//! - One lock guards everything except the nominator, which has its own. `PreEnqueue`, hints and `Less` of plugins run under
//!   the lock, so they must not call the queue. Nothing blocks under the lock.
//! - Functions take the time as an argument. The clock of the profiles' handle is read only for durations in metrics and by
//!   [`Activator::activate`], whose callers pass no time.
//! - An event looks only at pods that it could help: unschedulablePods is grouped by profile, gate and rejecting plugins.
//! - Where upstream iterates over a map, pods are ordered by arrival and plugins by name.
//!
//! Follows `pkg/scheduler/backend/queue @v1.36.3`.

mod backoff;
mod cross_topology;
mod dump;
mod events;
mod gate;
mod heap;
mod hints;
mod in_flight;
mod info;
mod moves;
mod nominator;
mod plugin_set;
mod pods;
mod requeue;
mod state;
mod timers;
mod update;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use dump::{DumpedPod, QueueDump};
pub use events::{node_events, pod_events};
pub use hints::registrations;
pub use info::QueuedPodInfo;
pub use nominator::PodNominator;

use crate::clock::{Clock, Mono, Now};
use crate::framework::{Activator, Framework, PluginError};
use crate::k8s::Pod;
use crate::metrics::{IncomingQueue, PendingQueue};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};
use state::State;
use timers::Timers;

/// Decides whether an event may matter to a pod in unschedulablePods.
pub type PreCheck<'a> = dyn Fn(&PodInfo) -> bool + 'a;

/// Part of the queue that holds a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// activeQ: pods to be scheduled next.
    Active,
    /// podBackoffQ: pods that back off after a rejection.
    Backoff,
    /// podErrorBackoffQ: pods that back off after an error.
    ErrorBackoff,
    /// unschedulablePods: pods that wait for an event, or are gated.
    Unschedulable,
}

/// Error for a pod that comes back from an attempt although it is queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Pod {pod} is already present in {}", match place {
    Place::Active => "the active queue",
    Place::Backoff | Place::ErrorBackoff => "the backoff queue",
    Place::Unschedulable => "unschedulable queue",
})]
pub struct AlreadyQueued {
    /// Key of the pod: `namespace/name`.
    pub pod: Arc<str>,
    /// The place that holds the pod.
    pub place: Place,
}

/// Settings of the queue from the configuration.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// Backoff after the first failure. Each further failure doubles it.
    pub initial_backoff: Duration,
    /// Longest backoff of a pod. Zero turns backoffs off.
    pub max_backoff: Duration,
    /// Time after which a pod leaves unschedulablePods without an event.
    pub max_in_unschedulable: Duration,
    /// Whether there are extenders. They can reject pods but register no events.
    pub extenders: bool,
}

/// The scheduling queue of all profiles. Shared by `Arc`.
pub struct Queue {
    /// Guards everything but the nominator.
    state: Mutex<State>,
    /// Notifies the thread in [`Queue::pop_blocking`] of changes.
    changed: Condvar,
    nominator: Arc<PodNominator>,
    clock: Clock,
}

impl Place {
    /// All places of the queue.
    pub const ALL: [Self; 4] = [Self::Active, Self::Backoff, Self::ErrorBackoff, Self::Unschedulable];

    fn incoming(self) -> IncomingQueue {
        match self {
            Self::Active => IncomingQueue::Active,
            Self::Backoff | Self::ErrorBackoff => IncomingQueue::Backoff,
            Self::Unschedulable => IncomingQueue::Unschedulable,
        }
    }

    fn pending(self) -> PendingQueue {
        match self {
            Self::Active => PendingQueue::Active,
            Self::Backoff | Self::ErrorBackoff => PendingQueue::Backoff,
            Self::Unschedulable => PendingQueue::Unschedulable,
        }
    }
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            max_in_unschedulable: Duration::from_mins(5),
            extenders: false,
        }
    }
}

impl Queue {
    /// Creates an empty queue for at least one profile. The first profile's plugin orders activeQ. Feature gates, metrics,
    /// listers and the clock come from the first profile's handle. Fails if a plugin cannot register its events.
    ///
    /// # Panics
    /// Without a profile.
    pub fn new(profiles: &[Arc<Framework>], options: QueueOptions, now: Now) -> Result<Arc<Self>, PluginError> {
        let handle = profiles.first().expect("there is at least one profile").handle();
        let nominator = Arc::new(PodNominator::new(handle.lister()?));
        let clock = handle.clock().clone();
        let state = Mutex::new(State::new(profiles, options, now, nominator.clone())?);
        Ok(Arc::new(Self { state, changed: Condvar::new(), nominator, clock }))
    }

    /// Starts the queue's timers. Call this when this scheduler becomes the leader. Until then [`Queue::flush`] does nothing.
    pub fn run(&self, now: Now) {
        self.with(|state| {
            state.timers.get_or_insert(Timers::new(&state.backoff, now.mono));
            state.changed = true;
        });
    }

    /// Adds a new unassigned pod.
    pub fn add(&self, pod: Arc<PodInfo>, now: Now) {
        self.with(|state| state.add(pod, now.mono));
    }

    /// Updates an unassigned pod. `events` are the result of [`pod_events`].
    pub fn update(&self, old: &Arc<Pod>, new: &Arc<PodInfo>, events: &[ClusterEvent], now: Now) {
        self.with(|state| state.update(old, new, events, now.mono));
    }

    /// Removes a pod that was deleted or bound.
    pub fn delete(&self, pod: &Pod) {
        self.with(|state| state.delete(pod));
    }

    /// Moves these pods (`namespace/name`) to activeQ. A pod in flight is retried if its attempt fails. Unknown pods are ignored.
    pub fn activate_at(&self, pods: &[String], now: Now) {
        self.with(|state| state.activate_all(pods, now.mono));
    }

    /// Moves the pods that pass `pre_check` and that the event may help. The event is also kept for the pods in flight.
    pub fn move_all(&self, event: &ClusterEvent, objects: &EventObjects, now: Now, pre_check: Option<&PreCheck<'_>>) {
        self.with(|state| state.move_all(event, objects, pre_check, now.mono));
    }

    /// Moves the pods that a new assigned pod may help. With `SchedulerQueueingHints` this is an event like any other. Without
    /// it, only pods that `PodTopologySpread` rejected in the same namespace, or with a matching required affinity term, move.
    pub fn assigned_pod_added(&self, pod: &Arc<Pod>, now: Now) {
        self.with(|state| state.assigned_pod_added(pod, now.mono));
    }

    /// Moves the pods that a change of an assigned pod may help. `event` is one of the results of [`pod_events`].
    pub fn assigned_pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, event: &ClusterEvent, now: Now) {
        self.with(|state| state.assigned_pod_updated(old, new, event, now.mono));
    }

    /// Takes back a pod whose attempt failed. Fails if the pod is already queued. In both cases the pod is no longer in flight.
    pub fn add_unschedulable_if_not_present(&self, info: QueuedPodInfo, now: Now) -> Result<(), AlreadyQueued> {
        self.with(|state| {
            let uid = info.pod.uid().to_owned();
            let result = state.add_unschedulable(info, now.mono);
            state.in_flight.done(&uid);
            result
        })
    }

    /// Runs the timers that are due and pops the next pod, if there is one. The pod is then in flight.
    pub fn try_pop(&self, now: Now) -> Option<QueuedPodInfo> {
        self.with(|state| {
            state.flush(now.mono);
            state.pop()
        })
    }

    /// Waits for the next pod, and runs the timers while it waits. Returns `None` once the queue is closed. Only one thread may
    /// call this, and the clock must advance by itself.
    pub fn pop_blocking(&self, clock: &Clock) -> Option<QueuedPodInfo> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let now = clock.mono();
            state.flush(now);
            if let Some(info) = state.pop() {
                return Some(info);
            }
            (state.changed, state.waiting) = (false, true);
            state = match state.next_deadline() {
                Some(deadline) => {
                    let waited = self.changed.wait_timeout(state, deadline - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.waiting = false;
        }
    }

    /// Pops a certain pod (`namespace/name`) from any place. Returns `None` if the pod is not queued, or if it is gated.
    pub fn pop_specific(&self, pod: &str, now: Now) -> Option<QueuedPodInfo> {
        self.with(|state| state.pop_specific(pod, now.mono))
    }

    /// Marks a popped pod as no longer in flight. Call this for each popped pod that does not come back to the queue. Does
    /// nothing if the pod is not in flight.
    pub fn done(&self, uid: &str) {
        self.with(|state| state.in_flight.done(uid));
    }

    /// Returns the number of pods popped so far.
    pub fn scheduling_cycle(&self) -> i64 {
        self.lock().scheduling_cycle
    }

    /// Runs the timers that are due, which move pods after their backoff and pods that were in unschedulablePods for too long.
    pub fn flush(&self, now: Now) {
        self.with(|state| state.flush(now.mono));
    }

    /// Returns the next time at which [`Queue::flush`] has pods to move, which may be in the past. Returns `None` if no queued
    /// pod waits for a timer, or if the timers have not started.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.lock().next_deadline()
    }

    /// Ends [`Queue::pop_blocking`], and clears the pods in flight.
    pub fn close(&self) {
        self.with(|state| {
            state.in_flight.clear();
            state.closed = true;
            state.changed = true;
        });
    }

    /// Returns the nominator, which holds nominated nodes.
    pub fn nominator(&self) -> &Arc<PodNominator> {
        &self.nominator
    }

    /// Returns the union of the actions that plugins registered for, by resource.
    pub fn registered_events(&self) -> BTreeMap<EventResource, ActionType> {
        self.lock().events.registered()
    }

    /// Runs a function under the lock. Wakes the thread that waits to pop if the function changed something that matters to it.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = act(&mut state);
        if std::mem::take(&mut state.changed) && state.waiting {
            self.changed.notify_one();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Activator for Queue {
    fn activate(&self, pods: &[String]) {
        self.activate_at(pods, self.clock.now());
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

#[cfg(test)]
mod tests;
