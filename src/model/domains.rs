//! Topology domains: nodes grouped by the value of one label.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::{NodeInfo, NodeOrdinal};

/// Maximum number of topology keys whose domains are cached. Clusters use only a few keys, but every pod can name another key.
const KEPT: usize = 32;

/// Marks a node without the label.
const NONE: u32 = u32::MAX;

/// The nodes of a snapshot grouped by the value of one label, the topology key. Each domain has a dense number, so counts per
/// domain fit in an array.
#[derive(Debug, Default)]
pub struct Domains {
    /// The domain of each node, indexed by ordinal.
    of: Vec<u32>,
    values: Vec<Arc<str>>,
}

impl Domains {
    fn new(key: &str, nodes: &[Arc<NodeInfo>]) -> Self {
        // Used for look-ups only, never iterated.
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut domains = Self::default();
        for node in nodes {
            let Some(value) = node.node().labels().get(key) else {
                domains.of.push(NONE);
                continue;
            };
            let domain = *known.entry(value).or_insert_with(|| {
                domains.values.push(Arc::from(value.as_str()));
                u32::try_from(domains.values.len() - 1).expect("a cluster has fewer nodes")
            });
            domains.of.push(domain);
        }
        domains
    }

    /// The domain of this node, or `None` if the node does not have the label.
    pub fn of(&self, node: NodeOrdinal) -> Option<usize> {
        self.of.get(node.index()).filter(|domain| **domain != NONE).map(|domain| *domain as usize)
    }

    /// Number of topology domains.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no node has the label.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the domain with this value of the label, by a linear search over all values.
    pub fn find(&self, value: &str) -> Option<usize> {
        self.values.iter().position(|known| **known == *value)
    }

    /// The value of the label in a domain.
    pub fn value(&self, domain: usize) -> &str {
        &self.values[domain]
    }
}

/// The cached domains of each topology key in use. The cache is valid until nodes are added, removed or relabelled. The lock
/// guards the map. It is held while the domains of a new key are computed.
#[derive(Debug, Default)]
pub(super) struct DomainsByKey(Mutex<BTreeMap<Arc<str>, Arc<Domains>>>);

impl DomainsByKey {
    pub(super) fn get(&self, key: &str, nodes: &[Arc<NodeInfo>]) -> Arc<Domains> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(domains) = known.get(key) {
            return domains.clone();
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let domains = Arc::new(Domains::new(key, nodes));
        known.insert(Arc::from(key), domains.clone());
        domains
    }

    /// Removes all cached domains. Called when nodes were added or removed or their labels changed.
    pub(super) fn clear(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Clone for DomainsByKey {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}
