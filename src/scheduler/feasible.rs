//! The feasible nodes, and the filtering of these nodes by extenders.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Kept;
use super::search::NodeSearch;
use crate::framework::{CycleContext, EXTENDER, NodeRef, NodeRejection, PluginError, Rejection, ScratchBoard};
use crate::model::{NodeInfo, NodeOrdinal, Snapshot};

/// Position of a node in an extender's reply that was not among the feasible nodes before.
const UNSEEN: usize = usize::MAX;

/// The feasible nodes, in the order in which they were found.
#[derive(Default)]
pub(super) struct Feasible<'a> {
    nodes: Vec<NodeRef<'a>>,
    /// The nodes built from an extender's reply. If there are any, they replace `nodes`.
    rebuilt: Option<Vec<Arc<NodeInfo>>>,
    /// Scratch slots that the filters filled, by position.
    pub(super) scratch: ScratchBoard,
}

impl<'a> Feasible<'a> {
    /// Returns feasible nodes of the snapshot.
    pub(super) fn new(snapshot: &'a Snapshot, nodes: &[NodeOrdinal], scratch: ScratchBoard) -> Self {
        let nodes = nodes.iter().map(|node| NodeRef::new(snapshot, *node)).collect();
        Self { nodes, rebuilt: None, scratch }
    }

    pub(super) fn len(&self) -> usize {
        self.rebuilt.as_ref().map_or(self.nodes.len(), Vec::len)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the nodes in order.
    pub(super) fn nodes(&self) -> Cow<'_, [NodeRef<'_>]> {
        match &self.rebuilt {
            None => Cow::Borrowed(&self.nodes),
            Some(rebuilt) => Cow::Owned(rebuilt.iter().map(|node| NodeRef::outside(node)).collect()),
        }
    }

    fn keep(mut self, kept: Kept) -> Self {
        match kept {
            Kept::Positions(positions) => {
                self.scratch = self.scratch.keep(&positions);
                match &mut self.rebuilt {
                    None => self.nodes = positions.iter().map(|&at| self.nodes[at]).collect(),
                    Some(rebuilt) => *rebuilt = positions.iter().map(|&at| rebuilt[at].clone()).collect(),
                }
            }
            Kept::Nodes(nodes) => {
                let known = self.nodes();
                let known: BTreeMap<&str, usize> =
                    known.iter().enumerate().map(|(at, node)| (node.name(), at)).collect();
                let before: Vec<usize> =
                    nodes.iter().map(|node| known.get(node.name()).copied().unwrap_or(UNSEEN)).collect();
                self.scratch = self.scratch.keep(&before);
                self.rebuilt = Some(nodes);
            }
        }
        self
    }
}

impl NodeSearch<'_> {
    /// Calls the extenders in order, each with the nodes that are left. An extender's reason for rejecting a node replaces an
    /// earlier reason for the same node.
    /// Follows `pkg/scheduler/schedule_one.go#findNodesThatPassExtenders @v1.36.3`.
    pub(super) fn filter_by_extenders<'a>(
        &self,
        cx: &CycleContext<'_>,
        mut feasible: Feasible<'a>,
        rejected: &mut Vec<NodeRejection>,
    ) -> Result<Feasible<'a>, PluginError> {
        for extender in self.extenders {
            if feasible.is_empty() {
                break;
            }
            if !extender.is_interested(cx.pod) {
                continue;
            }
            let filtered = match extender.filter(cx.pod, &feasible.nodes()) {
                Ok(filtered) => filtered,
                Err(error) if extender.is_ignorable() => {
                    tracing::info!(extender = extender.name(), %error, "Skipping extender as it returned error and has ignorable flag set");
                    continue;
                }
                Err(error) => return Err(error),
            };
            let unresolvable = filtered.failed_and_unresolvable;
            let failed = filtered.failed.into_iter().filter(|(node, _)| !unresolvable.contains_key(node));
            let failed = failed.map(|(node, reason)| (node, Rejection::unschedulable(reason)));
            let said: Vec<(String, Rejection)> = failed.collect();
            let unresolvable = unresolvable.into_iter().map(|(node, reason)| (node, Rejection::unresolvable(reason)));
            record(cx.snapshot, rejected, unresolvable.chain(said));
            feasible = feasible.keep(filtered.kept);
        }
        Ok(feasible)
    }
}

/// Records the rejections of an extender. Nodes that are not in the snapshot are ignored.
fn record(snapshot: &Snapshot, rejected: &mut Vec<NodeRejection>, said: impl Iterator<Item = (String, Rejection)>) {
    let mut said = said.filter_map(|(name, rejection)| Some((snapshot.ordinal(&name)?, rejection))).peekable();
    if said.peek().is_none() {
        return;
    }
    let mut known: BTreeMap<NodeOrdinal, usize> =
        rejected.iter().enumerate().map(|(at, rejection)| (rejection.node, at)).collect();
    let plugin: Arc<str> = Arc::from(EXTENDER);
    for (node, rejection) in said {
        let said = NodeRejection { node, plugin: plugin.clone(), rejection };
        if let Some(&at) = known.get(&node) {
            rejected[at] = said;
        } else {
            known.insert(node, rejected.len());
            rejected.push(said);
        }
    }
}
