//! Requests that write an event, and the decision whether to retry a failed one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::client::{ApiError, Call, RestClient, Target};
use crate::clock::Rng;

/// Maximum number of attempts to write an event.
/// Follows `client-go/tools/events/event_broadcaster.go#maxTriesPerEvent @v1.36.3`.
pub(super) const MAX_TRIES: u32 = 12;

/// Wait between two attempts, before jitter.
/// Follows `client-go/tools/events/event_broadcaster.go#defaultSleepDuration @v1.36.3`.
pub(super) const RETRY_WAIT: Duration = Duration::from_secs(10);

/// Writes events through the client, and counts those that are pending.
pub(super) struct Sink {
    pub(super) rest: RestClient,
    group: &'static str,
    /// Source of jitter and random names. The lock is held for one draw.
    rng: Mutex<Rng>,
    pending: AtomicUsize,
}

/// Guard for an event that is queued or being written. The event counts as pending until the guard is dropped.
pub(super) struct Ticket(Arc<Sink>);

/// Result of an attempt to write an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The event was written, or rejected for good.
    Settled,
    /// A retry may succeed.
    Again,
}

/// Error of an attempt that failed and may be retried.
pub(super) struct NotWritten;

impl Verdict {
    /// Converts the verdict to the result of an attempt for `retry`.
    pub(super) fn settled(self) -> Result<(), NotWritten> {
        match self {
            Self::Settled => Ok(()),
            Self::Again => Err(NotWritten),
        }
    }
}

impl Sink {
    pub(super) fn new(rest: RestClient, group: &'static str, rng: Rng) -> Self {
        Self { rest, group, rng: Mutex::new(rng), pending: AtomicUsize::new(0) }
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.load(Ordering::SeqCst)
    }

    pub(super) fn split_rng(&self) -> Rng {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).split()
    }

    pub(super) fn ticket(self: &Arc<Self>) -> Ticket {
        self.pending.fetch_add(1, Ordering::SeqCst);
        Ticket(Arc::clone(self))
    }

    /// Makes one attempt: sends the patch if there is one, and creates the event if there is no patch or the patched event does
    /// not exist.
    /// Follows `client-go/tools/events/event_broadcaster.go#recordEvent @v1.36.3`.
    pub(super) async fn write(
        &self,
        namespace: &str,
        name: &str,
        patch: Option<Bytes>,
        create: impl FnOnce() -> Bytes,
    ) -> Verdict {
        let collection =
            Target { group: self.group, version: "v1", namespace, resource: "events", ..Target::default() };
        let is_series = patch.is_some();
        let mut result = Err(None);
        if let Some(patch) = patch {
            let target = Target { name, ..collection };
            result = self.rest.send(&Call::Patch(patch), &target).await.map_err(Some);
        }
        let create_now = match &result {
            Ok(_) => false,
            Err(None) => true,
            // The code of the Status decides. The reason of the Status is ignored.
            Err(Some(error)) => error.status().is_some_and(|status| status.code == 404),
        };
        if create_now {
            result = self.rest.send(&Call::Post(create()), &collection).await.map_err(Some);
        }
        match result {
            Ok(_) | Err(None) => Verdict::Settled,
            // As in upstream's recorders: if the event already exists, the write of a series to events.k8s.io is retried, and
            // a write to core/v1 is not.
            Err(Some(error)) => classify(&error, namespace, name, is_series && !self.group.is_empty()),
        }
    }
}

/// Logs a failed attempt and decides whether to retry. With `retry_existing`, an event that already exists is retried.
fn classify(error: &ApiError, namespace: &str, name: &str, retry_existing: bool) -> Verdict {
    match error {
        // The event did not exist when the series was patched, and was created before this attempt could create it.
        ApiError::Status(_) if retry_existing && error.is_already_exists() => Verdict::Again,
        ApiError::Status(_) if error.is_already_exists() => {
            tracing::debug!(namespace, name, %error, "Server rejected event (will not retry!)");
            Verdict::Settled
        }
        ApiError::Status(_) => {
            tracing::error!(namespace, name, %error, "Server rejected event (will not retry!)");
            Verdict::Settled
        }
        ApiError::Request(_) | ApiError::NotLeading | ApiError::Closed => {
            tracing::error!(namespace, name, %error, "Unable to construct event (will not retry!)");
            Verdict::Settled
        }
        ApiError::Transport { .. } => {
            tracing::error!(namespace, name, %error, "Unable to write event (may retry after sleeping)");
            Verdict::Again
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
    }
}
