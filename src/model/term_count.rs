//! Number of pods on a node for each set of affinity terms.

use std::sync::Arc;

use super::occurrence::Count;
use super::{AffinityTerms, PodInfo};

/// Number of pods on a node that share one set of terms.
#[derive(Clone, Debug)]
pub struct TermCount {
    terms: Arc<AffinityTerms>,
    pods: u32,
}

impl TermCount {
    /// The terms that the pods share.
    pub fn terms(&self) -> &Arc<AffinityTerms> {
        &self.terms
    }

    /// Number of pods with these terms.
    pub fn pods(&self) -> usize {
        self.pods as usize
    }

    /// Returns the count of these pods. Both numbers include pods that are being deleted, because a `TermCount` does not tell
    /// them apart.
    pub(super) fn count(&self) -> Count {
        Count { pods: self.pods, staying: self.pods }
    }
}

/// The counts of one node, sorted by the number of the set. A set without pods has no entry.
#[derive(Clone, Debug, Default)]
pub(super) struct TermCounts(Vec<TermCount>);

impl TermCounts {
    pub(super) fn as_slice(&self) -> &[TermCount] {
        &self.0
    }

    pub(super) fn add(&mut self, pod: &PodInfo) {
        let Some(terms) = pod.affinity_terms() else { return };
        match self.find(terms) {
            Ok(at) => self.0[at].pods += 1,
            Err(at) => self.0.insert(at, TermCount { terms: terms.clone(), pods: 1 }),
        }
    }

    /// Removes a pod that was added before.
    pub(super) fn sub(&mut self, pod: &PodInfo) {
        let Some(Ok(at)) = pod.affinity_terms().map(|terms| self.find(terms)) else { return };
        self.0[at].pods -= 1;
        if self.0[at].pods == 0 {
            self.0.remove(at);
        }
    }

    fn find(&self, terms: &AffinityTerms) -> Result<usize, usize> {
        self.0.binary_search_by_key(&terms.number(), |count| count.terms.number())
    }
}
