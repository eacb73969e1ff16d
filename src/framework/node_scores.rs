//! The scores of one plugin for the feasible nodes.

use super::{NodeRef, Scratch};

/// The feasible nodes of a cycle with one plugin's score for each.
#[derive(Debug)]
pub struct NodeScores<'a> {
    /// The feasible nodes of the cycle.
    pub nodes: &'a [NodeRef<'a>],
    /// One score per node, in the order of `nodes`: 0 to 100 after normalization.
    pub scores: &'a mut [i64],
    /// Scratch slots that the plugin's `Filter` filled, with their position in `nodes`. Only few nodes have one.
    pub(crate) scratch: &'a [(u32, Scratch)],
}

impl NodeScores<'_> {
    /// Returns the scratch slot that the plugin's `Filter` filled for the node at this position in `nodes`.
    pub fn scratch(&self, position: usize) -> Option<&Scratch> {
        let position = u32::try_from(position).ok()?;
        self.scratch.binary_search_by_key(&position, |(at, _)| *at).ok().map(|at| &self.scratch[at].1)
    }
}
