//! Counts by topology key and domain.

use std::sync::Arc;

use crate::framework::NodeRef;
use crate::model::{Domains, NodeOrdinal, Snapshot};

/// The counts of one topology key.
#[derive(Clone, Debug)]
pub(super) struct KeyCounts {
    key: Box<str>,
    domains: Arc<Domains>,
    /// The counts by domain. Copies of the state share the list until one of them changes it.
    counts: Arc<Vec<i64>>,
    /// Number of domains whose count is not zero.
    nonzero: usize,
}

impl KeyCounts {
    /// Returns the count of the node's domain, or `None` if the node does not have the label.
    #[inline]
    pub(super) fn of(&self, node: NodeRef<'_>) -> Option<i64> {
        if let Some(ordinal) = node.ordinal {
            return Some(self.counts[self.domains.of(ordinal)?]);
        }
        self.of_labels(node)
    }

    /// Returns the count of the node's domain for a node that is not in the snapshot. The node's labels determine the domain.
    #[cold]
    fn of_labels(&self, node: NodeRef<'_>) -> Option<i64> {
        let value = node.node().labels().get(&*self.key)?;
        Some(self.domains.find(value).map_or(0, |domain| self.counts[domain]))
    }

    /// Adds `each` per pod to the counts of the domains of these nodes. Returns whether any of the nodes has the label.
    fn add(&mut self, nodes: impl Iterator<Item = (NodeOrdinal, usize)>, each: i64) -> bool {
        let counts = Arc::make_mut(&mut self.counts);
        let mut any = false;
        for (node, pods) in nodes {
            let Some(domain) = self.domains.of(node) else { continue };
            let before = counts[domain];
            // A node has too few pods for the conversion to wrap.
            let after = before.wrapping_add(each.wrapping_mul(pods.cast_signed() as i64));
            counts[domain] = after;
            self.nonzero = self.nonzero + usize::from(after != 0) - usize::from(before != 0);
            any = true;
        }
        any
    }
}

/// Counts by topology key and domain.
/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#topologyToMatchedTermCount @v1.36.3`.
#[derive(Clone, Debug, Default)]
pub(super) struct TopologyCounts(Vec<KeyCounts>);

impl TopologyCounts {
    /// Returns the counts of each key, sorted by key.
    pub(super) fn keys(&self) -> &[KeyCounts] {
        &self.0
    }

    /// Whether every count is zero.
    pub(super) fn is_zero(&self) -> bool {
        self.0.iter().all(|counts| counts.nonzero == 0)
    }

    /// Adds an entry for the key, even if nothing will be counted for it.
    pub(super) fn prepare(&mut self, snapshot: &Snapshot, key: &str) {
        self.of_key(snapshot, key);
    }

    /// Adds `each` per pod to the counts of the domains of these nodes. Each node is given with its number of pods. Returns
    /// whether any of the nodes has the label.
    pub(super) fn add(
        &mut self,
        snapshot: &Snapshot,
        key: &str,
        nodes: impl Iterator<Item = (NodeOrdinal, usize)>,
        each: i64,
    ) -> bool {
        self.of_key(snapshot, key).add(nodes, each)
    }

    fn of_key(&mut self, snapshot: &Snapshot, key: &str) -> &mut KeyCounts {
        let at = match self.0.binary_search_by(|counts| (*counts.key).cmp(key)) {
            Ok(at) => at,
            Err(at) => {
                let domains = snapshot.domains(key);
                let counts = Arc::new(vec![0; domains.len()]);
                self.0.insert(at, KeyCounts { key: key.into(), domains, counts, nonzero: 0 });
                at
            }
        };
        &mut self.0[at]
    }
}
