//! Watchers: the lines that each still has to send, and the events that a change causes for a watch of a part of a kind.
//!
//! A watcher's events wait in an unbounded queue, as slices of the stored objects' own bytes. They count as undelivered
//! until the client's stream has taken the last byte of the line.

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

/// One watch of a kind.
pub(super) struct Watcher {
    /// The kind as the client asked for it, which may be another view of what is stored.
    pub(super) kind: &'static Kind,
    /// The form of its lines.
    pub(super) form: Form,
    /// Whether a line has described the columns of the table already.
    pub(super) has_columns: bool,
    pub(super) selection: Selection,
    /// Changes up to this version are not reported.
    pub(super) after: u64,
    pub(super) bookmarks: bool,
    pub(super) next_bookmark: Timestamp,
    pub(super) deadline: Option<Timestamp>,
    pub(super) queue: VecDeque<Item>,
    pub(super) end: Option<End>,
    pub(super) waker: Option<Waker>,
}

/// End of a stream whose queue is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As one that timed out does.
    Clean,
    /// As a broken connection does.
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
    /// The parts of the line, in order.
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
        // The type comes first, since clients decode an object faster once they know what it is.
        Item::Line(format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into())
    }
}

/// State of the object that an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedState {
    /// The state after the change.
    Current,
    /// The former state under the new version: what a watcher gets when an object stops matching.
    Previous,
}

impl Watcher {
    /// Time of the next bookmark: after a minute, or shortly before the end.
    pub(super) fn bookmark_at(&self) -> Option<Timestamp> {
        if !self.bookmarks {
            return None;
        }
        let before_end = self.deadline.map(|deadline| deadline - BOOKMARK_BEFORE_END);
        // Past that moment `next_bookmark` is a minute off, so the one before the end is sent once.
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
