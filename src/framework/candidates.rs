//! A block of nodes that the filters work through.

use super::{Code, NodeRef, PluginError, Rejection, Scratch, Verdict};

/// The verdict of a profile's filters on one node.
#[derive(Debug)]
pub(crate) enum NodeOutcome {
    /// No plugin has rejected the node so far.
    Feasible,
    /// The plugin at this position of the profile's filters rejected the node.
    Rejected(usize, Rejection),
    /// The plugin at this position returned an error. The position is `None` if the error came from `AddPod` for a nominated
    /// pod, so that no filter was called.
    Failed(Option<usize>, PluginError),
}

impl NodeOutcome {
    /// Returns the status code of the verdict.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Feasible => Code::Success,
            Self::Rejected(_, rejection) => rejection.code(),
            Self::Failed(..) => Code::Error,
        }
    }
}

/// A block of nodes that the filters work through. A node that a plugin rejects leaves the block, so later plugins never see
/// it. The reason recorded for the node is that of the first plugin in configured order that rejected it.
#[derive(Debug)]
pub struct Candidates<'a> {
    nodes: &'a [NodeRef<'a>],
    /// Outcome of each node. Empty while every node is feasible, which is the usual case.
    outcomes: Vec<NodeOutcome>,
    /// Positions of the nodes that are still feasible, in order.
    alive: Vec<u32>,
    /// Filled scratch slots of this block: node position, plugin position, slot.
    scratch: Vec<(u32, usize, Scratch)>,
    plugin: usize,
}

impl<'a> Candidates<'a> {
    /// Creates a block in which every node is feasible.
    pub(crate) fn new(nodes: &'a [NodeRef<'a>]) -> Self {
        let count = u32::try_from(nodes.len()).expect("a block is small");
        Self { nodes, outcomes: Vec::new(), alive: (0..count).collect(), scratch: Vec::new(), plugin: 0 }
    }

    /// Starts the turn of the plugin at this position of the profile's filters.
    pub(crate) fn begin(&mut self, plugin: usize) {
        self.plugin = plugin;
    }

    /// Ends the block because the plugin failed: records the error for all nodes that are still in the block.
    pub(crate) fn fail(&mut self, error: &PluginError) {
        for at in std::mem::take(&mut self.alive) {
            let outcome = NodeOutcome::Failed(Some(self.plugin), error.clone());
            record(&mut self.outcomes, self.nodes.len(), at, outcome);
        }
    }

    /// Returns the outcome of each node, or an empty list if all are feasible, and the filled scratch slots.
    pub(crate) fn finish(self) -> (Vec<NodeOutcome>, Vec<(u32, usize, Scratch)>) {
        (self.outcomes, self.scratch)
    }

    /// Returns the number of nodes that are still in the block.
    pub fn len(&self) -> usize {
        self.alive.len()
    }

    /// Whether the block has no nodes left.
    pub fn is_empty(&self) -> bool {
        self.alive.is_empty()
    }

    /// Calls `decide` for each node that is still in the block, and removes the nodes that it rejects.
    pub fn retain(&mut self, mut decide: impl FnMut(NodeRef<'_>, &mut Scratch) -> Result<Verdict, PluginError>) {
        let Self { nodes, outcomes, alive, scratch, plugin } = self;
        alive.retain(|&at| {
            let mut slot = Scratch::default();
            let verdict = decide(nodes[at as usize], &mut slot);
            if !slot.is_empty() {
                scratch.push((at, *plugin, slot));
            }
            // Nearly all nodes pass, so no outcome is built for them.
            let outcome = match verdict {
                Ok(Verdict::Pass) => return true,
                Ok(Verdict::Reject(rejection)) => NodeOutcome::Rejected(*plugin, rejection),
                Err(error) => NodeOutcome::Failed(Some(*plugin), error),
            };
            record(outcomes, nodes.len(), at, outcome);
            false
        });
    }
}

/// Records the outcome of the node at this position in a block of `nodes` nodes.
fn record(outcomes: &mut Vec<NodeOutcome>, nodes: usize, at: u32, outcome: NodeOutcome) {
    if outcomes.is_empty() {
        outcomes.resize_with(nodes, || NodeOutcome::Feasible);
    }
    outcomes[at as usize] = outcome;
}
