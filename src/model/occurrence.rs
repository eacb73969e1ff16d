//! The nodes that run pods with the same labels or the same affinity terms.

use std::sync::Arc;

use super::{AffinityTerms, LabelClass, NodeOrdinal};

/// Data that many pods share, identified by a dense number.
pub(super) trait Shared {
    /// The dense number of the data.
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

/// Number of pods on a node that share the same data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) pods: u32,
    /// The number of these pods that are not being deleted.
    pub(super) staying: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnNode {
    node: NodeOrdinal,
    count: Count,
}

/// The pods that share the same data: the nodes that they are on and the number of pods on each node.
#[derive(Debug)]
pub struct Occurrence<T> {
    shared: Arc<T>,
    /// The nodes, sorted by ordinal. A node without such pods has no entry.
    on: Vec<OnNode>,
}

impl<T> Occurrence<T> {
    /// The data that the pods share.
    pub fn shared(&self) -> &Arc<T> {
        &self.shared
    }

    /// The nodes with such pods, by ascending ordinal. Each node comes with the number of such pods on it, which is at least 1.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeOrdinal, usize)> {
        self.on.iter().map(|on| (on.node, on.count.pods as usize))
    }

    /// The nodes with such pods, by ascending ordinal. Each node comes with the number of such pods on it that are not being
    /// deleted, which may be 0.
    pub fn staying(&self) -> impl ExactSizeIterator<Item = (NodeOrdinal, usize)> {
        self.on.iter().map(|on| (on.node, on.count.staying as usize))
    }

    fn find(&self, node: NodeOrdinal) -> Result<usize, usize> {
        self.on.binary_search_by_key(&node, |on| on.node)
    }
}

impl<T> Clone for Occurrence<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), on: self.on.clone() }
    }
}

/// All pods of a snapshot, indexed by the number of the data that they share.
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

    /// Updates the counts of one node. `before` has the old counts and `after` the new counts. Both are sorted by the number of
    /// the shared data.
    pub(super) fn update<'a>(
        &mut self,
        node: NodeOrdinal,
        before: impl Iterator<Item = (usize, Count)>,
        after: impl Iterator<Item = (&'a Arc<T>, Count)>,
    ) where
        T: 'a,
    {
        let mut before = before.peekable();
        for (shared, count) in after {
            while let Some((gone, _)) = before.next_if(|(number, _)| *number < shared.number()) {
                self.remove(gone, node);
            }
            if before.next_if(|(number, _)| *number == shared.number()).is_none_or(|(_, known)| known != count) {
                self.set(shared, node, count);
            }
        }
        before.for_each(|(gone, _)| self.remove(gone, node));
    }

    fn set(&mut self, shared: &Arc<T>, node: NodeOrdinal, count: Count) {
        let number = shared.number();
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        let occurrence = self.0[number].get_or_insert_with(|| Occurrence { shared: shared.clone(), on: Vec::new() });
        match occurrence.find(node) {
            Ok(at) => occurrence.on[at].count = count,
            Err(at) => occurrence.on.insert(at, OnNode { node, count }),
        }
    }

    fn remove(&mut self, number: usize, node: NodeOrdinal) {
        let Some(entry) = self.0.get_mut(number) else { return };
        let Some(occurrence) = entry else { return };
        if let Ok(at) = occurrence.find(node) {
            occurrence.on.remove(at);
        }
        if occurrence.on.is_empty() {
            *entry = None;
        }
    }
}
