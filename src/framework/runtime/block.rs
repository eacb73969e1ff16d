//! Blocks of nodes on their way through the filters.

use std::vec::IntoIter;

use super::super::{Candidates, Code, CycleContext, CycleState, NodeOutcome, NodeRef, Scratch};
use super::filter::NodeVerdict;
use super::{Framework, sampled};

/// A filled scratch slot of a block: node position, filter position, slot.
type BlockSlot = (u32, usize, Scratch);

/// The verdicts of the filters on a block of nodes.
#[derive(Debug)]
pub(crate) struct BlockRun {
    /// Verdicts on the nodes that no pod is nominated to, in order; empty if all of these passed.
    outcomes: Vec<NodeOutcome>,
    /// Filled scratch slots of these nodes, by their position among each other.
    scratch: Vec<BlockSlot>,
    /// Duration of one call of each filter in seconds, by position; empty unless this attempt is sampled.
    seconds: Vec<f64>,
    /// Verdicts on the nodes that pods are nominated to, by position in the block.
    crowded: Vec<(usize, NodeVerdict)>,
}

/// The verdict on one node of a block, with the filled scratch slots by filter position.
pub(crate) type NodeRun = (NodeOutcome, Vec<(usize, Scratch)>);

/// Which filters upstream would have called how often for the nodes of a block.
struct FilterCalls {
    /// Nodes that passed every filter.
    passed: usize,
    /// Nodes that did not, by the position of their last filter, then by its status.
    ended: Vec<[usize; Code::ALL.len()]>,
}

/// Hands out the verdicts of a block node by node. Plugin calls are counted as far as the reader says that upstream would
/// have made them.
pub(crate) struct BlockReader<'a> {
    framework: &'a Framework,
    state: &'a CycleState,
    plain: IntoIter<NodeOutcome>,
    scratch: IntoIter<BlockSlot>,
    crowded: IntoIter<(usize, NodeVerdict)>,
    /// Position of the next plain node among its like.
    next_plain: usize,
    /// Position of the next node in the block.
    next: usize,
    calls: FilterCalls,
    seconds: Vec<f64>,
}

impl Framework {
    /// Runs the filters on a block of nodes: plugin by plugin, except for nodes that pods are nominated to, which are
    /// filtered one by one. [`BlockRun::read`] hands out the verdicts and counts the calls.
    pub(crate) fn run_filters_on_block(&self, cx: &CycleContext<'_>, nodes: &[NodeRef<'_>]) -> BlockRun {
        let crowded = self.crowded(nodes);
        if crowded.is_empty() {
            return self.filter_block(cx, nodes);
        }
        let is_plain = |at: &usize| crowded.binary_search(at).is_err();
        let plain: Vec<NodeRef<'_>> = (0..nodes.len()).filter(is_plain).map(|at| nodes[at]).collect();
        let mut run = self.filter_block(cx, &plain);
        run.crowded = crowded.into_iter().map(|at| (at, self.verdict(cx, nodes[at]))).collect();
        run
    }

    /// Positions of the nodes that pods are nominated to, ascending.
    fn crowded(&self, nodes: &[NodeRef<'_>]) -> Vec<usize> {
        match self.handle.nominator() {
            Some(nominator) if nominator.has_nominated_pods() => {
                (0..nodes.len()).filter(|&at| !nominator.nominated_pods_for_node(nodes[at].name()).is_empty()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn filter_block(&self, cx: &CycleContext<'_>, nodes: &[NodeRef<'_>]) -> BlockRun {
        let mut block = Candidates::new(nodes);
        let mut seconds = Vec::new();
        for (position, entry) in self.filter.iter().enumerate() {
            if block.is_empty() {
                break;
            }
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            block.begin(position);
            let started = sampled(cx.state).then(|| (self.mono(), block.len()));
            if let Err(error) = entry.plugin.filter_block(cx, &mut block) {
                block.fail(&error);
            }
            if let Some((started, calls)) = started {
                seconds.resize(position, 0.0);
                // A block's time is shared out evenly among its nodes, since plugins decide them together.
                #[expect(clippy::cast_precision_loss, reason = "a block has few nodes")]
                seconds.push(self.mono().seconds_since(started) / calls as f64);
            }
        }
        let (outcomes, scratch) = block.finish();
        BlockRun { outcomes, scratch, seconds, crowded: Vec::new() }
    }

    /// Counts what upstream would have called for a block's nodes: `scheduler_plugin_evaluation_total`, and the calls'
    /// durations if this attempt is sampled.
    fn count_block(&self, state: &CycleState, calls: &FilterCalls, seconds: &[f64]) {
        let mut reached = calls.passed + calls.ended.iter().flatten().sum::<usize>();
        for (position, entry) in self.filter.iter().enumerate() {
            if reached == 0 {
                break;
            }
            let ended = &calls.ended[position];
            let stayed = ended.iter().sum::<usize>();
            if !state.skip_filter.contains(entry.index) {
                entry.count(reached);
                if let Some(seconds) = seconds.get(position) {
                    self.recorder.observe_each(entry.durations.series(Code::Success), *seconds, reached - stayed);
                    for (code, calls) in Code::ALL.into_iter().zip(ended) {
                        self.recorder.observe_each(entry.durations.series(code), *seconds, *calls);
                    }
                }
            }
            reached -= stayed;
        }
    }
}

impl BlockRun {
    /// Whether every node passed, none was filtered by itself, and no filter left anything.
    pub(crate) fn is_plain_pass(&self) -> bool {
        self.outcomes.is_empty() && self.scratch.is_empty() && self.crowded.is_empty()
    }

    /// Begins to hand out the verdicts.
    pub(crate) fn read<'a>(mut self, framework: &'a Framework, state: &'a CycleState) -> BlockReader<'a> {
        self.scratch.sort_unstable_by_key(|(at, filter, _)| (*at, *filter));
        BlockReader {
            framework,
            state,
            plain: self.outcomes.into_iter(),
            scratch: self.scratch.into_iter(),
            crowded: self.crowded.into_iter(),
            next_plain: 0,
            next: 0,
            calls: FilterCalls { passed: 0, ended: vec![[0; Code::ALL.len()]; framework.filter.len()] },
            seconds: self.seconds,
        }
    }
}

impl BlockReader<'_> {
    /// The verdict on the next node, whose calls count if `counts`. There has to be one more node.
    #[inline]
    pub(crate) fn next(&mut self, counts: bool) -> NodeRun {
        let at = self.next;
        self.next += 1;
        // Slices are peeked at: a peekable iterator would move a verdict each time.
        if self.crowded.as_slice().first().is_some_and(|(crowded, _)| *crowded == at) {
            return self.next_crowded(counts);
        }
        let index = self.next_plain;
        self.next_plain += 1;
        let mut slots = Vec::new();
        while self.scratch.as_slice().first().is_some_and(|(node, ..)| *node as usize <= index) {
            slots.extend(self.scratch.next().map(|(_, filter, slot)| (filter, slot)));
        }
        let outcome = self.plain.next().unwrap_or(NodeOutcome::Feasible);
        if counts {
            self.calls.count(&outcome);
        }
        (outcome, slots)
    }

    #[cold]
    fn next_crowded(&mut self, counts: bool) -> NodeRun {
        let (_, verdict) = self.crowded.next().expect("the caller has seen it");
        if counts {
            self.framework.count_verdict(self.state, &verdict);
        }
        (verdict.last.outcome, verdict.last.scratch)
    }

    /// Counts the calls for so many nodes that passed every filter, without handing them out.
    pub(crate) fn pass(&mut self, nodes: usize) {
        self.calls.passed += nodes;
    }

    /// Counts the calls of the nodes that were filtered together.
    pub(crate) fn finish(self) {
        self.framework.count_block(self.state, &self.calls, &self.seconds);
    }
}

impl FilterCalls {
    #[inline]
    fn count(&mut self, outcome: &NodeOutcome) {
        match outcome {
            NodeOutcome::Rejected(filter, _) | NodeOutcome::Failed(Some(filter), _) => {
                self.ended[*filter][outcome.code().index()] += 1;
            }
            // No filter was called where a plugin could not take account of a nominated pod.
            NodeOutcome::Failed(None, _) => {}
            NodeOutcome::Feasible => self.passed += 1,
        }
    }
}
