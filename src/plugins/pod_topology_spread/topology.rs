//! The domains of a soft constraint with their pod counts.

use std::sync::Arc;

use super::constraints::{Constraint, HOSTNAME};
use crate::framework::NodeRef;
use crate::model::{Domains, NodeOrdinal, Snapshot};

/// A soft constraint with the pod counts of its domains.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) constraint: Constraint,
    /// Whether each node is a domain of its own, whatever its hostname label says.
    pub(super) by_node: bool,
    domains: Arc<Domains>,
    /// Index of the domain of nodes without the label. If such nodes count and a node has the empty value, this is the domain of
    /// the empty value. Otherwise, this is an extra domain after the domains of all values.
    unlabelled: usize,
    /// Label values that no node of the snapshot has. The domains of these values come after all other domains.
    strange: Vec<String>,
    /// The pod counts by domain, or by ordinal if each node is a domain. `None` for a domain without a feasible node.
    pods: Vec<Option<i64>>,
    /// Factor for the pod counts, so that a topology with few domains matters as much as one with many.
    weight: f64,
}

impl Topology {
    /// Returns the topology before [`Self::weigh`] marks the domains that count. If `requires_label` is set, nodes without the
    /// label do not count.
    pub(super) fn new(constraint: Constraint, snapshot: &Snapshot, requires_label: bool) -> Self {
        let domains = snapshot.domains(&constraint.topology_key);
        let by_node = &*constraint.topology_key == HOSTNAME;
        let nameless = if requires_label || by_node { None } else { domains.find("") };
        Self {
            by_node,
            unlabelled: nameless.unwrap_or(domains.len()),
            strange: Vec::new(),
            pods: if by_node { vec![Some(0); snapshot.len()] } else { vec![None; domains.len() + 1] },
            weight: 0.0,
            constraint,
            domains,
        }
    }

    /// Whether the node has the label.
    pub(super) fn has(&self, node: NodeRef<'_>) -> bool {
        match node.ordinal {
            Some(ordinal) => self.has_at(ordinal),
            None => node.node().labels().contains_key(&*self.constraint.topology_key),
        }
    }

    /// Whether this node of the snapshot has the label.
    pub(super) fn has_at(&self, node: NodeOrdinal) -> bool {
        self.domains.of(node).is_some()
    }

    /// Marks the domains of these feasible nodes as counting, and sets the weight of the constraint from their number.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#topologyNormalizingWeight @v1.36.3`.
    pub(super) fn weigh<'n>(&mut self, feasible: impl Iterator<Item = NodeRef<'n>>) {
        let size = if self.by_node {
            feasible.count()
        } else {
            for node in feasible {
                let domain = self.domain(node);
                self.pods[domain] = Some(0);
            }
            self.pods.iter().flatten().count()
        };
        #[expect(clippy::cast_precision_loss, reason = "a cluster has few domains")]
        let size = size as f64;
        self.weight = (size + 2.0).ln();
    }

    /// Returns the pod count of this node's domain for adding to it. `None` if the domain has no feasible node.
    pub(super) fn pods_at(&mut self, node: NodeOrdinal) -> Option<&mut i64> {
        let domain = if self.by_node { node.index() } else { self.domain_at(node) };
        self.pods.get_mut(domain)?.as_mut()
    }

    /// Returns the pod count of a feasible node's domain.
    pub(super) fn pods(&mut self, node: NodeRef<'_>) -> i64 {
        let domain = match node.ordinal {
            Some(ordinal) if self.by_node => ordinal.index(),
            _ => self.domain(node),
        };
        self.pods.get(domain).copied().flatten().unwrap_or(0)
    }

    /// Returns the raw score for this pod count. Adding the maximum skew makes differences within the skew matter less.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#scoreForCount @v1.36.3`.
    pub(super) fn points(&self, pods: i64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a cluster has few pods")]
        let pods = pods as f64;
        pods * self.weight + f64::from(self.constraint.max_skew.wrapping_sub(1))
    }

    fn domain_at(&self, node: NodeOrdinal) -> usize {
        self.domains.of(node).unwrap_or(self.unlabelled)
    }

    fn domain(&mut self, node: NodeRef<'_>) -> usize {
        if let Some(ordinal) = node.ordinal {
            return self.domain_at(ordinal);
        }
        let value = node.node().labels().get(&*self.constraint.topology_key);
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return self.domains.find("").unwrap_or(self.unlabelled);
        };
        if let Some(domain) = self.domains.find(value) {
            return domain;
        }
        let at = self.strange.iter().position(|known| known == value).unwrap_or_else(|| {
            self.strange.push(value.clone());
            self.pods.push(None);
            self.strange.len() - 1
        });
        self.domains.len() + 1 + at
    }
}
