//! Events about pods and other objects, recorded without waiting and written by one task.
//!
//! ```text
//!  EventRecorder (one a profile) ──record──▶ queue of 1000 ──▶ EventTask ──▶ POST, PATCH
//!        └─ drops when the queue is full            repetitions of an event become a series
//! ```
//!
//! Events go to events.k8s.io/v1; where the server does not have it, and for leader election, to core/v1, whose repetitions are
//! counted differently. Nothing here blocks a caller, and nothing here is needed for a decision: an event may be lost.

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
use crate::clock::Rng;
use crate::dispatcher::{Call, RestClient, Target};
use crate::k8s::Pod;
use event::{Event, event_name};
pub use event::{EventNote, EventType, ObjectRef};
pub use note::{truncate, without_arguments};
use series::{Queued, SeriesTask};
use sink::Sink;

/// Events that wait for the task. Follows `client-go/tools/events/event_broadcaster.go#maxQueuedEvents @v1.36.3`.
const MAX_QUEUED: usize = 1000;

/// The group of the newer events API.
const EVENTS_GROUP: &str = "events.k8s.io";

/// Which API events are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventsApi {
    /// events.k8s.io/v1.
    EventsV1,
    /// core/v1.
    CoreV1,
}

/// Makes recorders that share a queue and a task. Cheap to clone.
#[derive(Clone)]
pub struct EventBroadcaster {
    shared: Arc<BroadcasterState>,
    queue: mpsc::Sender<Queued>,
}

/// Records events of one reporting controller. Cheap to clone, and never waits.
#[derive(Clone)]
pub struct EventRecorder {
    broadcaster: EventBroadcaster,
    controller: Arc<str>,
    instance: Arc<str>,
}

/// Writes what the recorders record. Its owner runs it in a task and observes that task's end.
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
    /// The nanoseconds in the last event's name: names must differ even while a simulated clock stands still.
    last_name: AtomicU64,
}

impl EventsApi {
    /// Asks the server once whether it has events.k8s.io/v1; any failure means that it does not.
    /// Follows `client-go/tools/events/event_broadcaster.go#NewEventBroadcasterAdapterWithContext @v1.36.3`.
    pub async fn discover(rest: &RestClient) -> Self {
        let target = Target { group: EVENTS_GROUP, version: "v1", ..Target::default() };
        match rest.send(&Call::Get, &target).await {
            Ok(_) => Self::EventsV1,
            Err(error) => {
                tracing::debug!(%error, "events.k8s.io/v1 is missing; events go to core/v1");
                Self::CoreV1
            }
        }
    }
}

impl EventBroadcaster {
    /// A broadcaster and its task. `hostname` becomes part of each event's reporting instance; `rng` draws the jitter of retries
    /// and names for objects whose own name cannot be an event's.
    pub fn new(rest: RestClient, api: EventsApi, hostname: &str, rng: Rng) -> (Self, EventTask) {
        let group = if api == EventsApi::EventsV1 { EVENTS_GROUP } else { "" };
        let sink = Arc::new(Sink::new(rest, group, rng));
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        let task = match api {
            EventsApi::EventsV1 => Task::Series(SeriesTask::new(Arc::clone(&sink), receiver)),
            EventsApi::CoreV1 => Task::Core(CoreTask::new(Arc::clone(&sink), receiver)),
        };
        let shared = Arc::new(BroadcasterState { sink, hostname: hostname.to_owned(), last_name: AtomicU64::new(0) });
        (Self { shared, queue: sender }, EventTask(task))
    }

    /// A recorder for a profile's scheduler name, or another reporting controller.
    pub fn recorder(&self, controller: &str) -> EventRecorder {
        let instance = format!("{controller}-{}", self.shared.hostname).into();
        EventRecorder { broadcaster: self.clone(), controller: controller.into(), instance }
    }

    /// Events that are queued or being written, retries included: 0 means that all have been settled. What a series does
    /// minutes later is not counted before it is due.
    pub fn pending(&self) -> usize {
        self.shared.sink.pending()
    }
}

impl EventTask {
    /// Writes events until every broadcaster and recorder is gone and the last event has been settled. A server that cannot be
    /// reached can keep it for two minutes; an owner in a hurry drops it.
    pub async fn run(self) {
        match self.0 {
            Task::Series(task) => task.run().await,
            Task::Core(task) => task.run().await,
        }
    }
}

impl EventRecorder {
    /// Records an event. One that finds the queue full is dropped.
    /// Follows `client-go/tools/events/event_recorder.go#makeEvent @v1.36.3`.
    pub fn record(&self, regarding: ObjectRef, related: Option<ObjectRef>, said: EventNote) {
        let BroadcasterState { sink, last_name, .. } = &*self.broadcaster.shared;
        let time = sink.rest.clock().now().wall;
        let now = u64::try_from(time.as_nanosecond()).unwrap_or(0);
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = last_name.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last))).unwrap_or(0);
        let name = event_name(&regarding.name, next(last), || sink.split_rng());
        let (controller, instance) = (Arc::clone(&self.controller), Arc::clone(&self.instance));
        let event = Event { name, time, controller, instance, regarding, related, said };
        if let Err(error) = self.broadcaster.queue.try_send((event, sink.ticket())) {
            tracing::error!(%error, "Unable to record event: too many queued events, dropped event");
        }
    }

    /// A pod was bound. Follows `pkg/scheduler/schedule_one.go#finishBinding @v1.36.3`.
    pub fn scheduled(&self, pod: &Pod, node: &str) {
        let text = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.name());
        self.record(ObjectRef::pod(pod), None, normal("Scheduled", "Binding", text));
    }

    /// A pod could not be scheduled. The message is cut to a note's length, and then read as a format, as upstream does.
    /// Follows `pkg/scheduler/schedule_one.go#handleSchedulingFailure @v1.36.3`.
    pub fn failed_scheduling(&self, pod: &Pod, message: &str) {
        let note = without_arguments(&truncate(message)).into_owned();
        self.record(ObjectRef::pod(pod), None, failed(note));
    }

    /// A pod is not scheduled because it is being deleted. Follows `pkg/scheduler/schedule_one.go#skipPodSchedule @v1.36.3`.
    pub fn skipped_deleting(&self, pod: &Pod) {
        let note = format!("skip schedule deleting pod: {}/{}", pod.namespace(), pod.name());
        self.record(ObjectRef::pod(pod), None, failed(note));
    }

    /// A pod made room for another one on a node. `in_memory` says that it was only on its way there and needed no deleting.
    /// The preemptor is not referred to: upstream tries, and fails silently.
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
