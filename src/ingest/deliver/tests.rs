//! Tests of deliveries, with a sink that records them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::super::decode::Item;
use super::{Sink, apply, collect, delete, replace};
use crate::cache::CacheError;
use crate::clock::Now;
use crate::clock::{Clock, SimClock};
use crate::k8s::Pod;
use crate::listers::{Change, Store};
use crate::testing::pod;

/// A sink that records its changes as `+a/p`, `~a/p 1>2`, `-a/p`, and `-a/p (missed)`.
#[derive(Default)]
pub(in super::super) struct Recorder {
    pub(in super::super) store: Store<Pod>,
    pub(in super::super) log: Mutex<Vec<String>>,
}

impl Recorder {
    fn note(&self, change: &Change<Pod>) {
        let version = |pod: &Pod| pod.metadata.resource_version.clone().unwrap_or_default();
        let line = match change {
            Change::Added(new) => format!("+{}", new.key()),
            Change::Updated { old, new } => format!("~{} {}>{}", new.key(), version(old), version(new)),
            Change::Deleted { last, missed } => format!("-{}{}", last.key(), if *missed { " (missed)" } else { "" }),
        };
        self.log.lock().expect("no test panics under it").push(line);
    }

    pub(in super::super) fn take(&self) -> String {
        std::mem::take(&mut *self.log.lock().expect("no test panics under it")).join(", ")
    }
}

impl Sink for Arc<Recorder> {
    type Object = Pod;

    fn keys(&self) -> Vec<String> {
        self.store.keys()
    }

    fn apply(&self, object: Pod, _: Now) -> Result<(), CacheError> {
        self.store.apply(Arc::new(object)).iter().for_each(|change| self.note(change));
        Ok(())
    }

    fn delete(&self, last: Pod, _: Now) -> Result<(), CacheError> {
        self.note(&self.store.delete(Arc::new(last)));
        Ok(())
    }

    fn remove(&self, key: &str, _: Now) -> Result<(), CacheError> {
        self.store.remove(key).iter().for_each(|change| self.note(change));
        Ok(())
    }
}

pub(in super::super) fn now() -> Now {
    let clock: Clock = SimClock::new(jiff::Timestamp::UNIX_EPOCH).clock();
    clock.now()
}

/// Parses an item: `p 7` is pod p at version 7, `p 7 u` has UID u, and `p!` cannot be decoded.
fn item(text: &str) -> Item<Pod> {
    if let Some(name) = text.strip_suffix('!') {
        return Item::Unreadable { key: format!("default/{name}"), version: String::new() };
    }
    let mut words = text.split(' ');
    let name = words.next().expect("a name");
    let mut fixture = pod(name).set("metadata.resourceVersion", words.next().expect("a version").into());
    if let Some(uid) = words.next() {
        fixture = fixture.uid(uid);
    }
    Item::Read(Arc::unwrap_or_clone(fixture.build()))
}

/// Runs the steps and compares the log of the last one. `= p 1|q 1` replaces, `+ p 2` applies, `- p 3` deletes.
#[track_caller]
fn check(steps: &[&str], expected: &str) {
    let sink = Arc::new(Recorder::default());
    for step in steps {
        sink.take();
        let (verb, rest) = step.split_at(1);
        let outcome = match verb {
            "=" => {
                let mut items = BTreeMap::new();
                rest.split('|')
                    .map(str::trim)
                    .filter(|text| !text.is_empty())
                    .for_each(|text| collect(&mut items, item(text)));
                replace(&sink, items, now())
            }
            "+" => apply(&sink, item(rest.trim()), now()),
            _ => delete(&sink, item(rest.trim()), now()),
        };
        outcome.expect("the recorder never fails");
    }
    assert_eq!(sink.take(), expected, "{steps:?}");
}

#[test]
fn watch_events_become_adds_updates_and_deletes() {
    check(&["+ p 1"], "+default/p");
    check(&["+ p 1", "+ p 2"], "~default/p 1>2");
    check(&["+ p 1", "+ p 1"], "");
    check(&["+ p 1", "- p 2"], "-default/p");
    check(&["- p 2"], "-default/p");
    check(&["+ p 1", "+ p 5 other"], "-default/p (missed), +default/p");
}

#[test]
fn relist_delivers_missed_deletions() {
    check(&["= q 1|p 1"], "+default/p, +default/q");
    check(&["= p 1|q 1|r 1", "= q 1|r 2|s 1"], "-default/p (missed), ~default/r 1>2, +default/s");
    check(&["= p 1", "="], "-default/p (missed)");
    check(&["= p 1 u", "= p 2 v"], "-default/p (missed), +default/p");
    check(&["= p 1", "- p 2", "= p 1"], "+default/p");
}

#[test]
fn unreadable_objects_keep_their_last_state() {
    check(&["+ p!"], "");
    check(&["+ p 1", "+ p!", "+ p 3"], "~default/p 1>3");
    check(&["= p 1|q 1", "= p!"], "-default/q (missed)");
    check(&["= p 1|q 1", "= p!|q 2"], "~default/q 1>2");
    check(&["+ p 1", "- p!"], "-default/p (missed)");
    check(&["- p!"], "");
}
