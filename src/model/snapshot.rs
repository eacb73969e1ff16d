//! What one scheduling cycle sees of the cluster.

use std::collections::HashMap;
use std::sync::Arc;

use super::NodeInfo;

/// The nodes as they were when a cycle began, in the order in which they are tried: zone by turns. The cache brings it up
/// to date in place between cycles; during a cycle it does not change.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    nodes: Vec<Arc<NodeInfo>>,
    /// Position in `nodes` by name. Looked up only, never iterated.
    positions: HashMap<Arc<str>, usize>,
    /// The newest generation that the snapshot holds.
    generation: u64,
}

impl Snapshot {
    /// A snapshot of these nodes, in this order, as tests and benchmarks make it.
    pub fn from_nodes(nodes: Vec<Arc<NodeInfo>>) -> Self {
        let mut snapshot = Self::default();
        snapshot.set_nodes(nodes);
        snapshot
    }

    /// The nodes in the order in which they are tried.
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where node `name` stands in [`Self::nodes`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// Node `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.position(name).map(|at| &self.nodes[at])
    }

    /// The newest generation that the snapshot holds.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Records the newest generation that the snapshot holds.
    pub fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// Replaces one node by its newer state.
    pub fn replace(&mut self, position: usize, node: Arc<NodeInfo>) {
        debug_assert_eq!(self.nodes[position].name(), node.name(), "a node keeps its place");
        self.nodes[position] = node;
    }

    /// Replaces the list, when nodes came, went or changed places.
    pub fn set_nodes(&mut self, nodes: Vec<Arc<NodeInfo>>) {
        self.positions.clear();
        self.positions.extend(nodes.iter().enumerate().map(|(at, node)| (node.name_arc().clone(), at)));
        self.nodes = nodes;
    }
}
