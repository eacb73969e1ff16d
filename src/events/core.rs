//! The task that writes core/v1 events: those of leader election, and all events if the server lacks events.k8s.io/v1.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;
use tokio::sync::mpsc;

use super::correlate::{Correlated, Correlator};
use super::event::{Event, EventType, Meta, ObjectRef, event_name, json};
use super::series::Queued;
use super::sink::{MAX_TRIES, NotWritten, RETRY_WAIT, Sink};
use crate::client::retry;

/// Correlates events and writes them one after the other. See [`CoreTask::run`].
pub(super) struct CoreTask {
    sink: Arc<Sink>,
    queue: mpsc::Receiver<Queued>,
    correlator: Correlator,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CoreV1<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Meta<'a>,
    involved_object: &'a ObjectRef,
    reason: &'a str,
    message: &'a str,
    source: Source<'a>,
    first_timestamp: Time,
    last_timestamp: Time,
    count: u32,
    #[serde(rename = "type")]
    event_type: EventType,
    event_time: Option<Time>,
    /// Name of the reporting controller. The events.k8s.io/v1 API calls this field `reportingController`.
    reporting_component: &'a str,
    reporting_instance: &'a str,
}

#[derive(Serialize)]
struct Source<'a> {
    component: &'a str,
}

/// Patch that a repetition applies to an existing event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch<'a> {
    count: u32,
    last_timestamp: Time,
    message: &'a str,
}

impl CoreTask {
    pub(super) fn new(sink: Arc<Sink>, queue: mpsc::Receiver<Queued>) -> Self {
        Self { sink, queue, correlator: Correlator::new() }
    }

    /// Writes events one after the other, until every recorder is dropped and the last event is written or given up.
    /// Follows `client-go/tools/record/event.go#recordToSink @v1.36.3`.
    pub(super) async fn run(mut self) {
        while let Some((event, ticket)) = self.queue.recv().await {
            let now = self.sink.rest.clock().now();
            let nanoseconds = u64::try_from(now.wall.as_nanosecond()).unwrap_or(0);
            let combined_name = || event_name(&event.regarding.name, nanoseconds, || self.sink.split_rng());
            if let Some(correlated) = self.correlator.correlate(&event, now, combined_name) {
                self.write(&event, &correlated).await;
            }
            drop(ticket);
        }
    }

    async fn write(&self, event: &Event, correlated: &Correlated) {
        let attempt = || async {
            let patch = (correlated.count > 1).then(|| patch_body(correlated));
            let create = || create_body(event, correlated);
            let namespace = event.regarding.event_namespace();
            self.sink.write(namespace, &correlated.name, patch, create).await.settled()
        };
        let mut tries = 0;
        let policy = |_: &NotWritten| {
            tries += 1;
            // The first wait is shortened at random, so that clients do not all retry at the same time.
            let share = if tries == 1 { self.sink.split_rng().unit() } else { 1.0 };
            (tries < MAX_TRIES).then(|| RETRY_WAIT.mul_f64(share))
        };
        if retry(self.sink.rest.clock(), policy, attempt).await.is_err() {
            tracing::error!(name = correlated.name, "Unable to write event (retry limit exceeded!)");
        }
    }
}

fn patch_body(correlated: &Correlated) -> Bytes {
    let last_timestamp = Time(correlated.last);
    json(&Patch { count: correlated.count, last_timestamp, message: &correlated.message })
}

/// Returns the body that creates the event. Follows `client-go/tools/record/event.go#makeEvent @v1.36.3`.
fn create_body(event: &Event, correlated: &Correlated) -> Bytes {
    json(&CoreV1 {
        api_version: "v1",
        kind: "Event",
        metadata: Meta { name: &correlated.name, namespace: event.regarding.event_namespace() },
        involved_object: &event.regarding,
        reason: &event.note.reason,
        message: &correlated.message,
        source: Source { component: &event.controller },
        first_timestamp: Time(correlated.first),
        last_timestamp: Time(correlated.last),
        count: correlated.count,
        event_type: event.note.kind,
        event_time: None,
        reporting_component: &event.controller,
        reporting_instance: "",
    })
}
