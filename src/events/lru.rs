//! A map with a limited capacity that evicts the least recently used entry.

use std::collections::BTreeMap;

/// A map of at most `capacity` entries. A new entry beyond that evicts the one least recently written or read.
/// Follows `k8s.io/utils/lru/lru.go#Cache`.
pub(super) struct Lru<V> {
    capacity: usize,
    uses: u64,
    entries: BTreeMap<String, (u64, V)>,
    /// Keys by last use.
    order: BTreeMap<u64, String>,
}

impl<V> Lru<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, uses: 0, entries: BTreeMap::new(), order: BTreeMap::new() }
    }

    /// Returns the entry, created if it does not exist. The entry becomes the most recently used.
    pub(super) fn entry(&mut self, key: String, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        let uses = self.uses;
        if !self.entries.contains_key(&key)
            && self.entries.len() >= self.capacity
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.order.insert(uses, key.clone());
        let (last, value) = self.entries.entry(key).or_insert_with(|| (uses, make()));
        if *last != uses {
            self.order.remove(last);
            *last = uses;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut lru = Lru::new(2);
        for key in ["a", "b", "a", "c"] {
            *lru.entry(key.to_owned(), || 0) += 1;
        }
        let mut count = |key: &str| *lru.entry(key.to_owned(), || 0);
        assert_eq!((count("a"), count("c"), count("b")), (2, 1, 0));
        assert_eq!((lru.entries.len(), lru.order.len()), (2, 2));
    }
}
