//! What a plugin is given: the cycle, a block of nodes, a list of scores.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{CycleState, PluginError, Rejection, Verdict};
use crate::clock::Now;
use crate::model::{NodeInfo, PodInfo, Snapshot};

/// One attempt to schedule one pod, as its plugins see it. The serial points get it mutable and may write the state; the
/// parallel ones share it.
#[derive(Debug)]
pub struct CycleContext<'a> {
    /// The pod.
    pub pod: &'a Arc<PodInfo>,
    /// The nodes as they were when the attempt began.
    pub snapshot: &'a Snapshot,
    /// What plugins remember during the attempt.
    pub state: &'a mut CycleState,
    /// When the attempt began.
    pub now: Now,
}

/// A plugin's own slot for one node in one cycle: what `Filter` found out and `Score` or `Reserve` needs later.
#[derive(Default)]
pub struct Scratch(Option<Box<dyn Any + Send + Sync>>);

impl Scratch {
    /// What the slot holds.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Puts a value into the slot.
    pub fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0 = Some(Box::new(value));
    }

    /// Whether the slot holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Scratch(empty)" } else { "Scratch(filled)" })
    }
}

/// What became of a node in a block.
#[derive(Debug)]
pub(crate) enum NodeOutcome {
    /// No plugin has rejected it so far.
    Feasible,
    /// The plugin at this position of the profile's filters rejected it.
    Rejected(usize, Rejection),
    /// The plugin at this position failed on it.
    Failed(usize, PluginError),
}

/// A block of nodes on its way through the filters. A node that a plugin rejects leaves the block, so the plugins after
/// it never see it, and the first one in configured order owns the reason.
#[derive(Debug)]
pub struct Candidates<'a> {
    nodes: &'a [&'a NodeInfo],
    /// By node; empty as long as every node is feasible, as most are in most cycles.
    outcomes: Vec<NodeOutcome>,
    /// Positions of the nodes that are still feasible, in order.
    alive: Vec<u32>,
    /// Filled scratch slots of this block: node position, plugin position, slot.
    scratch: Vec<(u32, usize, Scratch)>,
    plugin: usize,
}

impl<'a> Candidates<'a> {
    /// A block in which every node is still feasible.
    pub(crate) fn new(nodes: &'a [&'a NodeInfo]) -> Self {
        let count = u32::try_from(nodes.len()).expect("a block is small");
        Self { nodes, outcomes: Vec::new(), alive: (0..count).collect(), scratch: Vec::new(), plugin: 0 }
    }

    /// Says which plugin decides next.
    pub(crate) fn begin(&mut self, plugin: usize) {
        self.plugin = plugin;
    }

    /// Ends the block for the plugin: `error` is laid on the first node that is still in it.
    pub(crate) fn fail(&mut self, error: PluginError) {
        if !self.alive.is_empty() {
            let first = self.alive.remove(0);
            let outcome = NodeOutcome::Failed(self.plugin, error);
            record(&mut self.outcomes, self.nodes.len(), first, outcome);
        }
    }

    /// What became of each node, or nothing if all are feasible; and the scratch slots that were filled.
    pub(crate) fn finish(self) -> (Vec<NodeOutcome>, Vec<(u32, usize, Scratch)>) {
        (self.outcomes, self.scratch)
    }

    /// How many nodes are still in the block.
    pub fn len(&self) -> usize {
        self.alive.len()
    }

    /// Whether no node is left.
    pub fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// Decides each node that is still in the block; those that `decide` rejects leave it.
    pub fn retain(&mut self, mut decide: impl FnMut(&NodeInfo, &mut Scratch) -> Result<Verdict, PluginError>) {
        let Self { nodes, outcomes, alive, scratch, plugin } = self;
        alive.retain(|&at| {
            let mut slot = Scratch::default();
            let outcome = match decide(nodes[at as usize], &mut slot) {
                Ok(Verdict::Pass) => NodeOutcome::Feasible,
                Ok(Verdict::Reject(rejection)) => NodeOutcome::Rejected(*plugin, rejection),
                Err(error) => NodeOutcome::Failed(*plugin, error),
            };
            if !slot.is_empty() {
                scratch.push((at, *plugin, slot));
            }
            let feasible = matches!(outcome, NodeOutcome::Feasible);
            if !feasible {
                record(outcomes, nodes.len(), at, outcome);
            }
            feasible
        });
    }
}

/// Notes what became of the node at this position, of so many.
fn record(outcomes: &mut Vec<NodeOutcome>, nodes: usize, at: u32, outcome: NodeOutcome) {
    if outcomes.is_empty() {
        outcomes.resize_with(nodes, || NodeOutcome::Feasible);
    }
    outcomes[at as usize] = outcome;
}

/// What the filters left for the feasible nodes of a cycle: by plugin, then by node. Nearly always empty.
#[derive(Debug, Default)]
pub(crate) struct ScratchBoard(Vec<(usize, Vec<(u32, Scratch)>)>);

impl ScratchBoard {
    /// Adds a slot; the nodes of one plugin have to come in order.
    pub(crate) fn push(&mut self, node: usize, plugin: usize, slot: Scratch) {
        let node = u32::try_from(node).expect("a cluster has fewer nodes");
        match self.0.iter_mut().find(|(owner, _)| *owner == plugin) {
            Some((_, slots)) => slots.push((node, slot)),
            None => self.0.push((plugin, vec![(node, slot)])),
        }
    }

    /// Adds the slots of nodes that come after all that are in it.
    pub(crate) fn append(&mut self, later: Self) {
        for (plugin, slots) in later.0 {
            for (node, slot) in slots {
                self.push(node as usize, plugin, slot);
            }
        }
    }

    /// Whether no filter left anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The slots of one plugin, by node.
    pub(crate) fn slots(&self, plugin: usize) -> &[(u32, Scratch)] {
        self.0.iter().find(|(owner, _)| *owner == plugin).map_or(&[], |(_, slots)| slots)
    }

    /// The slots of one node, by plugin.
    pub(crate) fn into_node(self, node: usize) -> Vec<(usize, Scratch)> {
        let of_node = |(plugin, slots): (usize, Vec<(u32, Scratch)>)| {
            slots.into_iter().find(|(at, _)| *at as usize == node).map(|(_, slot)| (plugin, slot))
        };
        self.0.into_iter().filter_map(of_node).collect()
    }

    /// The slots of the nodes that are kept, under their new positions.
    pub(crate) fn keep(self, kept: &[usize]) -> Self {
        let mut board = Self::default();
        for (plugin, slots) in self.0 {
            let mut slots: Vec<(u32, Scratch)> = slots
                .into_iter()
                .filter_map(|(node, slot)| {
                    let at = kept.iter().position(|&old| old == node as usize)?;
                    Some((u32::try_from(at).ok()?, slot))
                })
                .collect();
            slots.sort_unstable_by_key(|(node, _)| *node);
            board.0.push((plugin, slots));
        }
        board
    }
}

/// The feasible nodes of a cycle and one plugin's score for each.
#[derive(Debug)]
pub struct NodeScores<'a> {
    /// The feasible nodes.
    pub nodes: &'a [&'a NodeInfo],
    /// A score a node, in the same order. 0 to 100 once normalised.
    pub scores: &'a mut [i64],
    /// What the plugin's `Filter` left for each node, by node position; few nodes have any.
    pub(crate) scratch: &'a [(u32, Scratch)],
}

impl NodeScores<'_> {
    /// What the plugin's `Filter` left for the node at this position.
    pub fn scratch(&self, position: usize) -> Option<&Scratch> {
        let position = u32::try_from(position).ok()?;
        self.scratch.binary_search_by_key(&position, |(at, _)| *at).ok().map(|at| &self.scratch[at].1)
    }
}
