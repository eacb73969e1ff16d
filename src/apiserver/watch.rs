//! Watch requests: their options, and the open watches of the store.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::accept::Form;
use super::change::{Change, ChangeKind};
use super::kinds::Kind;
use super::list;
use super::object::Object;
use super::route::Query;
use super::selectors::Selection;
use super::store::State;
use super::watcher::{BOOKMARK_EVERY, End, Item, ReportedState, Watcher, reported};
use crate::apimachinery::{FieldError, Status};

/// Options of a watch request.
#[derive(Clone, Debug)]
pub(super) struct WatchOptions {
    /// Version to start from. For `None` and 0, the watch starts with an `ADDED` event for each existing object.
    pub(super) from: Option<u64>,
    /// Whether to send an `ADDED` event for each existing object first, and then a bookmark if bookmarks are allowed.
    pub(super) initial_events: bool,
    pub(super) bookmarks: bool,
    /// Time in seconds after which the stream ends.
    pub(super) timeout_seconds: Option<u64>,
}

impl WatchOptions {
    /// Parses the watch options of a query. Rejects combinations that are not allowed.
    /// Follows `apimachinery/pkg/apis/meta/internalversion/validation/validation.go#validateWatchOptions @v1.36.3`.
    pub(super) fn parse(query: &Query) -> Result<Self, Status> {
        let timeout = query.number("timeoutSeconds")?;
        let version_match = query.text("resourceVersionMatch");
        let initial = query.get("sendInitialEvents");
        let mut errors = Vec::new();
        if initial.is_some() && version_match != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden("resourceVersionMatch", detail));
        }
        if !version_match.is_empty() {
            if initial.is_none() {
                let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", detail));
            }
            if version_match != "NotOlderThan" {
                let known = ["NotOlderThan"];
                errors.push(FieldError::not_supported("resourceVersionMatch", &json!(version_match), &known));
            }
            if !query.text("continue").is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", detail));
            }
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        let from = match query.text("resourceVersion") {
            "" => None,
            text => Some(list::parse_version(text).map_err(Status::unknown)?),
        };
        Ok(Self {
            from,
            initial_events: initial.is_some() && query.flag("sendInitialEvents"),
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout_seconds: timeout.and_then(|seconds| seconds.try_into().ok()).filter(|seconds| *seconds > 0),
        })
    }

    /// Returns the requested version if the server has not reached it yet, so that the initial events have to wait.
    pub(super) fn awaited(&self, current: u64) -> Option<u64> {
        self.from.filter(|version| self.initial_events && *version > current)
    }
}

impl State {
    /// Opens a watch and queues its initial events.
    pub(super) fn open_watch(
        &mut self,
        kind: &'static Kind,
        selection: Selection,
        options: &WatchOptions,
        form: Form,
    ) -> u64 {
        let id = self.next_watcher;
        self.next_watcher += 1;
        let deadline = options.timeout_seconds.and_then(|seconds| {
            self.now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))).ok()
        });
        let mut watcher = Watcher {
            kind,
            form,
            has_columns: false,
            selection,
            after: options.from.unwrap_or(0),
            bookmarks: options.bookmarks,
            next_bookmark: self.now + BOOKMARK_EVERY,
            deadline,
            queue: VecDeque::new(),
            end: None,
            waker: None,
        };
        self.first_items(&mut watcher, options);
        if watcher.end.is_none() {
            self.shelf_mut(kind).watchers.push(id);
        }
        self.undelivered += watcher.queue.len();
        self.watchers.insert(id, watcher);
        id
    }

    fn first_items(&self, watcher: &mut Watcher, options: &WatchOptions) {
        let kept = self.shelf(watcher.kind);
        let from = options.from.unwrap_or(0);
        if options.initial_events || from == 0 {
            watcher.after = self.version.max(from);
            for object in kept.objects.values() {
                if !watcher.selection.matches(object) {
                    continue;
                }
                let item = watcher.item(ChangeKind::Added, object, self.now);
                watcher.queue.push_back(item);
            }
            if options.initial_events && options.bookmarks {
                watcher.queue.push_back(watcher.bookmark(self.version, true));
            }
        } else if from < kept.floor {
            let text = format!("too old resource version: {from} ({})", kept.floor);
            watcher.queue.push_back(Item::error(&Status::expired(text)));
            watcher.end = Some(End::Clean);
        } else {
            let start = kept.history.partition_point(|change| change.object.version <= from);
            for change in kept.history.range(start..) {
                if let Some((kind, seen)) = watcher.sees(change) {
                    let item = watcher.item(kind, &reported(change, seen), self.now);
                    watcher.queue.push_back(item);
                }
            }
        }
    }

    /// Queues a change for each watcher that it concerns.
    pub(super) fn dispatch(&mut self, change: &Change) {
        let kept = &self.shelves[change.object.kind.slot as usize];
        let mut departed: Option<Arc<Object>> = None;
        for id in &kept.watchers {
            let watcher = self.watchers.get_mut(id).expect("a shelf lists open watchers only");
            let Some((kind, seen)) = watcher.sees(change) else { continue };
            let item = match seen {
                ReportedState::Current => watcher.item(kind, &change.object, self.now),
                ReportedState::Previous => {
                    watcher.item(kind, departed.get_or_insert_with(|| reported(change, seen)), self.now)
                }
            };
            watcher.queue.push_back(item);
            self.undelivered += 1;
            self.wakers.extend(watcher.waker.take());
        }
    }

    /// Takes the next line of a watch from its queue. The line counts as undelivered until [`delivered`](Self::delivered) is
    /// called.
    pub(super) fn next_item(&mut self, id: u64) -> Option<Item> {
        self.watchers.get_mut(&id)?.queue.pop_front()
    }

    /// Records that the client has read a whole line.
    pub(super) fn delivered(&mut self) {
        self.undelivered -= 1;
    }

    /// Closes a watch whose client has disconnected, and drops its unread events.
    pub(super) fn close_watch(&mut self, id: u64) {
        if let Some(watcher) = self.watchers.remove(&id) {
            self.undelivered -= watcher.queue.len();
            self.shelf_mut(watcher.kind).watchers.retain(|other| *other != id);
        }
    }

    /// Ends a watch, either cleanly after the queued lines, or at once without them.
    pub(super) fn end_watch(&mut self, id: u64, end: End) {
        let Some(watcher) = self.watchers.get_mut(&id) else { return };
        watcher.end = Some(end);
        if end == End::Broken {
            self.undelivered -= watcher.queue.len();
            watcher.queue.clear();
        }
        self.wakers.extend(watcher.waker.take());
        let kind = watcher.kind;
        self.shelf_mut(kind).watchers.retain(|other| *other != id);
    }

    /// Breaks all watches of a kind, or of all kinds.
    pub(super) fn drop_watches(&mut self, kind: Option<&Kind>) {
        let of_kind = |watcher: &Watcher| kind.is_none_or(|kind| kind.slot == watcher.kind.slot);
        let ids: Vec<u64> = self.watchers.iter().filter(|(_, watcher)| of_kind(watcher)).map(|(id, _)| *id).collect();
        for id in ids {
            self.end_watch(id, End::Broken);
        }
    }

    /// Ends watches that have timed out, and queues bookmarks that are due.
    pub(super) fn tick_watches(&mut self) {
        let (now, version) = (self.now, self.version);
        let mut ended = Vec::new();
        for (id, watcher) in self.watchers.iter_mut().filter(|(_, watcher)| watcher.end.is_none()) {
            let bookmark_at = watcher.bookmark_at();
            if bookmark_at.is_some_and(|at| at <= now) {
                let version = version.max(watcher.after);
                watcher.queue.push_back(watcher.bookmark(version, false));
                watcher.next_bookmark = now + BOOKMARK_EVERY;
                self.undelivered += 1;
                self.wakers.extend(watcher.waker.take());
            }
            if watcher.deadline.is_some_and(|deadline| deadline <= now) {
                ended.push(*id);
            }
        }
        for id in ended {
            self.end_watch(id, End::Clean);
        }
    }

    /// Returns the time at which [`tick_watches`](Self::tick_watches) next has work to do.
    pub(super) fn next_watch_deadline(&self) -> Option<Timestamp> {
        let open = self.watchers.values().filter(|watcher| watcher.end.is_none());
        open.flat_map(|watcher| [watcher.bookmark_at(), watcher.deadline]).flatten().min()
    }
}
