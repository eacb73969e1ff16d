//! Watchers: their queues of undelivered lines, and the events that a change causes for a watch with selectors.
//!
//! A watcher's events wait in an unbounded queue, as slices of the stored objects' own bytes. An event counts as undelivered
//! until the client's stream has taken the last byte of its line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::accept::Form;
use super::change::{Change, ChangeKind};
use super::kinds::Kind;
use super::object::Object;
use super::selectors::Selection;
use super::{events, schema, table};
use crate::apimachinery::Status;

/// One open watch of a kind.
pub(super) struct Watcher {
    /// Kind that the client asked for, which may be a view of the stored kind.
    pub(super) kind: &'static Kind,
    /// Form of the watch's lines.
    pub(super) form: Form,
    /// Whether an earlier line has already described the table's columns.
    pub(super) has_columns: bool,
    pub(super) selection: Selection,
    /// Changes up to this version are skipped.
    pub(super) after: u64,
    pub(super) bookmarks: bool,
    pub(super) next_bookmark: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) queue: VecDeque<Item>,
    pub(super) end: Option<End>,
    pub(super) waker: Option<Waker>,
}

/// End of a watch stream. The stream ends once the queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The stream ends cleanly, as after a timeout.
    Clean,
    /// The stream ends with an error, as when the connection breaks.
    Broken,
}

/// One line of a watch stream.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Event(ChangeKind, Bytes),
    Line(Bytes),
}

/// Time between two bookmarks of a watch. `apiserver/pkg/storage/cacher/cacher.go#defaultBookmarkFrequency @v1.36.3`.
pub(super) const BOOKMARK_EVERY: SignedDuration = SignedDuration::from_secs(60);
/// Time before the end of a watch at which the last bookmark is sent.
const BOOKMARK_BEFORE_END: SignedDuration = SignedDuration::from_secs(2);

impl Item {
    /// Returns the byte slices that make up the line, in order.
    pub(super) fn frames(self) -> [Bytes; 3] {
        match self {
            Self::Event(kind, object) => {
                let opens: &[u8] = match kind {
                    ChangeKind::Added => br#"{"type":"ADDED","object":"#,
                    ChangeKind::Modified => br#"{"type":"MODIFIED","object":"#,
                    ChangeKind::Deleted => br#"{"type":"DELETED","object":"#,
                };
                [Bytes::from_static(opens), object, Bytes::from_static(b"}\n")]
            }
            Self::Line(line) => [Bytes::new(), Bytes::new(), line],
        }
    }

    pub(super) fn error(status: &Status) -> Self {
        Self::Line(format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", Value::from(status)).into())
    }
}

impl Watcher {
    /// Returns the type of the event that the change causes for this watcher, and the state that the event carries.
    pub(super) fn sees(&self, change: &Change) -> Option<(ChangeKind, ReportedState)> {
        let (object, previous) = (&change.object, change.previous.as_ref());
        if object.version <= self.after || !self.selection.in_namespace(object) {
            return None;
        }
        let now = change.kind != ChangeKind::Deleted && self.selection.matches(object);
        let before = previous.is_some_and(|previous| self.selection.matches(previous));
        match (before, now) {
            (false, false) => None,
            (false, true) => Some((ChangeKind::Added, ReportedState::Current)),
            (true, true) => Some((ChangeKind::Modified, ReportedState::Current)),
            (true, false) if change.kind == ChangeKind::Deleted => Some((ChangeKind::Deleted, ReportedState::Current)),
            (true, false) => Some((ChangeKind::Deleted, ReportedState::Previous)),
        }
    }

    pub(super) fn item(&mut self, change: ChangeKind, object: &Object, now: Timestamp) -> Item {
        let Form::Table(form) = self.form else { return Item::Event(change, events::view(self.kind, object)) };
        let is_first = !std::mem::replace(&mut self.has_columns, true);
        Item::Line(table::event(form, is_first, self.kind, change, object, now))
    }

    pub(super) fn bookmark(&self, version: u64, ends_initial_events: bool) -> Item {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if let Form::Table(form) = self.form {
            return Item::Line(table::bookmark(form, self.kind, &metadata));
        }
        let mut object = json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata});
        schema::complete(schema::Object::of(self.kind), &mut object);
        // The type comes first because clients decode an object faster if they already know its type.
        Item::Line(format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into())
    }
}

/// State of the object that an event shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedState {
    /// The state after the change.
    Current,
    /// The state before the change with the new version, for an object that no longer matches the selectors.
    Previous,
}

impl Watcher {
    /// Returns the time of the next bookmark: a minute after the previous bookmark, or shortly before the end of the watch.
    pub(super) fn bookmark_at(&self) -> Option<Timestamp> {
        if !self.bookmarks {
            return None;
        }
        let before_end = self.deadline.map(|deadline| deadline - BOOKMARK_BEFORE_END);
        // The second condition is false once the bookmark before the end has been sent, so it is sent only once.
        Some(match before_end {
            Some(at) if at < self.next_bookmark && self.next_bookmark - BOOKMARK_EVERY < at => at,
            _ => self.next_bookmark,
        })
    }
}

/// Returns the object in the state that an event carries.
pub(super) fn reported(change: &Change, state: ReportedState) -> Arc<Object> {
    match (state, &change.previous) {
        (ReportedState::Previous, Some(previous)) => Arc::new(previous.with_version(change.object.version)),
        _ => change.object.clone(),
    }
}
