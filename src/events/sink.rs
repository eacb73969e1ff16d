//! Writing an event, and deciding whether a failure is worth another try.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::client::{ApiError, Call, RestClient, Target};
use crate::clock::Rng;

/// How often an event is tried. Follows `client-go/tools/events/event_broadcaster.go#maxTriesPerEvent @v1.36.3`.
pub(super) const MAX_TRIES: u32 = 12;

/// The wait between tries, before jitter. Follows `client-go/tools/events/event_broadcaster.go#defaultSleepDuration @v1.36.3`.
pub(super) const RETRY_WAIT: Duration = Duration::from_secs(10);

/// What events are written through, and what counts those that are not written yet.
pub(super) struct Sink {
    pub(super) rest: RestClient,
    group: &'static str,
    /// Draws jitter and random names; its lock guards a draw.
    rng: Mutex<Rng>,
    pending: AtomicUsize,
}

/// One event that is queued or being written; it counts until this is dropped.
pub(super) struct Ticket(Arc<Sink>);

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was written, or never will be.
    Settled,
    /// Another try may write it.
    Again,
}

/// An attempt to write an event has failed, and another one may succeed.
pub(super) struct NotWritten;

impl Verdict {
    /// The verdict as the result of an attempt.
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

    /// One try: a patch if there is one, and a creation if there is none or the patched event is gone.
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
            // Its Status says 404, whatever the reason.
            Err(Some(error)) => error.status().is_some_and(|status| status.code == 404),
        };
        if create_now {
            result = self.rest.send(&Call::Post(create()), &collection).await.map_err(Some);
        }
        match result {
            Ok(_) | Err(None) => Verdict::Settled,
            // core/v1's recorder settles an event that turns out to exist; the newer one tries a series again.
            Err(Some(error)) => judge(&error, namespace, name, is_series && !self.group.is_empty()),
        }
    }
}

fn judge(error: &ApiError, namespace: &str, name: &str, exists_later: bool) -> Verdict {
    match error {
        // The event that a series' patch did not find was created in the meantime.
        ApiError::Status(_) if exists_later && error.is_already_exists() => Verdict::Again,
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
