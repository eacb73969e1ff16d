//! Topology domains: the nodes by the value of one label.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::{NodeInfo, NodeOrdinal};

/// Keys whose domains are kept. Clusters use a handful; a thousand pods may name a thousand others.
const KEPT: usize = 32;

/// Stands for a node without the label.
const NONE: u32 = u32::MAX;

/// The nodes of a snapshot by the value of one label, the topology key. A domain has a dense number, so that what is counted a
/// domain stands in an array.
#[derive(Debug, Default)]
pub struct Domains {
    /// The domain of each node, by ordinal.
    of: Vec<u32>,
    values: Vec<Arc<str>>,
}

impl Domains {
    fn new(key: &str, nodes: &[Arc<NodeInfo>]) -> Self {
        // Looked up only, never iterated.
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

    /// The domain of this node of the snapshot, or none if the node does not have the label.
    pub fn of(&self, node: NodeOrdinal) -> Option<usize> {
        self.of.get(node.index()).filter(|domain| **domain != NONE).map(|domain| *domain as usize)
    }

    /// How many domains there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no node has the label.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The domain in which the label has this value. Looks through all values.
    pub fn find(&self, value: &str) -> Option<usize> {
        self.values.iter().position(|known| **known == *value)
    }

    /// The label's value in a domain.
    pub fn value(&self, domain: usize) -> &str {
        &self.values[domain]
    }
}

/// The domains of the keys that were asked for, until a node's labels change. The lock guards the map, and is held while a
/// key's domains are worked out for the first time.
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

    /// Forgets everything, when nodes came, went or have other labels.
    pub(super) fn clear(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Clone for DomainsByKey {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}
