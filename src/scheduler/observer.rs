//! Observation of a search for nodes.

use crate::framework::{CycleState, NodeOutcome, NodeRef, PluginError, PreFilterRun, Rejection, ScoreRun, Scratch};
use crate::model::NodeOrdinal;

/// Is shown what a search finds out. The search is compiled for each observer, so one that looks at nothing costs nothing.
pub(super) trait SearchObserver {
    /// Whether the search goes on after it has decided, and scores in detail. Nodes that the decision does not need, because
    /// enough others were found, a filter failed or the nominated node can take the pod, are filtered for the observer
    /// alone: their plugin calls are not counted, and the decision is the same.
    const EVERY_NODE: bool;

    /// `PreFilter` was run and left this state. An error comes with the name of the plugin that failed.
    fn pre_filtered(&mut self, _run: Result<&PreFilterRun, (&str, &PluginError)>, _state: &CycleState) {}

    /// `PreFilter` narrowed the nodes. This is the rejection of all nodes that are left out.
    fn narrowed(&mut self, _absent: &Rejection) {}

    /// The filters' verdict on a node, with the filled scratch slots by filter position.
    fn filtered(&mut self, _node: NodeOrdinal, _outcome: &NodeOutcome, _scratch: &[(usize, Scratch)]) {}

    /// `PreScore` succeeded and left this state.
    fn pre_scored(&mut self, _state: &CycleState) {}

    /// The scores of these nodes, or the error of `PreScore` or `Score`.
    fn scored(&mut self, _nodes: &[NodeRef<'_>], _run: Result<&ScoreRun, &PluginError>) {}
}

/// The observer of the scheduling cycle, which looks at nothing.
impl SearchObserver for () {
    const EVERY_NODE: bool = false;
}
