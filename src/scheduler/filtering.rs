//! Finds the nodes that can take a pod.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::batch::Attempt;
use super::feasible::Feasible;
use super::{Failure, Scheduler};
use crate::framework::{
    BlockRun, Code, CycleContext, Diagnosis, EXTENDER, FilterCalls, FilterPass, Framework, NodeOutcome, NodeRejection,
    NodeVerdict, PluginError, Rejection, ScratchBoard, filter_error,
};
use crate::metrics::{Operation, Point};
use crate::model::{NodeInfo, Snapshot};

/// Fewer nodes than this are all looked at. Follows `pkg/scheduler/schedule_one.go#minFeasibleNodesToFind @v1.36.3`.
const MIN_FEASIBLE_NODES_TO_FIND: usize = 100;

/// The adaptive percentage never goes below this.
/// Follows `pkg/scheduler/schedule_one.go#minFeasibleNodesPercentageToFind @v1.36.3`.
const MIN_FEASIBLE_NODES_PERCENTAGE_TO_FIND: usize = 5;

/// Nodes that are filtered together: enough to spread the cost of a plugin's call, few enough to stay in the processor's
/// cache and to throw little away where the search stops.
const BLOCK: usize = 128;

/// The nodes that can take the pod, and why the others cannot.
pub(super) struct Found<'a> {
    pub(super) feasible: Feasible<'a>,
    pub(super) diagnosis: Diagnosis,
    /// The node that an equal pod's results named.
    pub(super) hint: Option<Arc<str>>,
}

/// The nodes to look at, by position in the snapshot.
enum Search {
    All(usize),
    Only(Vec<usize>),
}

impl Search {
    fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Only(positions) => positions.len(),
        }
    }

    /// The position of the `at`-th node, counted from `start` and around the end.
    fn position(&self, start: usize, at: usize) -> usize {
        let index = (start + at) % self.len();
        match self {
            Self::All(_) => index,
            Self::Only(positions) => positions[index],
        }
    }
}

/// What a search found.
#[derive(Default)]
struct Searched {
    /// Positions in the snapshot, in the order in which they were found.
    feasible: Vec<usize>,
    scratch: ScratchBoard,
    rejected: Vec<NodeRejection>,
}

/// How many feasible nodes are enough, among `nodes` nodes with this percentage (0 adapts it to their number).
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

impl Scheduler {
    /// Finds the nodes that can take the pod: `PreFilter`, first the node that is nominated or that an equal pod's results
    /// name, then as many nodes as are enough, and last the extenders. Follows `pkg/scheduler/schedule_one.go#findNodesThatFitPod @v1.36.3`.
    pub(super) fn find_nodes<'a>(
        &mut self,
        framework: &Framework,
        cx: &mut CycleContext<'a>,
        attempt: Attempt<'_>,
    ) -> Result<Found<'a>, Failure> {
        let snapshot = cx.snapshot;
        let pre_filter = framework.run_pre_filter(cx)?;
        let mut diagnosis = Diagnosis { unschedulable_plugins: pre_filter.plugins_with_nodes, ..Diagnosis::default() };
        if let Some((plugin, rejection)) = pre_filter.rejection {
            diagnosis.pre_filter_message = rejection.reasons.to_string();
            diagnosis.unschedulable_plugins.extend(plugin);
            diagnosis.absent = Some(rejection);
            return Ok(Found { feasible: Feasible::default(), diagnosis, hint: None });
        }
        // Asked for even if another node is nominated: the next pod gets the next one.
        let hint = self.node_hint(framework, cx, attempt);
        let mut tried = Vec::new();
        if let Some(nominated) = cx.pod.pod().nominated_node_name().or(hint.as_deref()) {
            match self.try_nominated(framework, cx, nominated, &mut diagnosis) {
                Ok(Nominated::Fits(feasible)) => return Ok(Found { feasible, diagnosis, hint }),
                Ok(Nominated::Rejected(rejected)) => tried = rejected,
                Err(error) => {
                    let pod = &**cx.pod.key();
                    tracing::error!(pod, node = nominated, %error, "Evaluation failed on nominated node");
                }
            }
        }
        let search = match pre_filter.nodes {
            None => Search::All(snapshot.len()),
            Some(names) => {
                let plugins: Vec<&str> = diagnosis.unschedulable_plugins.iter().map(|name| &**name).collect();
                let plugins = plugins.join(" ");
                diagnosis.absent =
                    Some(Rejection::unresolvable(format!("node(s) didn't satisfy plugin(s) [{plugins}]")));
                Search::Only(names.iter().filter_map(|name| snapshot.position(name)).collect())
            }
        };
        let (searched, failed) = self.search(framework, cx, &search);
        for rejection in searched.rejected {
            diagnosis.record(rejection);
        }
        // The nominated node's rejection counts too, unless the search came across that node again.
        tried.retain(|tried| diagnosis.nodes.iter().all(|node| node.position != tried.position));
        diagnosis.nodes.extend(tried);
        let processed = searched.feasible.len() + diagnosis.nodes.len();
        self.next_start_node_index = (self.next_start_node_index + processed) % snapshot.len();
        if let Some(error) = failed {
            return Err(Failure::Error(error));
        }
        let feasible = Feasible::new(snapshot, &searched.feasible, searched.scratch);
        let before = feasible.len();
        let feasible = self.filter_by_extenders(cx, feasible, &mut diagnosis.nodes)?;
        if feasible.len() != before {
            diagnosis.unschedulable_plugins.insert(Arc::from(EXTENDER));
        }
        Ok(Found { feasible, diagnosis, hint })
    }

    /// Tries a node before all others: the one that is held for the pod, or that an equal pod's results name.
    /// Follows `pkg/scheduler/schedule_one.go#evaluateNominatedNode @v1.36.3`.
    fn try_nominated<'a>(
        &self,
        framework: &Framework,
        cx: &mut CycleContext<'a>,
        nominated: &str,
        diagnosis: &mut Diagnosis,
    ) -> Result<Nominated<'a>, PluginError> {
        let snapshot = cx.snapshot;
        let Some(position) = snapshot.position(nominated) else {
            return Err(PluginError::new(format!("nodeinfo not found for node name {nominated:?}")));
        };
        let (searched, failed) = self.search(framework, cx, &Search::Only(vec![position]));
        if let Some(error) = failed {
            return Err(error);
        }
        let mut rejected = searched.rejected;
        // Of what this try found out only the plugin lasts: that it is pending is forgotten, as upstream forgets it.
        diagnosis.unschedulable_plugins.extend(rejected.iter().map(|rejection| rejection.plugin.clone()));
        let feasible = Feasible::new(snapshot, &searched.feasible, searched.scratch);
        let feasible = self.filter_by_extenders(cx, feasible, &mut rejected)?;
        Ok(if feasible.is_empty() { Nominated::Rejected(rejected) } else { Nominated::Fits(feasible) })
    }

    /// Filters nodes from where the last search ended, until one more than enough is found; that one is dropped.
    /// Follows `pkg/scheduler/schedule_one.go#findNodesThatPassFilters @v1.36.3` with a single worker.
    fn search(&self, framework: &Framework, cx: &CycleContext<'_>, search: &Search) -> (Searched, Option<PluginError>) {
        let percentage = framework.percentage_of_nodes_to_score().unwrap_or(self.percentage_of_nodes_to_score);
        let scores = framework.has_score_plugins() || self.extenders.iter().any(|extender| extender.is_prioritizer());
        let filters = self.extenders.iter().any(|extender| extender.is_filter());
        let wanted = if scores || filters { enough(percentage, search.len()) } else { search.len().min(1) };
        let start = self.next_start_node_index;
        let mut searched = Searched::default();
        if !framework.has_filter_plugins() {
            searched.feasible = (0..wanted).map(|at| search.position(start, at)).collect();
            return (searched, None);
        }
        let _running = self.shared.metrics.running(Operation::Filter);
        let began = self.shared.clock.mono();
        let failed = self.search_blocks(framework, cx, search, wanted, &mut searched);
        let code = if failed.is_some() { Code::Error } else { Code::Success };
        let seconds = self.shared.clock.mono().seconds_since(began);
        framework.metrics().point(Point::Filter, code, seconds);
        (searched, failed)
    }

    fn search_blocks(
        &self,
        framework: &Framework,
        cx: &CycleContext<'_>,
        search: &Search,
        wanted: usize,
        searched: &mut Searched,
    ) -> Option<PluginError> {
        let start = self.next_start_node_index;
        let parallelizer = framework.handle().parallelizer();
        let mut at = 0;
        while at < search.len() {
            // Several blocks at once where that many nodes are still wanted, so that little is thrown away.
            let missing = wanted + 1 - searched.feasible.len();
            let blocks = if missing > 4 * BLOCK { (missing / BLOCK).min(4 * parallelizer.workers()) } else { 1 };
            let blocks = blocks.min((search.len() - at).div_ceil(BLOCK));
            let runs = parallelizer.map(blocks, |block| {
                let first = at + block * BLOCK;
                let last = (first + BLOCK).min(search.len());
                let positions: Vec<usize> = (first..last).map(|at| search.position(start, at)).collect();
                let run = filter_block(framework, cx, &nodes_at(cx.snapshot, &positions));
                (positions, run)
            });
            for (positions, run) in runs {
                match take_block(framework, cx, &positions, run, wanted, searched) {
                    Taken::All => {}
                    Taken::Enough => return None,
                    Taken::Failed(error) => return Some(error),
                }
            }
            at += blocks * BLOCK;
        }
        None
    }
}

/// What became of the node that is held for the pod.
enum Nominated<'a> {
    Fits(Feasible<'a>),
    /// With what was said, which may be nothing if an extender dropped it.
    Rejected(Vec<NodeRejection>),
}

/// How a block was taken in.
enum Taken {
    All,
    Enough,
    Failed(PluginError),
}

fn nodes_at<'a>(snapshot: &'a Snapshot, positions: &[usize]) -> Vec<&'a NodeInfo> {
    positions.iter().map(|&position| &*snapshot.nodes()[position]).collect()
}

/// What the filters say of a block. Nodes that are held for other pods are looked at one by one, with those pods on them.
fn filter_block(framework: &Framework, cx: &CycleContext<'_>, nodes: &[&NodeInfo]) -> Block {
    let crowded: BTreeSet<usize> = match framework.handle().nominator() {
        Some(nominator) if nominator.has_nominated_pods() => {
            (0..nodes.len()).filter(|&at| !nominator.nominated_pods_for_node(nodes[at].name()).is_empty()).collect()
        }
        _ => BTreeSet::new(),
    };
    if crowded.is_empty() {
        return Block { run: framework.run_filter_block(cx, nodes), crowded: Vec::new() };
    }
    let plain: Vec<&NodeInfo> =
        nodes.iter().enumerate().filter(|(at, _)| !crowded.contains(at)).map(|(_, node)| *node).collect();
    let run = framework.run_filter_block(cx, &plain);
    let crowded = crowded.into_iter().map(|at| (at, framework.run_passes(cx, nodes[at]))).collect();
    Block { run, crowded }
}

type Verdicts = Result<Option<(Arc<str>, Rejection)>, PluginError>;

struct Block {
    run: BlockRun,
    /// Verdicts of the nodes that were looked at one by one, by position in the block; `run` has all others, in order.
    crowded: Vec<(usize, (NodeVerdict, Vec<FilterPass>))>,
}

/// Takes a block's verdicts in, node by node in the order of the search, and stops where upstream's search would: only the
/// calls up to there count.
fn take_block(
    framework: &Framework,
    cx: &CycleContext<'_>,
    positions: &[usize],
    block: Block,
    wanted: usize,
    searched: &mut Searched,
) -> Taken {
    let BlockRun { outcomes, mut scratch, seconds } = block.run;
    scratch.sort_unstable_by_key(|(at, plugin, _)| (*at, *plugin));
    let mut scratch = scratch.into_iter().peekable();
    let mut plain = outcomes.into_iter().enumerate();
    let mut crowded = block.crowded.into_iter().peekable();
    let mut calls = FilterCalls::new(framework.filter_count());
    let mut taken = Taken::All;
    for (at, &position) in positions.iter().enumerate() {
        let mut slots = Vec::new();
        let verdict = if let Some((_, (verdict, mut passes))) = crowded.next_if(|(crowded, _)| *crowded == at) {
            for pass in &passes {
                framework.count_pass(cx.state, pass);
            }
            slots = passes.pop().map(|last| last.scratch).unwrap_or_default();
            verdict.map_err(|(_, error)| error)
        } else {
            let (index, outcome) = plain.next().expect("every other node is in the run");
            while let Some((_, filter, slot)) = scratch.next_if(|(node, ..)| *node as usize <= index) {
                slots.push((filter, slot));
            }
            plain_verdict(framework, outcome, &mut calls)
        };
        match verdict {
            Ok(None) if searched.feasible.len() == wanted => {
                taken = Taken::Enough;
                break;
            }
            Ok(None) => {
                for (filter, slot) in slots {
                    searched.scratch.push(searched.feasible.len(), framework.filter_index(filter), slot);
                }
                searched.feasible.push(position);
            }
            Ok(Some((plugin, rejection))) => searched.rejected.push(NodeRejection { position, plugin, rejection }),
            Err(error) => {
                taken = Taken::Failed(error);
                break;
            }
        }
    }
    framework.count_block(cx.state, &calls, &seconds);
    taken
}

/// The verdict on a node of a block, whose calls are added to those that count.
fn plain_verdict(framework: &Framework, outcome: NodeOutcome, calls: &mut FilterCalls) -> Verdicts {
    match outcome {
        NodeOutcome::Feasible => {
            calls.passed += 1;
            Ok(None)
        }
        NodeOutcome::Rejected(filter, rejection) => {
            calls.ended_at(filter, rejection.code());
            Ok(Some((framework.filter_name(filter).clone(), rejection)))
        }
        NodeOutcome::Failed(filter, error) => {
            calls.ended_at(filter, Code::Error);
            Err(filter_error(framework.filter_name(filter), &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_nodes_are_enough() {
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
