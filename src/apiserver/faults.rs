//! Faults that a test injects.
//!
//! A hook sees the head of each request before the server does and says what goes wrong with it. Nothing here is random
//! and nothing waits for time: a held request waits for its [`Gate`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::request::Parts;
use tokio::sync::watch;

use super::kinds::Kind;
use super::object::key_of;
use super::watcher::End;
use super::{ApiServer, Object};
use crate::apimachinery::Status;

/// What goes wrong with a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It is answered with this code, and with a `Retry-After` of so many seconds.
    Status(u16, Option<u32>),
    /// It is answered with this status, by a test that cares for the text.
    Reply(Box<Status>),
    /// It is held until the gate opens, then served.
    Delay(Gate),
    /// If it is a watch, the stream breaks as it opens.
    DropWatch,
    /// The connection breaks and the server has done nothing.
    DropConnectionBeforeReply,
    /// The connection breaks after the server has done what was asked.
    DropConnectionAfterCommit,
}

/// Decides about a request by its head.
pub type Hook = dyn Fn(&Parts) -> Option<Fault> + Send + Sync;

/// Where held requests wait. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everybody through, now and from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn passed(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail before the gate opens.
        let _ = receiver.wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// A test's hand in the server.
#[derive(Clone)]
pub struct Faults {
    server: ApiServer,
}

/// The fault hook, if a test has set one.
#[derive(Default)]
pub(super) struct FaultHook(Mutex<Option<Arc<Hook>>>);

impl FaultHook {
    pub(super) fn decide(&self, parts: &Parts) -> Option<Fault> {
        let hook = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hook?(parts)
    }
}

impl fmt::Debug for FaultHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultHook")
    }
}

impl Faults {
    pub(super) fn new(server: ApiServer) -> Self {
        Self { server }
    }

    /// Asks `hook` about every request from now on, instead of the hook before.
    pub fn set(&self, hook: impl Fn(&Parts) -> Option<Fault> + Send + Sync + 'static) {
        *self.server.hook().0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    /// Serves every request from now on.
    pub fn clear(&self) {
        *self.server.hook().0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Breaks the open watches of a kind, with what they have not delivered.
    pub fn drop_watches(&self, kind: &Kind) {
        self.server.with(|state| state.drop_watches(Some(kind)));
    }

    /// Breaks all open watches.
    pub fn drop_all_watches(&self) {
        self.server.with(|state| state.drop_watches(None));
    }

    /// Ends the open watches of a kind as a timeout does, after what is queued.
    pub fn end_watches(&self, kind: &Kind) {
        self.server.with(|state| {
            for id in state.shelf(kind).watchers.clone() {
                state.end_watch(id, End::Clean);
            }
        });
    }

    /// Forgets the history of a kind, so that a watch from an earlier version is answered with 410.
    pub fn compact(&self, kind: &Kind) {
        self.server.with(|state| state.compact(kind));
    }

    /// What each write of a kind after version `after` left, oldest first; of a deletion, the object's last state. None if
    /// that has been forgotten.
    pub fn history(&self, kind: &Kind, after: u64) -> Option<Vec<Arc<Object>>> {
        self.server.with(|state| {
            let kept = state.shelf(kind);
            let newer = kept.history.iter().map(|change| &change.object).filter(|object| object.version() > after);
            (after >= kept.floor).then(|| newer.cloned().collect())
        })
    }

    /// Puts bytes into store and watches as they are, for objects that no client can decode. Answers with the version
    /// that they got. The bytes should be one JSON object on one line, or lists and watches break with them.
    pub fn inject_raw(&self, kind: &'static Kind, namespace: &str, name: &str, bytes: impl Into<Bytes>) -> u64 {
        let bytes = bytes.into();
        self.server.with(|state| state.add_raw(kind, key_of(namespace, name), bytes))
    }
}
