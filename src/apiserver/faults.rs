//! Faults that a test injects.
//!
//! A hook sees the head of each request before the server does, and decides which fault the request gets. Nothing here is
//! random, and nothing waits for time: a held request waits for its [`Gate`].

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

/// Fault that a request gets.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The reply has this status code, and a `Retry-After` header of this many seconds if given.
    Status(u16, Option<u32>),
    /// The reply is this status, for tests that check its text.
    Reply(Box<Status>),
    /// The request is held until the gate opens, then served.
    Delay(Gate),
    /// If the request is a watch, the stream breaks as it opens.
    DropWatch,
    /// The connection breaks before the server has done anything.
    DropConnectionBeforeReply,
    /// The connection breaks after the server has served the request.
    DropConnectionAfterCommit,
}

/// Function that chooses the fault for a request from its head.
pub type Hook = dyn Fn(&Parts) -> Option<Fault> + Send + Sync;

/// Gate at which held requests wait. Clones share the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Opens the gate: releases the held requests and lets later ones pass.
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

/// A test's handle for injecting faults.
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

    /// Calls `hook` for every request from now on. Replaces the previous hook.
    pub fn set(&self, hook: impl Fn(&Parts) -> Option<Fault> + Send + Sync + 'static) {
        *self.server.hook().0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(hook));
    }

    /// Removes the hook, so that every request is served normally.
    pub fn clear(&self) {
        *self.server.hook().0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Breaks the open watches of a kind. Their undelivered events are lost.
    pub fn drop_watches(&self, kind: &Kind) {
        self.server.with(|state| state.drop_watches(Some(kind)));
    }

    /// Breaks all open watches.
    pub fn drop_all_watches(&self) {
        self.server.with(|state| state.drop_watches(None));
    }

    /// Ends the open watches of a kind as a timeout does, after their queued events.
    pub fn end_watches(&self, kind: &Kind) {
        self.server.with(|state| {
            for id in state.shelf(kind).watchers.clone() {
                state.end_watch(id, End::Clean);
            }
        });
    }

    /// Deletes the history of a kind, so that a watch from an earlier version gets 410.
    pub fn compact(&self, kind: &Kind) {
        self.server.with(|state| state.compact(kind));
    }

    /// Returns the history of a kind after the version `after`: the object after each write, oldest first. A deletion is
    /// represented by the object's last state. Returns `None` if the history no longer reaches back to `after`.
    pub fn history(&self, kind: &Kind, after: u64) -> Option<Vec<Arc<Object>>> {
        self.server.with(|state| {
            let kept = state.shelf(kind);
            let newer = kept.history.iter().map(|change| &change.object).filter(|object| object.version() > after);
            (after >= kept.floor).then(|| newer.cloned().collect())
        })
    }

    /// Stores bytes unchecked and sends them to watches, to test objects that no client can decode. Returns the resource version
    /// of the stored object. The bytes should be one JSON object on one line. Otherwise lists and watches are malformed, too.
    pub fn inject_raw(&self, kind: &'static Kind, namespace: &str, name: &str, bytes: impl Into<Bytes>) -> u64 {
        let bytes = bytes.into();
        self.server.with(|state| state.add_raw(kind, key_of(namespace, name), bytes))
    }
}
