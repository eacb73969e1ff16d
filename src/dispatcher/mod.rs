//! The scheduler's API writes: merged and ordered per pod, throttled, and retried by client-go's rules.
//!
//! ```text
//!  patch_status ──▶ draft ──┐ merged until sent;      ┌──▶ Dispatcher::run  (one task, all patches)
//!  bind ──drops the draft──▶│ one queue an object: ───┤
//!  patch_status_and_wait ──▶│ first come, first sent  └──▶ the caller's own task
//!  delete ─────────────────▶┘
//! ```
//!
//! No call here blocks: [`ApiWrites::patch_status`] returns at once, and the other calls are futures for a task outside the
//! scheduling cycle. The writes are those of upstream with `SchedulerAsyncAPICalls` off, with two exceptions. Patches of a pod
//! are merged until they are sent. A binding drops the pod's patch if the patch has not been sent, and otherwise waits for the
//! response to the patch.

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

/// A handle for writes. Cheap to clone. After the last handle is dropped, [`Dispatcher::run`] sends the queued patches and ends.
#[derive(Clone)]
pub struct ApiWrites {
    writer: Arc<Writer>,
    patches: mpsc::UnboundedSender<QueuedWrite>,
}

/// Sends the patches that no caller waits for. The owner runs it in a task and observes the end of that task.
#[must_use = "patches are sent only while this runs"]
pub struct Dispatcher {
    writer: Arc<Writer>,
    patches: mpsc::UnboundedReceiver<QueuedWrite>,
}

struct Writer {
    rest: RestClient,
    queues: Arc<WriteQueues>,
    /// Draws the jitter of retries. The lock is held only for a draw.
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
    /// Creates a handle, and the dispatcher that must run to send its patches. `rng` draws only the jitter of retries.
    pub fn new(rest: RestClient, rng: Rng) -> (Self, Dispatcher) {
        let writer = Arc::new(Writer { rest, queues: Arc::default(), rng: Mutex::new(rng) });
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { writer: Arc::clone(&writer), patches: sender }, Dispatcher { writer, patches: receiver })
    }

    /// Queues a patch of a pod's status, or merges it into the pod's last queued patch. Sends nothing if the status already has
    /// these values. Logs failures. `pod` is the pod as in the informer's cache.
    pub fn patch_status(&self, pod: &Arc<Pod>, update: StatusUpdate) {
        if let Some(write) = self.writer.queues.join_draft(pod, update) {
            // The dispatcher ends early only if the process exits. The write is then dropped with the message.
            let _ = self.patches.send(write);
        }
    }

    /// Patches a pod's status after all earlier writes of the pod, and waits for the response. Returns whether a request was
    /// needed.
    pub async fn patch_status_and_wait(&self, pod: &Arc<Pod>, update: StatusUpdate) -> Result<bool, ApiError> {
        let write = self.writer.queues.join(pod.uid());
        write.ready().await?;
        self.writer.send_patch(&write, &Draft::new(Arc::clone(pod), update)).await
    }

    /// Binds a pod to a node after all earlier writes of the pod, and waits for the response. Patches from [`Self::patch_status`]
    /// that have not been sent are dropped, because the binding makes them obsolete. The dispatcher does not retry bindings.
    /// [`RestClient::send`] retries them if the server asks for it.
    /// Follows `pkg/scheduler/framework/plugins/defaultbinder/default_binder.go#Bind @v1.36.3`.
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

    /// Deletes a pod after all earlier writes of the pod, without preconditions and with the pod's own grace period.
    /// Follows `pkg/scheduler/util/utils.go#DeletePod @v1.36.3`.
    pub async fn delete(&self, pod: &Pod) -> Result<(), ApiError> {
        let write = self.writer.queues.join(pod.uid());
        write.ready().await?;
        let call = Call::Delete(Bytes::from_static(br#"{"kind":"DeleteOptions","apiVersion":"v1"}"#));
        self.writer.rest.send(&call, &Target::pod(pod.namespace(), pod.name())).await.map(drop)
    }

    /// Number of writes that are queued or in flight; 0 if all writes have been answered.
    pub fn pending(&self) -> usize {
        self.writer.queues.pending()
    }

    /// Drops all writes that have not been started, and rejects later ones. Their callers get [`ApiError::Closed`].
    pub fn close(&self) {
        self.writer.queues.close();
    }

    /// Whether [`Self::close`] has been called.
    pub fn is_closed(&self) -> bool {
        self.writer.queues.is_closed()
    }

    /// The client used for writes; other writers use it to share its connections and rate limit.
    pub fn rest(&self) -> &RestClient {
        &self.writer.rest
    }
}

impl Dispatcher {
    /// Sends patches until every [`ApiWrites`] has been dropped and the last patch has been answered.
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

    /// Sends the changes of a draft, if any, in up to four attempts. Returns whether there were any changes.
    /// Follows `pkg/scheduler/util/utils.go#PatchPodStatus @v1.36.3`.
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
