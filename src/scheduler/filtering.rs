//! Filtering of nodes in blocks, until enough feasible nodes are found.

use std::collections::BTreeSet;

use super::observer::SearchObserver;
use super::search::{NodeSearch, Nodes};
use crate::framework::{BlockRun, Code, CycleContext, NodeOutcome, NodeRef, NodeRejection, PluginError, ScratchBoard};
use crate::metrics::{Operation, Point};
use crate::model::NodeOrdinal;

/// If there are fewer nodes than this, all of them are examined. Follows
/// `pkg/scheduler/schedule_one.go#minFeasibleNodesToFind @v1.36.3`.
const MIN_FEASIBLE_NODES_TO_FIND: usize = 100;

/// Lower limit of the adaptive percentage.
/// Follows `pkg/scheduler/schedule_one.go#minFeasibleNodesPercentageToFind @v1.36.3`.
const MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND: usize = 5;

/// Number of nodes filtered together. The number is large enough to spread the cost of a plugin's call. It is small enough that a
/// block fits into the CPU cache, and that little work is wasted when the search stops within a block.
const BLOCK: usize = 128;

/// Number of blocks up to which one thread filters the blocks one after another.
const FEW_BLOCKS: usize = 5;

/// The verdicts on the filtered nodes.
#[derive(Default)]
pub(super) struct Filtered {
    /// The feasible nodes, in the order in which they were found.
    pub(super) feasible: Vec<NodeOrdinal>,
    /// Scratch slots that the filters filled for the feasible nodes, by position.
    pub(super) scratch: ScratchBoard,
    pub(super) rejected: Vec<NodeRejection>,
    /// The error of a filter, which ends the attempt.
    pub(super) failed: Option<PluginError>,
}

impl Filtered {
    fn has_each_node_once(&self) -> bool {
        let mut seen = BTreeSet::new();
        let rejected = self.rejected.iter().map(|rejection| rejection.node);
        self.feasible.iter().copied().chain(rejected).all(|node| seen.insert(node))
    }
}

/// Returns the number of feasible nodes that is enough for `nodes` nodes at this percentage. A percentage of 0 adapts to the
/// number of nodes.
/// Follows `pkg/scheduler/schedule_one.go#numFeasibleNodesToFind @v1.36.3`.
fn enough(percentage: i32, nodes: usize) -> usize {
    if nodes < MIN_FEASIBLE_NODES_TO_FIND {
        return nodes;
    }
    let percentage = match usize::try_from(percentage) {
        Ok(given) if given > 0 => given,
        _ => 50_usize.saturating_sub(nodes / 125).max(MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND),
    };
    (nodes * percentage / 100).max(MIN_FEASIBLE_NODES_TO_FIND)
}

impl NodeSearch<'_> {
    /// Filters nodes, starting where the last search ended. The search ends when one feasible node more than needed is found,
    /// and drops this extra node.
    /// Follows `pkg/scheduler/schedule_one.go#findNodesThatPassFilters @v1.36.3` with a single worker.
    pub(super) fn filter<O: SearchObserver>(&self, cx: &CycleContext<'_>, nodes: &Nodes, observer: &mut O) -> Filtered {
        let _span = tracing::debug_span!("Filter").entered();
        let scores =
            self.framework.has_score_plugins() || self.extenders.iter().any(|extender| extender.is_prioritizer());
        let filters = self.extenders.iter().any(|extender| extender.is_filter());
        let all = nodes.len();
        let wanted = if scores || filters { enough(self.percentage_of_nodes_to_score, all) } else { all.min(1) };
        let start = if all == 0 { 0 } else { *self.next_start_node_index % all };
        let mut filtered = Filtered::default();
        if !self.framework.has_filter_plugins() {
            filtered.feasible = (0..wanted).map(|at| nodes.ordinal(start, at)).collect();
            if O::EVERY_NODE {
                (0..all).for_each(|at| observer.filtered(nodes.ordinal(start, at), &NodeOutcome::Feasible, &[]));
            }
            return filtered;
        }
        let handle = self.framework.handle();
        let _running = handle.metrics().running(Operation::Filter);
        let began = handle.clock().mono();
        self.filter_blocks(cx, nodes, (start, wanted), observer, &mut filtered);
        let code = if filtered.failed.is_some() { Code::Error } else { Code::Success };
        let seconds = handle.clock().mono().seconds_since(began);
        self.framework.metrics().point(Point::Filter, code, seconds);
        debug_assert!(filtered.has_each_node_once(), "a node is either feasible or rejected");
        debug_assert!(filtered.feasible.len() <= wanted, "no more nodes are kept than are wanted");
        debug_assert!(
            filtered.failed.is_some()
                || filtered.feasible.len() == wanted
                || filtered.feasible.len() + filtered.rejected.len() == all,
            "a search that finds too few nodes looks at all of them"
        );
        filtered
    }

    fn filter_blocks<O: SearchObserver>(
        &self,
        cx: &CycleContext<'_>,
        nodes: &Nodes,
        (start, wanted): (usize, usize),
        observer: &mut O,
        filtered: &mut Filtered,
    ) {
        let parallelizer = self.framework.handle().parallelizer();
        let mut decided = false;
        let mut at = 0;
        while at < nodes.len() && (O::EVERY_NODE || !decided) {
            let (missing, left) = (wanted + 1 - filtered.feasible.len(), nodes.len() - at);
            // The search needs at least this many blocks. For a few blocks, waking another thread takes longer than it saves.
            let blocks = if missing < left { missing / BLOCK } else { left.div_ceil(BLOCK) };
            let blocks = if blocks > FEW_BLOCKS { blocks } else { 1 };
            let ordinals = |block: usize| {
                let first = at + block * BLOCK;
                (first..nodes.len().min(first + BLOCK)).map(|at| nodes.ordinal(start, at))
            };
            let runs = parallelizer.map(blocks, |block| {
                let nodes: Vec<NodeRef<'_>> = ordinals(block).map(|node| NodeRef::new(cx.snapshot, node)).collect();
                self.framework.run_filters_on_block(cx, &nodes)
            });
            for (block, run) in runs.into_iter().enumerate() {
                if O::EVERY_NODE || !decided {
                    decided = self.take_block(cx, ordinals(block), run, (wanted, decided), observer, filtered);
                }
            }
            at += blocks * BLOCK;
        }
    }

    /// Adds the verdicts of a block node by node, in the order of the search. The search stops at the node at which upstream's
    /// search would stop, and only the plugin calls up to this node are counted. Returns whether the search is finished.
    fn take_block<O: SearchObserver>(
        &self,
        cx: &CycleContext<'_>,
        mut nodes: impl ExactSizeIterator<Item = NodeOrdinal>,
        run: BlockRun,
        (wanted, mut decided): (usize, bool),
        observer: &mut O,
        filtered: &mut Filtered,
    ) -> bool {
        let is_plain_pass = run.is_plain_pass();
        let mut verdicts = run.read(self.framework, cx.state);
        if !O::EVERY_NODE && is_plain_pass {
            let room = wanted - filtered.feasible.len();
            decided = nodes.len() > room;
            // The node that exceeds the limit was examined too.
            verdicts.pass(nodes.len().min(room + 1));
            filtered.feasible.extend(nodes.by_ref().take(room));
            verdicts.finish();
            return decided;
        }
        for node in nodes {
            let (outcome, slots) = verdicts.next(!decided);
            observer.filtered(node, &outcome, &slots);
            if decided {
                continue;
            }
            match outcome {
                NodeOutcome::Feasible if filtered.feasible.len() == wanted => decided = true,
                NodeOutcome::Feasible => {
                    for (filter, slot) in slots {
                        let plugin = self.framework.filter_index(filter);
                        filtered.scratch.push(filtered.feasible.len(), plugin, slot);
                    }
                    filtered.feasible.push(node);
                }
                NodeOutcome::Rejected(filter, rejection) => {
                    let plugin = self.framework.filter_name(filter).clone();
                    filtered.rejected.push(NodeRejection { node, plugin, rejection });
                }
                NodeOutcome::Failed(filter, error) => {
                    filtered.failed = Some(self.framework.filter_error(filter, &error));
                    decided = true;
                }
            }
            if decided && !O::EVERY_NODE {
                break;
            }
        }
        verdicts.finish();
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feasible_nodes_to_find_follow_the_percentage() {
        let check =
            |percentage, nodes, expected| assert_eq!(enough(percentage, nodes), expected, "{percentage} {nodes}");
        check(0, 99, 99);
        check(0, 100, 100);
        check(0, 1000, 420);
        check(0, 5000, 500);
        check(0, 6000, 300);
        check(0, 15000, 750);
        check(40, 1000, 400);
        check(5, 1000, 100);
        check(100, 1000, 1000);
    }
}
