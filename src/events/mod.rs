//! Events about pods and other objects. Recording never waits: one task writes the events.
//!
//! ```text
//!  EventRecorder (one a profile) ──record──▶ queue of 1000 ──▶ EventTask ──▶ POST, PATCH
//!        └─ drops when the queue is full            repetitions of an event become a series
//! ```
//!
//! Events are written to events.k8s.io/v1. They are written to core/v1, which counts repetitions differently, if the server does
//! not have events.k8s.io/v1, and for leader election. Recording never blocks a caller, and no scheduling decision depends on
//! an event: an event may be lost.

mod core;
mod correlate;
mod event;
mod note;
mod once;
mod series;
mod sink;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use self::core::CoreTask;
use crate::client::{Call, RestClient, Target};
use crate::clock::Rng;
use crate::k8s::Pod;
use event::{Event, event_name};
pub use event::{EventNote, EventType, ObjectRef};
pub use note::{truncate, without_arguments};
use series::{Queued, SeriesTask};
use sink::Sink;

/// Capacity of the queue in front of the task, in events.
/// Follows `client-go/tools/events/event_broadcaster.go#maxQueuedEvents @v1.36.3`.
const MAX_QUEUED: usize = 1000;

/// API group of the newer events API.
const EVENTS_GROUP: &str = "events.k8s.io";

/// The API version that events are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventsApi {
    /// The newer API, events.k8s.io/v1.
    EventsV1,
    /// The older API, core/v1.
    CoreV1,
}

/// Creates recorders that share a queue and a task. Cheap to clone.
#[derive(Clone)]
pub struct EventBroadcaster {
    state: Arc<BroadcasterState>,
    queue: mpsc::Sender<Queued>,
}

/// Records the events of one reporting controller. Cheap to clone. Recording never waits.
#[derive(Clone)]
pub struct EventRecorder {
    broadcaster: EventBroadcaster,
    controller: Arc<str>,
    instance: Arc<str>,
}

/// Writes the recorded events. The owner calls [`EventTask::run`] in a task and observes the end of that task.
#[must_use = "events are written only while this runs"]
pub struct EventTask(Task);

enum Task {
    Series(SeriesTask),
    Core(CoreTask),
}

/// State that a broadcaster shares with its recorders.
struct BroadcasterState {
    sink: Arc<Sink>,
    hostname: String,
    /// Nanoseconds in the name of the last event. Each name gets a larger number, even while a simulated clock stands still.
    last_name: AtomicU64,
}

impl EventsApi {
    /// Asks the server once whether it has events.k8s.io/v1. Any failure counts as "no".
    /// Follows `client-go/tools/events/event_broadcaster.go#NewEventBroadcasterAdapterWithContext @v1.36.3`.
    pub async fn discover(rest: &RestClient) -> Self {
        let target = Target { group: EVENTS_GROUP, version: "v1", ..Target::default() };
        match rest.send(&Call::Get, &target).await {
            Ok(_) => Self::EventsV1,
            Err(error) => {
                tracing::debug!(%error, "events.k8s.io/v1 is not available, writing events to core/v1");
                Self::CoreV1
            }
        }
    }
}

impl EventBroadcaster {
    /// Creates a broadcaster and its task. `hostname` becomes part of each event's reporting instance. `rng` draws the jitter of
    /// retries, and random event names for objects whose name is not valid in an event's name.
    pub fn new(rest: RestClient, api: EventsApi, hostname: &str, rng: Rng) -> (Self, EventTask) {
        let group = if api == EventsApi::EventsV1 { EVENTS_GROUP } else { "" };
        let sink = Arc::new(Sink::new(rest, group, rng));
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        let task = match api {
            EventsApi::EventsV1 => Task::Series(SeriesTask::new(Arc::clone(&sink), receiver)),
            EventsApi::CoreV1 => Task::Core(CoreTask::new(Arc::clone(&sink), receiver)),
        };
        let state = Arc::new(BroadcasterState { sink, hostname: hostname.to_owned(), last_name: AtomicU64::new(0) });
        (Self { state, queue: sender }, EventTask(task))
    }

    /// Creates a recorder for a reporting controller, such as the scheduler name of a profile.
    pub fn recorder(&self, controller: &str) -> EventRecorder {
        let instance = format!("{controller}-{}", self.state.hostname).into();
        EventRecorder { broadcaster: self.clone(), controller: controller.into(), instance }
    }

    /// Counts the events that are queued or being written, including retries. A series is written a last time minutes after its
    /// last repetition. This write counts only once it is due.
    pub fn pending(&self) -> usize {
        self.state.sink.pending()
    }
}

impl EventTask {
    /// Writes events until every broadcaster and recorder is dropped and the last event is written or given up. If the server is
    /// unreachable, an event is given up after about two minutes. To stop earlier, drop the future.
    pub async fn run(self) {
        match self.0 {
            Task::Series(task) => task.run().await,
            Task::Core(task) => task.run().await,
        }
    }
}

impl EventRecorder {
    /// Records an event, or drops it if the queue is full.
    /// Follows `client-go/tools/events/event_recorder.go#makeEvent @v1.36.3`.
    pub fn record(&self, regarding: ObjectRef, related: Option<ObjectRef>, note: EventNote) {
        let BroadcasterState { sink, last_name, .. } = &*self.broadcaster.state;
        let time = sink.rest.clock().now().wall;
        let now = u64::try_from(time.as_nanosecond()).unwrap_or(0);
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = last_name.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last))).unwrap_or(0);
        let name = event_name(&regarding.name, next(last), || sink.split_rng());
        let (controller, instance) = (Arc::clone(&self.controller), Arc::clone(&self.instance));
        let event = Event { name, time, controller, instance, regarding, related, note };
        if let Err(error) = self.broadcaster.queue.try_send((event, sink.ticket())) {
            tracing::error!(%error, "Unable to record event: too many queued events, dropped event");
        }
    }

    /// Records that a pod was bound. Follows `pkg/scheduler/schedule_one.go#finishBinding @v1.36.3`.
    pub fn scheduled(&self, pod: &Pod, node: &str) {
        let text = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name());
        self.record(ObjectRef::pod(pod), None, normal("Scheduled", "Binding", text));
    }

    /// Records that a pod could not be scheduled. As upstream, truncates the message to the maximum length of a note and then
    /// formats it like `fmt.Sprintf`, without arguments.
    /// Follows `pkg/scheduler/schedule_one.go#handleSchedulingFailure @v1.36.3`.
    pub fn failed_scheduling(&self, pod: &Pod, message: &str) {
        let note = without_arguments(&truncate(message)).into_owned();
        self.record(ObjectRef::pod(pod), None, failed(note));
    }

    /// Records that a pod is not scheduled because it is being deleted.
    /// Follows `pkg/scheduler/schedule_one.go#skipPodSchedule @v1.36.3`.
    pub fn skipped_deleting(&self, pod: &Pod) {
        let note = format!("skip schedule deleting pod: {}/{}", pod.namespace(), pod.name());
        self.record(ObjectRef::pod(pod), None, failed(note));
    }

    /// Records that a victim was preempted on a node. `in_memory` is true for a victim that was still being bound and was
    /// rejected instead of deleted. The event has no reference to the preemptor: upstream tries to set it and fails silently.
    /// Follows `pkg/scheduler/framework/preemption/executor.go#NewExecutor @v1.36.3`.
    pub fn preempted(&self, victim: &Pod, preemptor_uid: &str, node: &str, in_memory: bool) {
        let mut text = format!("Preempted by pod {preemptor_uid} on node {node}");
        if in_memory {
            text.push_str(" (in kube-scheduler memory).");
        }
        let text = without_arguments(&text).into_owned();
        self.record(ObjectRef::pod(victim), None, normal("Preempted", "Preempting", text));
    }
}

fn normal(reason: &'static str, action: &'static str, note: String) -> EventNote {
    EventNote { kind: EventType::Normal, reason: Cow::Borrowed(reason), action: Cow::Borrowed(action), note }
}

fn failed(note: String) -> EventNote {
    let (reason, action) = (Cow::Borrowed("FailedScheduling"), Cow::Borrowed("Scheduling"));
    EventNote { kind: EventType::Warning, reason, action, note }
}
