//! The scheduling queue: which pod is tried next, and when one that failed is tried again.
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
//! A queued pod is in exactly one of activeQ, podBackoffQ, podErrorBackoffQ and unschedulablePods. Being in flight, from
//! `pop` to `done`, is apart from that. Events that arrive while a pod is in flight are kept, and looked at when it comes back.
//!
//! - One lock guards it all but the nominator, which has its own. Under it run `PreEnqueue`, hints and `Less` of plugins,
//!   which therefore must not call back; nothing under it blocks.
//! - Time is an argument. The clock of the profiles' handle is read for durations in metrics, and by
//!   [`Activator::activate`], whose callers have no time to give.
//! - An event looks only at the pods that it could help: pods in unschedulablePods are grouped by profile, gate and
//!   rejecting plugins.
//! - Where upstream iterates over a map, pods go in order of arrival, plugins in order of their names.
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

/// Says of a pod in unschedulablePods whether an event may matter to it at all.
pub type PreCheck<'a> = dyn Fn(&PodInfo) -> bool + 'a;

/// Where a queued pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// activeQ: to be tried next.
    Active,
    /// podBackoffQ: waits until its backoff after a rejection is over.
    Backoff,
    /// podErrorBackoffQ: waits until its backoff after an error is over.
    ErrorBackoff,
    /// unschedulablePods: waits for an event, or for its gate to open.
    Unschedulable,
}

/// A pod came back from an attempt although it was queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Pod {pod} is already present in {}", match place {
    Place::Active => "the active queue",
    Place::Backoff | Place::ErrorBackoff => "the backoff queue",
    Place::Unschedulable => "unschedulable queue",
})]
pub struct AlreadyQueued {
    /// `namespace/name`.
    pub pod: Arc<str>,
    /// Where it is.
    pub place: Place,
}

/// What the configuration says about the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// The backoff after the first failure; doubled with each.
    pub initial_backoff: Duration,
    /// The longest backoff; zero for none at all.
    pub max_backoff: Duration,
    /// How long a pod stays in unschedulablePods without any event that helps it.
    pub max_in_unschedulable: Duration,
    /// Whether there are extenders, which can reject pods and do not say what would help.
    pub extenders: bool,
}

/// The scheduling queue. Shared by `Arc`.
pub struct Queue {
    /// Guards everything but the nominator.
    state: Mutex<State>,
    /// Tells whoever waits in [`Queue::pop_blocking`] of changes.
    changed: Condvar,
    nominator: Arc<PodNominator>,
    clock: Clock,
}

impl Place {
    /// All places.
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
    /// An empty queue for these profiles, of which there is at least one; the first one's plugin orders activeQ for all. Gates,
    /// metrics and listers are those of their handles. Fails if a plugin cannot say which events it wants.
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

    /// Starts the timers: to be called once this scheduler leads. Until then [`Queue::flush`] does nothing.
    pub fn run(&self, now: Now) {
        self.with(|state| {
            state.timers.get_or_insert(Timers::new(&state.backoff, now.mono));
            state.changed = true;
        });
    }

    /// A pod without a node came.
    pub fn add(&self, pod: Arc<PodInfo>, now: Now) {
        self.with(|state| state.add(pod, now.mono));
    }

    /// A pod without a node changed from `old`; `events` are what [`pod_events`] says of that.
    pub fn update(&self, old: &Arc<Pod>, new: &Arc<PodInfo>, events: &[ClusterEvent], now: Now) {
        self.with(|state| state.update(old, new, events, now.mono));
    }

    /// A pod went, or was bound.
    pub fn delete(&self, pod: &Pod) {
        self.with(|state| state.delete(pod));
    }

    /// Moves these pods (`namespace/name`) to activeQ if they wait elsewhere; one that is in flight is tried again if its
    /// attempt fails, and others are ignored.
    pub fn activate_at(&self, pods: &[String], now: Now) {
        self.with(|state| state.activate_all(pods, now.mono));
    }

    /// Something happened: moves the pods to which `pre_check` says that it may matter, and which it may help. It is kept for
    /// pods in flight.
    pub fn move_all(&self, event: &ClusterEvent, objects: &EventObjects, now: Now, pre_check: Option<&PreCheck<'_>>) {
        self.with(|state| state.move_all(event, objects, pre_check, now.mono));
    }

    /// A pod with a node came. With `SchedulerQueueingHints` it is an event like any other; without, it moves only pods that
    /// spread over topologies or have affinity to it.
    pub fn assigned_pod_added(&self, pod: &Arc<Pod>, now: Now) {
        self.with(|state| state.assigned_pod_added(pod, now.mono));
    }

    /// A pod with a node changed; `event` is one of its changes, as [`pod_events`] finds them.
    pub fn assigned_pod_updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, event: &ClusterEvent, now: Now) {
        self.with(|state| state.assigned_pod_updated(old, new, event, now.mono));
    }

    /// Takes back a pod whose attempt failed. It is not in flight any more in any case.
    pub fn add_unschedulable_if_not_present(&self, info: QueuedPodInfo, now: Now) -> Result<(), AlreadyQueued> {
        self.with(|state| {
            let uid = info.pod.uid().to_owned();
            let result = state.add_unschedulable(info, now.mono);
            state.in_flight.done(&uid);
            result
        })
    }

    /// Runs the timers that are due, and takes the pod that is to be tried next, if there is one. It is in flight from now on.
    pub fn try_pop(&self, now: Now) -> Option<QueuedPodInfo> {
        self.with(|state| {
            state.flush(now.mono);
            state.pop()
        })
    }

    /// Waits for the pod that is to be tried next, and runs the timers meanwhile. None once the queue is closed. For one
    /// thread, and a clock that moves by itself.
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

    /// Pops one particular pod (`namespace/name`), wherever it waits. None if it is not queued, or gated.
    pub fn pop_specific(&self, pod: &str, now: Now) -> Option<QueuedPodInfo> {
        self.with(|state| state.pop_specific(pod, now.mono))
    }

    /// The pod with this UID is not in flight any more; nothing happens if it was not. To be called for each popped pod that is
    /// not taken back.
    pub fn done(&self, uid: &str) {
        self.with(|state| state.in_flight.done(uid));
    }

    /// How many pods were popped so far.
    pub fn scheduling_cycle(&self) -> i64 {
        self.lock().scheduling_cycle
    }

    /// Runs the timers that are due: pods whose backoff is over, and pods that have been in unschedulablePods for too long.
    pub fn flush(&self, now: Now) {
        self.with(|state| state.flush(now.mono));
    }

    /// When [`Queue::flush`] will have something to move; in the past if it has already. None if it never will unless something
    /// else happens first.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.lock().next_deadline()
    }

    /// Ends [`Queue::pop_blocking`], and forgets the pods in flight.
    pub fn close(&self) {
        self.with(|state| {
            state.in_flight.clear();
            state.closed = true;
            state.changed = true;
        });
    }

    /// Holds nodes for pods.
    pub fn nominator(&self) -> &Arc<PodNominator> {
        &self.nominator
    }

    /// The kinds of objects that some plugin wants to hear of, and which actions on them.
    pub fn registered_events(&self) -> BTreeMap<EventResource, ActionType> {
        self.lock().events.registered()
    }

    /// Does something under the lock, and wakes whoever waits to pop if that matters to it.
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
