//! Observation of a search for nodes.

use crate::framework::{CycleState, NodeOutcome, NodeRef, PluginError, PreFilterRun, Rejection, ScoreRun, Scratch};
use crate::model::NodeOrdinal;

/// Receives the results of a search as they are found. The search is compiled for each observer, so an observer that ignores
/// everything costs nothing.
pub(super) trait SearchObserver {
    /// Whether the search examines every node and returns detailed scores. Some nodes do not matter for the decision, because
    /// enough feasible nodes were found, a filter failed, or the nominated node is feasible. Such nodes are filtered for the
    /// observer only. Their plugin calls are not counted, and the decision is the same.
    const EVERY_NODE: bool;

    /// Receives the result of `PreFilter` and the state after it. An error comes with the name of the plugin that failed.
    fn pre_filtered(&mut self, _run: Result<&PreFilterRun, (&str, &PluginError)>, _state: &CycleState) {}

    /// Receives the rejection that applies to all nodes that `PreFilter` excluded. Not called if it excluded none.
    fn narrowed(&mut self, _absent: &Rejection) {}

    /// Receives the filters' verdict on a node, with the filled scratch slots by filter position.
    fn filtered(&mut self, _node: NodeOrdinal, _outcome: &NodeOutcome, _scratch: &[(usize, Scratch)]) {}

    /// Receives the state after `PreScore`. Not called if `PreScore` failed.
    fn pre_scored(&mut self, _state: &CycleState) {}

    /// Receives the scores of these nodes, or the error of `PreScore` or `Score`.
    fn scored(&mut self, _nodes: &[NodeRef<'_>], _run: Result<&ScoreRun, &PluginError>) {}
}

/// The observer of the scheduling cycle, which ignores everything.
impl SearchObserver for () {
    const EVERY_NODE: bool = false;
}
