//! Correlation of core/v1 events, to save writes: counts repetitions, combines similar events, and drops spam.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use jiff::Timestamp;
use lru::LruCache;

use super::event::Event;
use crate::client::RateLimiter;
use crate::clock::{Mono, Now};

/// Capacity of each LRU map, in entries. Follows `client-go/tools/record/events_cache.go#maxLruCacheEntries @v1.36.3`.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(4096).expect("more than nothing");

/// Number of different messages from which on similar events are combined.
/// Follows `client-go/tools/record/events_cache.go#defaultAggregateMaxEvents @v1.36.3`.
const MAX_SIMILAR: usize = 10;

/// Similar events are combined only if the time between two of them is at most this.
/// Follows `client-go/tools/record/events_cache.go#defaultAggregateIntervalInSeconds @v1.36.3`.
const SIMILAR_FOR: Duration = Duration::from_mins(10);

/// Burst of the rate limit for events about one object.
/// Follows `client-go/tools/record/events_cache.go#defaultSpamBurst @v1.36.3`.
const SPAM_BURST: u32 = 25;

/// Rate limit for events about one object, in events per second: one event in five minutes.
/// Follows `client-go/tools/record/events_cache.go#defaultSpamQPS @v1.36.3`.
const SPAM_QPS: f32 = 1.0 / 300.0;

/// Remembers recent events, and decides how a new event is written.
/// Follows `client-go/tools/record/events_cache.go#EventCorrelator @v1.36.3`.
pub(super) struct Correlator {
    similar: LruCache<String, Similar>,
    seen: LruCache<String, Option<ObservedEvent>>,
    spam: LruCache<String, Option<RateLimiter>>,
}

/// Recent events that differ only in their message.
struct Similar {
    messages: BTreeSet<String>,
    last: Mono,
}

/// An event that was recorded before, with its number of occurrences.
#[derive(Clone)]
struct ObservedEvent {
    name: String,
    count: u32,
    first: Timestamp,
}

/// An event after correlation, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Correlated {
    pub(super) name: String,
    pub(super) message: String,
    /// Number of occurrences of the event. Above 1 the event exists and is patched.
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self { similar: LruCache::new(CAPACITY), seen: LruCache::new(CAPACITY), spam: LruCache::new(CAPACITY) }
    }

    /// Returns the event to write, or `None` if the rate limit of the object is exceeded. `combined_name` returns the name for an
    /// event that combines several similar ones. Follows `client-go/tools/record/events_cache.go#EventCorrelate @v1.36.3`.
    pub(super) fn correlate(
        &mut self,
        event: &Event,
        now: Now,
        combined_name: impl FnOnce() -> String,
    ) -> Option<Correlated> {
        let object = object_key(event);
        let similar_key = format!("{object}{}{}{}", event.note.reason, event.controller, event.instance);
        let (key, name, message, at) = if self.is_flood(similar_key.clone(), event, now.mono) {
            let message = format!("(combined from similar events): {}", event.note.note);
            (similar_key, combined_name(), message, now.wall)
        } else {
            let key = format!("{object}{}{}", event.note.reason, event.note.note);
            (key, event.name.clone(), event.note.note.clone(), event.time)
        };
        let seen = self.seen.get_or_insert_mut(key, || None);
        let observed = match seen {
            Some(seen) => ObservedEvent { count: seen.count.saturating_add(1), ..seen.clone() },
            None => ObservedEvent { name, count: 1, first: at },
        };
        *seen = Some(observed.clone());
        let bucket = self.spam.get_or_insert_mut(object, || RateLimiter::new(SPAM_QPS, SPAM_BURST));
        if !bucket.as_ref().is_none_or(|bucket| bucket.try_acquire(now.mono)) {
            return None;
        }
        let ObservedEvent { name, count, first } = observed;
        Some(Correlated { name, message, count, first, last: at })
    }

    /// Returns whether the event is combined, because too many events that differ only in their message were recorded.
    /// Follows `client-go/tools/record/events_cache.go#EventAggregate @v1.36.3`.
    fn is_flood(&mut self, key: String, event: &Event, now: Mono) -> bool {
        let similar = self.similar.get_or_insert_mut(key, || Similar { messages: BTreeSet::new(), last: now });
        if now.since(similar.last) > SIMILAR_FOR {
            similar.messages.clear();
        }
        similar.messages.insert(event.note.note.clone());
        similar.last = now;
        let flood = similar.messages.len() >= MAX_SIMILAR;
        if flood {
            similar.messages.pop_first();
        }
        flood
    }
}

/// Returns the rate limit's key: source, object and type of the event.
/// Follows `client-go/tools/record/events_cache.go#getSpamKey @v1.36.3`.
fn object_key(event: &Event) -> String {
    let object = &event.regarding;
    let kind = if event.note.kind == super::EventType::Normal { "Normal" } else { "Warning" };
    [&event.controller, &*object.kind, &object.namespace, &object.name, &object.uid, &object.api_version, kind].concat()
}

#[cfg(test)]
mod tests {
    use super::super::event::{EventNote, EventType, ObjectRef};
    use super::*;

    fn event(note: &str, now: Now) -> Event {
        let (name, time) = (format!("first-{note}"), now.wall);
        let note = EventNote { kind: EventType::Normal, reason: "R".into(), action: "A".into(), note: note.to_owned() };
        let (controller, instance) = ("c".into(), "i".into());
        Event { name, time, controller, instance, regarding: ObjectRef::default(), related: None, note }
    }

    fn at(seconds: u64) -> Now {
        let start = Now { mono: Mono::ZERO, wall: Timestamp::UNIX_EPOCH };
        start + Duration::from_secs(seconds)
    }

    fn correlate(correlator: &mut Correlator, note: &str, seconds: u64) -> Option<(String, u32)> {
        let now = at(seconds);
        let combined = || "combined".to_owned();
        correlator.correlate(&event(note, now), now, combined).map(|event| (event.name, event.count))
    }

    #[test]
    fn repetitions_are_counted() {
        let mut correlator = Correlator::new();
        let first = |count| Some(("first-a".to_owned(), count));
        assert_eq!(correlate(&mut correlator, "a", 0), first(1));
        assert_eq!(correlate(&mut correlator, "a", 5), first(2));
        assert_eq!(correlate(&mut correlator, "b", 5), Some(("first-b".to_owned(), 1)));
        let third = correlator.correlate(&event("a", at(9)), at(9), String::new).unwrap();
        assert_eq!((third.count, third.first, third.last), (3, at(0).wall, at(9).wall));
    }

    #[test]
    fn many_different_messages_are_combined() {
        let mut correlator = Correlator::new();
        for number in 0..9 {
            assert_eq!(correlate(&mut correlator, &format!("m{number}"), 0).unwrap().0, format!("first-m{number}"));
        }
        assert_eq!(correlate(&mut correlator, "m9", 1), Some(("combined".to_owned(), 1)));
        let next = correlator.correlate(&event("n", at(2)), at(2), || "other".to_owned()).unwrap();
        assert_eq!((next.name.as_str(), next.count), ("combined", 2));
        assert_eq!(next.message, "(combined from similar events): n");
        assert_eq!(correlate(&mut correlator, "later", 603).unwrap().0, "first-later", "ten quiet minutes end it");
    }

    #[test]
    fn spam_is_dropped() {
        let mut correlator = Correlator::new();
        let sent = (0..40).filter(|_| correlate(&mut correlator, "a", 0).is_some()).count();
        assert_eq!(sent, 25);
        assert_eq!(correlate(&mut correlator, "a", 299), None);
        assert!(correlate(&mut correlator, "a", 300).is_some(), "one more in five minutes");
        assert_eq!(correlate(&mut correlator, "a", 300), None);
    }
}
