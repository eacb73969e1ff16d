//! Events of the last minutes that came once. There is one for every pod that was bound, so they are kept as small as that
//! takes, and forgotten many at a time.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::series::Identity;

/// Texts are kept in pieces of about this many bytes: none of them is ever moved to grow.
const CHUNK: usize = 64 * 1024;

/// What the repetition of an event would not say, too.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct First<'a> {
    pub(super) name: &'a str,
    pub(super) note: &'a str,
    pub(super) time: Timestamp,
}

/// Events by what makes another one their repetition, in rounds: a round is forgotten as a whole.
#[derive(Debug, Default)]
pub(super) struct Once {
    /// By number, the oldest first.
    rounds: VecDeque<Round>,
}

#[derive(Debug, Default)]
struct Round {
    number: u64,
    entries: BTreeMap<Identity, Entry>,
    /// Names, each with the note after it. What belonged to an event that has become a series stays until the round goes.
    texts: Vec<String>,
}

/// Where the text of an event is, and when the event was.
#[derive(Clone, Copy, Debug)]
struct Entry {
    chunk: u32,
    name_from: u32,
    note_from: u32,
    note_to: u32,
    /// Since 1970.
    nanos: i64,
}

impl Once {
    pub(super) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Adds an event to the round of this number, which is the latest. Names and notes are far below 4 GiB.
    pub(super) fn insert(&mut self, number: u64, identity: Identity, event: &First<'_>) {
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
        round.entries.insert(identity, entry);
    }

    /// Takes an event out, if it is there, and hands it on.
    pub(super) fn take<T>(&mut self, identity: Identity, then: impl FnOnce(First<'_>) -> T) -> Option<T> {
        self.rounds
            .iter_mut()
            .find_map(|round| {
                let entry = round.entries.remove(&identity)?;
                let text = round.texts.get(entry.chunk as usize)?;
                let name = text.get(entry.name_from as usize..entry.note_from as usize)?;
                let note = text.get(entry.note_from as usize..entry.note_to as usize)?;
                let time = Timestamp::from_nanosecond(i128::from(entry.nanos)).ok()?;
                Some(First { name, note, time })
            })
            .map(then)
    }

    /// Whether there is such an event.
    pub(super) fn contains(&self, identity: Identity) -> bool {
        self.rounds.iter().any(|round| round.entries.contains_key(&identity))
    }

    /// Forgets the rounds of lower numbers.
    pub(super) fn forget_below(&mut self, number: u64) {
        while self.rounds.pop_front_if(|first| first.number < number).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(name: &'a str, note: &'a str) -> First<'a> {
        First { name, note, time: Timestamp::UNIX_EPOCH }
    }

    fn taken(once: &mut Once, identity: u64) -> Option<String> {
        once.take(Identity([identity, 0]), |event| format!("{}: {}", event.name, event.note))
    }

    #[test]
    fn an_event_is_taken_once() {
        let mut once = Once::default();
        once.insert(0, Identity([1, 0]), &first("a", "x"));
        once.insert(0, Identity([2, 0]), &first("b", ""));
        assert!(once.contains(Identity([1, 0])));
        assert_eq!(taken(&mut once, 2).as_deref(), Some("b: "));
        assert_eq!(taken(&mut once, 1).as_deref(), Some("a: x"));
        assert_eq!(taken(&mut once, 1), None);
    }

    #[test]
    fn rounds_are_forgotten_from_the_oldest_on() {
        let mut once = Once::default();
        for number in [0, 1, 4] {
            once.insert(number, Identity([number, 0]), &first("name", &number.to_string()));
        }
        once.forget_below(1);
        assert!(!once.contains(Identity([0, 0])));
        assert_eq!(taken(&mut once, 1).as_deref(), Some("name: 1"));
        once.forget_below(5);
        assert!(once.is_empty());
    }

    #[test]
    fn texts_fill_many_chunks() {
        let mut once = Once::default();
        let long = "ü".repeat(CHUNK);
        for identity in 0..3000 {
            once.insert(0, Identity([identity, 0]), &first(&identity.to_string(), &"é".repeat(100)));
        }
        once.insert(0, Identity([3000, 0]), &first("long", &long));
        assert!(once.rounds[0].texts.len() > 9);
        for identity in 0..3000 {
            assert_eq!(taken(&mut once, identity), Some(format!("{identity}: {}", "é".repeat(100))));
        }
        assert_eq!(taken(&mut once, 3000), Some(format!("long: {long}")));
    }
}
