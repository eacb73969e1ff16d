//! Where in a snapshot the pods are, by what they have in common.

use std::sync::Arc;

use super::{AffinityTerms, LabelClass};

/// What many pods share, under a dense number.
pub(super) trait Shared {
    /// The number.
    fn number(&self) -> usize;
}

impl Shared for LabelClass {
    fn number(&self) -> usize {
        self.id().index()
    }
}

impl Shared for AffinityTerms {
    fn number(&self) -> usize {
        self.number()
    }
}

/// How many of the pods are on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) pods: u32,
    /// Those of them that are not being deleted.
    pub(super) staying: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnNode {
    position: u32,
    count: Count,
}

/// The pods that share one thing: on which nodes they are, and how many of them.
#[derive(Debug)]
pub struct Occurrence<T> {
    shared: Arc<T>,
    /// Sorted by position; a node without such pods is not among them.
    on: Vec<OnNode>,
}

impl<T> Occurrence<T> {
    /// What the pods share.
    pub fn shared(&self) -> &Arc<T> {
        &self.shared
    }

    /// The positions of the nodes, ascending, each with how many of the pods it has: one at least.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        self.on.iter().map(|on| (on.position as usize, on.count.pods as usize))
    }

    /// The same with how many of them are not being deleted, which may be none.
    pub fn staying(&self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        self.on.iter().map(|on| (on.position as usize, on.count.staying as usize))
    }

    fn find(&self, position: u32) -> Result<usize, usize> {
        self.on.binary_search_by_key(&position, |on| on.position)
    }
}

impl<T> Clone for Occurrence<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), on: self.on.clone() }
    }
}

/// All pods of a snapshot, by the number of what they share.
#[derive(Debug)]
pub(super) struct Occurrences<T>(Vec<Option<Occurrence<T>>>);

impl<T> Clone for Occurrences<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Occurrences<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Shared> Occurrences<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Occurrence<T>> {
        self.0.iter().flatten()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Brings one node up to date: what it had, by number, and what it has, both sorted by number.
    pub(super) fn update<'a>(
        &mut self,
        position: usize,
        before: impl Iterator<Item = (usize, Count)>,
        after: impl Iterator<Item = (&'a Arc<T>, Count)>,
    ) where
        T: 'a,
    {
        let position = u32::try_from(position).expect("a cluster has fewer nodes");
        let mut before = before.peekable();
        for (shared, count) in after {
            while let Some((gone, _)) = before.next_if(|(number, _)| *number < shared.number()) {
                self.remove(gone, position);
            }
            if before.next_if(|(number, _)| *number == shared.number()).is_none_or(|(_, known)| known != count) {
                self.set(shared, position, count);
            }
        }
        before.for_each(|(gone, _)| self.remove(gone, position));
    }

    fn set(&mut self, shared: &Arc<T>, position: u32, count: Count) {
        let number = shared.number();
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        let occurrence = self.0[number].get_or_insert_with(|| Occurrence { shared: shared.clone(), on: Vec::new() });
        match occurrence.find(position) {
            Ok(at) => occurrence.on[at].count = count,
            Err(at) => occurrence.on.insert(at, OnNode { position, count }),
        }
    }

    fn remove(&mut self, number: usize, position: u32) {
        let Some(entry) = self.0.get_mut(number) else { return };
        let Some(occurrence) = entry else { return };
        if let Ok(at) = occurrence.find(position) {
            occurrence.on.remove(at);
        }
        if occurrence.on.is_empty() {
            *entry = None;
        }
    }
}
