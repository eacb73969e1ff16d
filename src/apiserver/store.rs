//! The server's state: the newest version of each object, a bounded history of changes, and the watchers.
//!
//! [`State`] is behind the server's one mutex. Its functions are synchronous and short. Wakers are collected while the lock
//! is held and woken after it is released.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::change::{Change, ChangeKind};
use super::decode::BodyFindings;
use super::kinds::{self, Kind};
use super::names::Names;
use super::object::Object;
use super::owners::{Author, Managed};
use super::watcher::Watcher;
use crate::config::FeatureGates;

/// The state that the server's mutex guards.
pub(super) struct State {
    /// The time of the transaction that holds the lock.
    pub(super) now: Timestamp,
    /// Author of the current request, if field ownership is tracked.
    pub(super) author: Option<Author>,
    /// Field managers that an apply has computed for the object being written.
    pub(super) applied: Option<Managed>,
    pub(super) names: Names,
    pub(super) settings: Settings,
    /// Findings about the body of the current request.
    pub(super) oddities: BodyFindings,
    /// The newest resource version, one counter for all kinds.
    pub(super) version: u64,
    /// Version of the last built-in object that the server created.
    pub(super) built_in: u64,
    pub(super) shelves: Vec<Shelf>,
    pub(super) watchers: BTreeMap<u64, Watcher>,
    pub(super) next_watcher: u64,
    /// Watch events that no client has read yet.
    pub(super) undelivered: usize,
    /// Number of requests being served.
    pub(super) open: usize,
    /// Number of requests that wait for a gate, or for a version that the server has not reached.
    pub(super) held: usize,
    /// Events with their expiry times, oldest first. An entry is void if the event has a newer version by now.
    pub(super) expiries: VecDeque<(Timestamp, Arc<str>, u64)>,
    /// Number of delete requests for pods, without rejected requests and dry runs.
    pub(super) pod_deletions: u64,
    /// Times at which waiting requests give up.
    pub(super) deadlines: Vec<Timestamp>,
    /// Tasks to wake once the lock is released.
    pub(super) wakers: Vec<Waker>,
}

/// Settings that the server's constructor fixes.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Feature gates that decide about admission, defaults and validation.
    pub(super) gates: FeatureGates,
    /// Time for which an event is kept after its last write. With `None`, events do not expire.
    pub(super) event_ttl: Option<SignedDuration>,
    /// Number of changes kept per kind.
    pub(super) history: usize,
    /// Whether a create in a missing namespace also creates the namespace.
    pub(super) create_namespaces: bool,
    /// Whether objects are stored exactly as a real server stores them.
    pub(super) exact: bool,
}

/// The objects of one kind.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) objects: BTreeMap<Arc<str>, Arc<Object>>,
    /// The newest changes, oldest first.
    pub(super) history: VecDeque<Change>,
    /// Oldest version from which a watch can start.
    pub(super) floor: u64,
    /// Ids of the kind's watchers.
    pub(super) watchers: Vec<u64>,
}

impl State {
    pub(super) fn new(settings: Settings, seed: u64, now: Timestamp) -> Self {
        Self {
            now,
            author: None,
            applied: None,
            names: Names::new(seed),
            settings,
            oddities: BodyFindings::default(),
            version: 0,
            built_in: 0,
            shelves: kinds::ALL.iter().map(|_| Shelf::default()).collect(),
            watchers: BTreeMap::new(),
            next_watcher: 0,
            undelivered: 0,
            open: 0,
            held: 0,
            expiries: VecDeque::new(),
            pod_deletions: 0,
            deadlines: Vec::new(),
            wakers: Vec::new(),
        }
    }

    pub(super) fn shelf(&self, kind: &Kind) -> &Shelf {
        &self.shelves[kind.slot as usize]
    }

    pub(super) fn shelf_mut(&mut self, kind: &Kind) -> &mut Shelf {
        &mut self.shelves[kind.slot as usize]
    }

    /// Returns the newest version of an object.
    pub(super) fn find(&self, kind: &Kind, key: &str) -> Option<&Arc<Object>> {
        self.shelf(kind).objects.get(key)
    }

    /// Stores a new object. The caller has checked that the key is free.
    pub(super) fn add(&mut self, kind: &'static Kind, key: Arc<str>, value: &Value) -> Arc<Object> {
        let kind = kind.storage();
        self.version += 1;
        let object = Arc::new(Object::encode(kind, key.clone(), self.version, value, None));
        self.shelf_mut(kind).objects.insert(key, object.clone());
        self.publish(Change { kind: ChangeKind::Added, object: object.clone(), previous: None });
        object
    }

    /// Stores a new version of `old`. If the content is unchanged, nothing is written.
    pub(super) fn replace(&mut self, old: &Arc<Object>, value: &Value) -> Arc<Object> {
        let object = Object::encode(old.kind, old.key.clone(), self.version + 1, value, Some(old));
        self.replace_with(old, object)
    }

    /// Replaces `old` like [`replace`](Self::replace), but with an object that is already encoded with the next version.
    pub(super) fn replace_with(&mut self, old: &Arc<Object>, object: Object) -> Arc<Object> {
        if object.same_content(old) {
            return old.clone();
        }
        self.version += 1;
        debug_assert_eq!(object.version, self.version, "laid out under the version that it gets");
        let object = Arc::new(object);
        self.shelf_mut(old.kind).objects.insert(old.key.clone(), object.clone());
        self.publish(Change { kind: ChangeKind::Modified, object: object.clone(), previous: Some(old.clone()) });
        object
    }

    /// Removes `old`, and returns its last state with the version of the removal.
    pub(super) fn remove(&mut self, old: &Arc<Object>) -> Arc<Object> {
        self.version += 1;
        let gone = Arc::new(old.with_version(self.version));
        self.shelf_mut(old.kind).objects.remove(&old.key);
        self.publish(Change { kind: ChangeKind::Deleted, object: gone.clone(), previous: Some(old.clone()) });
        gone
    }

    /// Stores bytes unchecked with the next version, and sends them to watches.
    pub(super) fn add_raw(&mut self, kind: &'static Kind, key: Arc<str>, bytes: Bytes) -> u64 {
        self.version += 1;
        let object = Arc::new(Object {
            kind: kind.storage(),
            key: key.clone(),
            uid: "".into(),
            version: self.version,
            labels: Arc::new([]),
            fields: kind.storage().fields.iter().map(|field| field.absent.into()).collect(),
            bytes,
            raw: true,
        });
        let previous = self.shelf_mut(kind).objects.insert(key, object.clone());
        let change = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.publish(Change { kind: change, object, previous });
        self.version
    }

    fn publish(&mut self, change: Change) {
        self.dispatch(&change);
        let (limit, version) = (self.settings.history, self.version);
        let kept = self.shelf_mut(change.object.kind);
        kept.history.push_back(change);
        while kept.history.len() > limit {
            kept.history.pop_front();
            kept.floor = kept.history.front().map_or(version, |change| change.object.version - 1);
        }
    }

    /// Deletes the history of a kind, so that only watches from now on can be served.
    pub(super) fn compact(&mut self, kind: &Kind) {
        let version = self.version;
        let kept = self.shelf_mut(kind);
        kept.history.clear();
        kept.floor = version;
    }

    /// Returns the keys of `kind` that have changed since `version`. Each key has the object as it was at `version`, or `None` if
    /// the object did not exist then. The function returns `None` if the history does not reach back that far.
    pub(super) fn at_version(&self, kind: &Kind, version: u64) -> Option<BTreeMap<Arc<str>, Option<Arc<Object>>>> {
        let kept = self.shelf(kind);
        if version < kept.floor {
            return None;
        }
        let mut undone = BTreeMap::new();
        for change in kept.history.iter().rev().take_while(|change| change.object.version > version) {
            undone.insert(change.object.key.clone(), change.previous.clone());
        }
        Some(undone)
    }
}
