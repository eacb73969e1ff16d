//! From what a server tells of a kind to what changed in it: stores are kept, and each change goes to its handler once.
//!
//! Synchronous and without a network; the reflector calls it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decode::Item;
use crate::cache::CacheError;
use crate::clock::Now;
use crate::listers::Store;

/// Where the changes of one kind go. A handler fails only when the process has to end.
pub(super) trait Sink: Send + Sync + 'static {
    /// The kind.
    type Object: kube::Resource + Send + Sync + 'static;
    /// What is known of the kind; written here alone.
    fn store(&self) -> &Store<Self::Object>;
    /// An object came.
    fn added(&self, object: &Arc<Self::Object>, now: Now) -> Result<(), CacheError>;
    /// An object changed.
    fn updated(&self, old: &Arc<Self::Object>, new: &Arc<Self::Object>, now: Now) -> Result<(), CacheError>;
    /// An object went. If its deletion was `missed`, this is an earlier state.
    fn deleted(&self, object: &Arc<Self::Object>, missed: bool, now: Now) -> Result<(), CacheError>;
}

/// An object is there: it came, or changed. One with the version that is known already is kept but goes to no handler, and
/// one with another UID is another object, of which the first one's end was missed.
/// Follows `client-go/tools/cache/shared_informer.go#sharedIndexInformer.OnUpdate @v1.36.3`, but for the UID, which upstream
/// does not look at: it would end the process for a pod that was replaced by one of the same name on another node while no
/// watch was open.
pub(super) fn apply<S: Sink>(sink: &S, item: Item<S::Object>, now: Now) -> Result<(), CacheError> {
    let Item::Read(object) = item else { return Ok(()) };
    let new = Arc::new(object);
    let Some(old) = sink.store().apply(new.clone()) else { return sink.added(&new, now) };
    let (before, after) = (kube::Resource::meta(&*old), kube::Resource::meta(&*new));
    if before.uid != after.uid {
        sink.deleted(&old, true, now)?;
        return sink.added(&new, now);
    }
    if before.resource_version == after.resource_version {
        return Ok(());
    }
    sink.updated(&old, &new, now)
}

/// An object was deleted.
pub(super) fn delete<S: Sink>(sink: &S, item: Item<S::Object>, now: Now) -> Result<(), CacheError> {
    let known = sink.store().remove(&item.key());
    match (item, known) {
        (Item::Read(last), _) => sink.deleted(&Arc::new(last), false, now),
        (Item::Unreadable { .. }, Some(known)) => sink.deleted(&known, true, now),
        (Item::Unreadable { .. }, None) => Ok(()),
    }
}

/// These are all objects that there are: what else is known is gone, before anything is added or changed.
/// Follows `client-go/tools/cache/the_real_fifo.go#reconcileReplacement @v1.36.3`.
pub(super) fn replace<S: Sink>(sink: &S, items: BTreeMap<String, Item<S::Object>>, now: Now) -> Result<(), CacheError> {
    for key in sink.store().keys() {
        if !items.contains_key(&key)
            && let Some(gone) = sink.store().remove(&key)
        {
            sink.deleted(&gone, true, now)?;
        }
    }
    items.into_values().try_for_each(|item| apply(sink, item, now))?;
    Ok(())
}

/// Adds an item to those of a list, by its key.
pub(super) fn collect<K: kube::Resource>(items: &mut BTreeMap<String, Item<K>>, item: Item<K>) {
    items.insert(item.key(), item);
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::clock::{Clock, SimClock};
    use crate::k8s::Pod;
    use crate::testing::pod;

    /// Writes down what it is told: `+a/p`, `~a/p 1>2`, `-a/p`, and `-a/p (missed)`.
    #[derive(Default)]
    pub(in super::super) struct Recorder {
        pub(in super::super) store: Store<Pod>,
        pub(in super::super) log: Mutex<Vec<String>>,
    }

    impl Recorder {
        fn note(&self, line: String) {
            self.log.lock().expect("no test panics under it").push(line);
        }

        pub(in super::super) fn take(&self) -> String {
            std::mem::take(&mut *self.log.lock().expect("no test panics under it")).join(", ")
        }
    }

    impl Sink for Arc<Recorder> {
        type Object = Pod;

        fn store(&self) -> &Store<Pod> {
            &self.store
        }

        fn added(&self, object: &Arc<Pod>, _: Now) -> Result<(), CacheError> {
            self.note(format!("+{}", Pod::key(object)));
            Ok(())
        }

        fn updated(&self, old: &Arc<Pod>, new: &Arc<Pod>, _: Now) -> Result<(), CacheError> {
            let version = |pod: &Pod| pod.metadata.resource_version.clone().unwrap_or_default();
            self.note(format!("~{} {}>{}", Pod::key(new), version(old), version(new)));
            Ok(())
        }

        fn deleted(&self, object: &Arc<Pod>, missed: bool, _: Now) -> Result<(), CacheError> {
            self.note(format!("-{}{}", Pod::key(object), if missed { " (missed)" } else { "" }));
            Ok(())
        }
    }

    pub(in super::super) fn now() -> Now {
        let clock: Clock = SimClock::new(jiff::Timestamp::UNIX_EPOCH).clock();
        clock.now()
    }

    /// `p 7` is pod p at version 7, `p 7 u` with UID u, `p!` one that cannot be read.
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

    /// Steps: `= p 1|q 1` replaces, `+ p 2` applies, `- p 3` deletes. The log of the last one.
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
    fn objects_come_change_and_go() {
        check(&["+ p 1"], "+default/p");
        check(&["+ p 1", "+ p 2"], "~default/p 1>2");
        check(&["+ p 1", "+ p 1"], "");
        check(&["+ p 1", "- p 2"], "-default/p");
        check(&["- p 2"], "-default/p");
        check(&["+ p 1", "+ p 5 other"], "-default/p (missed), +default/p");
    }

    #[test]
    fn a_list_says_also_what_is_gone() {
        check(&["= q 1|p 1"], "+default/p, +default/q");
        check(&["= p 1|q 1|r 1", "= q 1|r 2|s 1"], "-default/p (missed), ~default/r 1>2, +default/s");
        check(&["= p 1", "="], "-default/p (missed)");
        check(&["= p 1 u", "= p 2 v"], "-default/p (missed), +default/p");
        check(&["= p 1", "- p 2", "= p 1"], "+default/p");
    }

    #[test]
    fn unreadable_objects_stay_as_they_were() {
        check(&["+ p!"], "");
        check(&["+ p 1", "+ p!", "+ p 3"], "~default/p 1>3");
        check(&["= p 1|q 1", "= p!"], "-default/q (missed)");
        check(&["= p 1|q 1", "= p!|q 2"], "~default/q 1>2");
        check(&["+ p 1", "- p!"], "-default/p (missed)");
        check(&["- p!"], "");
    }
}
