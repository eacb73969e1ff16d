//! A soft constraint's domains, and how many pods each has.

use std::sync::Arc;

use super::constraints::{Constraint, HOSTNAME};
use crate::framework::NodeRef;
use crate::model::{Domains, NodeOrdinal, Snapshot};

/// A soft constraint with the pods of each domain.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) constraint: Constraint,
    /// Whether a domain is a node, whatever its hostname.
    pub(super) by_node: bool,
    domains: Arc<Domains>,
    /// The domain that nodes without the label are taken for, where they count: that of the empty value.
    unlabelled: usize,
    /// Values that no node of the snapshot has; their domains come after all others.
    strange: Vec<String>,
    /// By domain, or by ordinal where each node is one; none for a domain without a feasible node.
    pods: Vec<Option<i64>>,
    /// What the pods of a domain are multiplied with, so that a topology with few domains is not drowned by one with many.
    weight: f64,
}

impl Topology {
    /// Without a domain that counts. `requires_label` says that nodes without it do not count.
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

    /// Lets the domains of these feasible nodes count, and weighs the constraint by how many there are.
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

    /// The pods in the domain of this node of the snapshot, to add to; none if no feasible node is in it.
    pub(super) fn pods_at(&mut self, node: NodeOrdinal) -> Option<&mut i64> {
        let domain = if self.by_node { node.index() } else { self.domain_at(node) };
        self.pods.get_mut(domain)?.as_mut()
    }

    /// The pods in a feasible node's domain.
    pub(super) fn pods(&mut self, node: NodeRef<'_>) -> i64 {
        let domain = match node.ordinal {
            Some(ordinal) if self.by_node => ordinal.index(),
            _ => self.domain(node),
        };
        self.pods.get(domain).copied().flatten().unwrap_or(0)
    }

    /// The points for so many pods. Differences up to the skew that is allowed are watered down by what is added.
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
