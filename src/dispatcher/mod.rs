//! The scheduler's API writes: merged and ordered per object, throttled, and sent again by client-go's rule.
//!
//! ```text
//!  patch_status ──▶ draft ──┐ merged until sent;      ┌──▶ Dispatcher::run  (one task, all patches)
//!  bind ──drops the draft──▶│ one queue an object: ───┤
//!  patch_status_and_wait ──▶│ first come, first sent  └──▶ the caller's own task
//!  delete ─────────────────▶┘
//! ```
//!
//! No call here blocks: [`ApiWrites::patch_status`] returns at once, the others are futures for a task outside the scheduling
//! cycle. What is written is what upstream writes with `SchedulerAsyncAPICalls` off, except that a patch which has not been
//! sent when the pod's binding comes is dropped; a binding waits for one in flight.

mod status;
#[cfg(test)]
mod tests;
mod write_queues;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::client::retry::Backoff;
use crate::client::{ApiError, Call, RestClient, Target, retry};
use crate::clock::Rng;
use crate::k8s::Pod;
use status::Draft;
pub use status::{POD_SCHEDULED, StatusUpdate};
use write_queues::{QueuedWrite, WriteQueues};

/// A handle that writes. Cheap to clone. When the last one is gone, [`Dispatcher::run`] ends after what it still has to send.
#[derive(Clone)]
pub struct ApiWrites {
    writer: Arc<Writer>,
    patches: mpsc::UnboundedSender<QueuedWrite>,
}

/// Sends the patches that nobody waits for. Its owner runs it in a task and observes that task's end.
#[must_use = "patches are sent only while this runs"]
pub struct Dispatcher {
    writer: Arc<Writer>,
    patches: mpsc::UnboundedReceiver<QueuedWrite>,
}

struct Writer {
    rest: RestClient,
    queues: Arc<WriteQueues>,
    /// Draws the jitter of retries; its lock guards a draw.
    rng: Mutex<Rng>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Binding<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: BindingMeta<'a>,
    target: BindingTarget<'a>,
}

#[derive(Serialize)]
struct BindingMeta<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
}

#[derive(Serialize)]
struct BindingTarget<'a> {
    kind: &'a str,
    name: &'a str,
}

impl ApiWrites {
    /// A handle, and what must run for its patches to be sent. `rng` draws only the jitter of retries.
    pub fn new(rest: RestClient, rng: Rng) -> (Self, Dispatcher) {
        let writer = Arc::new(Writer { rest, queues: Arc::default(), rng: Mutex::new(rng) });
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { writer: Arc::clone(&writer), patches: sender }, Dispatcher { writer, patches: receiver })
    }

    /// Writes a pod's status soon: an update is merged into one of the same pod that has not been sent, and what the status
    /// says already is not written. A failure is logged. `pod` is the pod as the informers know it.
    pub fn patch_status(&self, pod: &Arc<Pod>, update: StatusUpdate) {
        if let Some(write) = self.writer.queues.join_draft(pod, update) {
            // The dispatcher is gone only when the process ends; the write is then given up with the message.
            let _ = self.patches.send(write);
        }
    }

    /// Writes a pod's status after what was asked for before, and waits for the end. Says whether a request was needed.
    pub async fn patch_status_and_wait(&self, pod: &Arc<Pod>, update: StatusUpdate) -> Result<bool, ApiError> {
        let write = self.writer.queues.join(pod.uid());
        write.ready().await?;
        self.writer.send_patch(&write, &Draft::new(Arc::clone(pod), update)).await
    }

    /// Binds a pod to a node after a patch in flight, and waits for the server's answer. A patch that has not been sent is
    /// dropped: the binding settles what it would have said. A binding is not tried again here; [`RestClient::send`] does
    /// where the server asks for it. Follows `pkg/scheduler/framework/plugins/defaultbinder/default_binder.go#Bind @v1.36.3`.
    pub async fn bind(&self, pod: &Pod, node: &str) -> Result<(), ApiError> {
        let write = self.writer.queues.join_binding(pod.uid());
        write.ready().await?;
        let (namespace, name) = (pod.namespace(), pod.name());
        let body = Binding {
            api_version: "v1",
            kind: "Binding",
            metadata: BindingMeta { name, namespace, uid: pod.uid() },
            target: BindingTarget { kind: "Node", name: node },
        };
        let body = serde_json::to_vec(&body).map_err(|error| ApiError::Request(error.to_string()))?;
        tracing::debug!(pod = %pod.key(), node, "Attempting to bind pod to node");
        let target = Target::pod(namespace, name).subresource("binding");
        self.writer.rest.send(&Call::Post(body.into()), &target).await?;
        write.set_written(status::Written::default());
        Ok(())
    }

    /// Deletes a pod after what was asked for before: without precondition, with the pod's own grace period.
    /// Follows `pkg/scheduler/util/utils.go#DeletePod @v1.36.3`.
    pub async fn delete(&self, pod: &Pod) -> Result<(), ApiError> {
        let write = self.writer.queues.join(pod.uid());
        write.ready().await?;
        let call = Call::Delete(Bytes::from_static(br#"{"kind":"DeleteOptions","apiVersion":"v1"}"#));
        self.writer.rest.send(&call, &Target::pod(pod.namespace(), pod.name())).await.map(drop)
    }

    /// Writes that wait or run: 0 means that everything asked for has been answered.
    pub fn pending(&self) -> usize {
        self.writer.queues.pending()
    }

    /// Drops every write that has not begun, and all that follow: those fail with [`ApiError::Closed`].
    pub fn close(&self) {
        self.writer.queues.close();
    }

    /// Whether it has been closed.
    pub fn is_closed(&self) -> bool {
        self.writer.queues.is_closed()
    }

    /// What other writers send through: the same connections and the same limit.
    pub fn rest(&self) -> &RestClient {
        &self.writer.rest
    }
}

impl Dispatcher {
    /// Sends patches until every [`ApiWrites`] is gone and the last patch has been answered.
    pub async fn run(mut self) {
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(()) = running.next() => {}
                write = self.patches.recv() => match write {
                    Some(write) => running.push(self.writer.run_patch(write)),
                    None => break,
                },
            }
        }
        while running.next().await.is_some() {}
    }
}

impl Writer {
    async fn run_patch(&self, write: QueuedWrite) {
        if write.ready().await.is_err() {
            return;
        }
        let Some(draft) = write.take_draft() else { return };
        if let Err(error) = self.send_patch(&write, &draft).await {
            tracing::error!(pod = %draft.pod().key(), %error, "Error updating pod");
        }
    }

    /// Sends what the draft changes, if anything, up to four times. Follows `pkg/scheduler/util/utils.go#PatchPodStatus @v1.36.3`.
    async fn send_patch(&self, write: &QueuedWrite, draft: &Draft) -> Result<bool, ApiError> {
        let clock = self.rest.clock();
        let Some((body, written)) = draft.patch(&write.written(), clock.now().wall) else { return Ok(false) };
        let target = Target::pod(draft.pod().namespace(), draft.pod().name()).subresource("status");
        let call = Call::Patch(body);
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner).split();
        let policy = Backoff::STATUS_PATCH.policy(|| rng.unit(), ApiError::is_retriable);
        retry(clock, policy, || self.rest.send(&call, &target)).await?;
        write.set_written(written);
        Ok(true)
    }
}
