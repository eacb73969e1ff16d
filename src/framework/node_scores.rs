//! The scores that one plugin gives to the feasible nodes.

use super::{NodeRef, Scratch};

/// The feasible nodes of a cycle and one plugin's score for each.
#[derive(Debug)]
pub struct NodeScores<'a> {
    /// The feasible nodes of the cycle.
    pub nodes: &'a [NodeRef<'a>],
    /// A score a node, in the same order. 0 to 100 once normalised.
    pub scores: &'a mut [i64],
    /// Scratch slots that the plugin's `Filter` filled, by position in `nodes`. Few nodes have any.
    pub(crate) scratch: &'a [(u32, Scratch)],
}

impl NodeScores<'_> {
    /// The scratch slot that the plugin's `Filter` filled for the node at this position in `nodes`.
    pub fn scratch(&self, position: usize) -> Option<&Scratch> {
        let position = u32::try_from(position).ok()?;
        self.scratch.binary_search_by_key(&position, |(at, _)| *at).ok().map(|at| &self.scratch[at].1)
    }
}
