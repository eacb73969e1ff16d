//! Memory of events that were recorded once in the last minutes. Every bound pod adds an event. So each event takes little space,
//! and old events are forgotten in batches.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::series::EventKey;

/// Size of a text buffer in bytes. A full buffer is never reallocated: the next text gets a new buffer.
const CHUNK: usize = 64 * 1024;

/// The fields of an event in which its repetitions differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SingleEvent<'a> {
    pub(super) name: &'a str,
    pub(super) note: &'a str,
    pub(super) time: Timestamp,
}

/// Events that were recorded once, by key and grouped in rounds. A round is forgotten as a whole.
#[derive(Debug, Default)]
pub(super) struct SingleEvents {
    /// Rounds in increasing order of their numbers.
    rounds: VecDeque<Round>,
}

#[derive(Debug, Default)]
struct Round {
    number: u64,
    entries: BTreeMap<EventKey, Entry>,
    /// Buffers with the names and notes of the events. The texts of a removed event stay until the round is forgotten.
    texts: Vec<String>,
}

/// Position of an event's texts, and the event's time.
#[derive(Clone, Copy, Debug)]
struct Entry {
    chunk: u32,
    name_from: u32,
    note_from: u32,
    note_to: u32,
    /// Time in nanoseconds since 1970.
    nanos: i64,
}

impl SingleEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Adds an event to the round with this number, which must be the latest round. Each text must be far smaller than 4 GiB.
    pub(super) fn insert(&mut self, number: u64, key: EventKey, event: &SingleEvent<'_>) {
        if self.rounds.back().is_none_or(|last| last.number < number) {
            self.rounds.push_back(Round { number, ..Round::default() });
        }
        let Some(round) = self.rounds.back_mut() else { return };
        let length = event.name.len() + event.note.len();
        if round.texts.last().is_none_or(|last| last.len() + length > last.capacity()) {
            round.texts.push(String::with_capacity(CHUNK.max(length)));
        }
        let chunk = round.texts.len() - 1;
        let text = &mut round.texts[chunk];
        let name_from = text.len();
        text.push_str(event.name);
        let note_from = text.len();
        text.push_str(event.note);
        let small = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let entry = Entry {
            chunk: small(chunk),
            name_from: small(name_from),
            note_from: small(note_from),
            note_to: small(text.len()),
            nanos: i64::try_from(event.time.as_nanosecond()).unwrap_or(i64::MAX),
        };
        round.entries.insert(key, entry);
    }

    /// Removes an event, and returns the result of `then` for the event. Returns `None` if there is no such event.
    pub(super) fn take<T>(&mut self, key: EventKey, then: impl FnOnce(SingleEvent<'_>) -> T) -> Option<T> {
        self.rounds
            .iter_mut()
            .find_map(|round| {
                let entry = round.entries.remove(&key)?;
                let text = round.texts.get(entry.chunk as usize)?;
                let name = text.get(entry.name_from as usize..entry.note_from as usize)?;
                let note = text.get(entry.note_from as usize..entry.note_to as usize)?;
                let time = Timestamp::from_nanosecond(i128::from(entry.nanos)).ok()?;
                Some(SingleEvent { name, note, time })
            })
            .map(then)
    }

    /// Returns whether an event with this key is remembered.
    pub(super) fn contains(&self, key: EventKey) -> bool {
        self.rounds.iter().any(|round| round.entries.contains_key(&key))
    }

    /// Forgets all rounds with numbers below `number`.
    pub(super) fn forget_below(&mut self, number: u64) {
        while self.rounds.pop_front_if(|first| first.number < number).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event<'a>(name: &'a str, note: &'a str) -> SingleEvent<'a> {
        SingleEvent { name, note, time: Timestamp::UNIX_EPOCH }
    }

    fn taken(once: &mut SingleEvents, key: u64) -> Option<String> {
        once.take(EventKey([key, 0]), |event| format!("{}: {}", event.name, event.note))
    }

    #[test]
    fn taking_an_event_removes_it() {
        let mut once = SingleEvents::default();
        once.insert(0, EventKey([1, 0]), &event("a", "x"));
        once.insert(0, EventKey([2, 0]), &event("b", ""));
        assert!(once.contains(EventKey([1, 0])));
        assert_eq!(taken(&mut once, 2).as_deref(), Some("b: "));
        assert_eq!(taken(&mut once, 1).as_deref(), Some("a: x"));
        assert_eq!(taken(&mut once, 1), None);
    }

    #[test]
    fn the_oldest_rounds_are_forgotten() {
        let mut once = SingleEvents::default();
        for number in [0, 1, 4] {
            once.insert(number, EventKey([number, 0]), &event("name", &number.to_string()));
        }
        once.forget_below(1);
        assert!(!once.contains(EventKey([0, 0])));
        assert_eq!(taken(&mut once, 1).as_deref(), Some("name: 1"));
        once.forget_below(5);
        assert!(once.is_empty());
    }

    #[test]
    fn texts_span_many_buffers() {
        let mut once = SingleEvents::default();
        let long = "ü".repeat(CHUNK);
        for key in 0..3000 {
            once.insert(0, EventKey([key, 0]), &event(&key.to_string(), &"é".repeat(100)));
        }
        once.insert(0, EventKey([3000, 0]), &event("long", &long));
        assert!(once.rounds[0].texts.len() > 9);
        for key in 0..3000 {
            assert_eq!(taken(&mut once, key), Some(format!("{key}: {}", "é".repeat(100))));
        }
        assert_eq!(taken(&mut once, 3000), Some(format!("long: {long}")));
    }
}
