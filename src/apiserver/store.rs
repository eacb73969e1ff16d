//! What the server holds: the newest version of each object, a bounded history of changes, and the watchers.
//!
//! [`State`] is behind the server's one mutex. Its functions are synchronous and short; whoever is to be woken by a
//! change is collected while the lock is held and woken after it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use super::change::{Change, ChangeKind};
use super::decode::BodyFindings;
use super::kinds::{self, Kind};
use super::names::Names;
use super::object::Object;
use super::owners::{Author, Managed};
use super::watcher::Watcher;

/// Everything behind the lock.
pub(super) struct State {
    /// The time of the transaction that holds the lock.
    pub(super) now: Timestamp,
    /// Who asks for the transaction, where it matters.
    pub(super) author: Option<Author>,
    /// The managers that an apply has found for what is written.
    pub(super) applied: Option<Managed>,
    pub(super) names: Names,
    pub(super) settings: Settings,
    /// What is odd about the body of the request that holds the lock.
    pub(super) oddities: BodyFindings,
    /// The newest resource version, one counter for all kinds.
    pub(super) version: u64,
    /// The version of the last object that the server made for itself.
    pub(super) built_in: u64,
    pub(super) shelves: Vec<Shelf>,
    pub(super) watchers: BTreeMap<u64, Watcher>,
    pub(super) next_watcher: u64,
    /// Watch events that no client has read yet.
    pub(super) undelivered: usize,
    /// Requests being served.
    pub(super) open: usize,
    /// Requests that wait for a test or for time to pass.
    pub(super) held: usize,
    /// Events and when they go, oldest first; an entry whose version is no longer the event's is void.
    pub(super) expiries: VecDeque<(Timestamp, Arc<str>, u64)>,
    /// How often a pod was marked as deleted, or was removed.
    pub(super) pod_deletions: u64,
    /// When waiting requests give up.
    pub(super) deadlines: Vec<Timestamp>,
    /// To be woken once the lock is free.
    pub(super) wakers: Vec<Waker>,
}

/// What a constructor decides.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Changes kept a kind.
    pub(super) history: usize,
    /// Whether a create in a missing namespace makes the namespace.
    pub(super) create_namespaces: bool,
    /// Whether objects are kept as a real server would keep them.
    pub(super) exact: bool,
}

/// The objects of one kind.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) objects: BTreeMap<Arc<str>, Arc<Object>>,
    /// The newest changes, oldest first.
    pub(super) history: VecDeque<Change>,
    /// A watch can start at this version or later.
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

    /// The newest version of an object.
    pub(super) fn find(&self, kind: &Kind, key: &str) -> Option<&Arc<Object>> {
        self.shelf(kind).objects.get(key)
    }

    /// Stores a new object; the caller has made sure that the key is free.
    pub(super) fn add(&mut self, kind: &'static Kind, key: Arc<str>, value: &Value) -> Arc<Object> {
        let kind = kind.storage();
        self.version += 1;
        let object = Arc::new(Object::encode(kind, key.clone(), self.version, value, None));
        self.shelf_mut(kind).objects.insert(key, object.clone());
        self.publish(Change { kind: ChangeKind::Added, object: object.clone(), previous: None });
        object
    }

    /// Stores a new version of `old`; content that is the same as before is no write.
    pub(super) fn replace(&mut self, old: &Arc<Object>, value: &Value) -> Arc<Object> {
        let object = Object::encode(old.kind, old.key.clone(), self.version + 1, value, Some(old));
        self.replace_with(old, object)
    }

    /// As [`replace`](Self::replace), with `object` laid out under the next version.
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

    /// Removes `old`; answers with its last state under the version of the removal.
    pub(super) fn remove(&mut self, old: &Arc<Object>) -> Arc<Object> {
        self.version += 1;
        let gone = Arc::new(old.with_version(self.version));
        self.shelf_mut(old.kind).objects.remove(&old.key);
        self.publish(Change { kind: ChangeKind::Deleted, object: gone.clone(), previous: Some(old.clone()) });
        gone
    }

    /// Puts bytes into store and watches as they are, under the next version.
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

    /// Forgets the history of a kind, so that only watches from now on can be served.
    pub(super) fn compact(&mut self, kind: &Kind) {
        let version = self.version;
        let kept = self.shelf_mut(kind);
        kept.history.clear();
        kept.floor = version;
    }

    /// The objects of `kind` as they were at `version`, sorted by key; `None` once the history does not reach back.
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
