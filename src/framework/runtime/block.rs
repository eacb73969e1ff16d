//! Filtering of nodes in blocks.

use std::vec::IntoIter;

use super::super::{Candidates, Code, CycleContext, CycleState, NodeOutcome, NodeRef, Scratch};
use super::filter::NodeVerdict;
use super::{Framework, sampled};

/// A filled scratch slot of a block, as node position, filter position and slot.
type BlockSlot = (u32, usize, Scratch);

/// The verdicts of the filters on a block of nodes.
#[derive(Debug)]
pub(crate) struct BlockRun {
    /// Verdicts on the nodes without nominated pods, in order. Empty if all these nodes passed.
    outcomes: Vec<NodeOutcome>,
    /// Filled scratch slots of the nodes without nominated pods. Positions count these nodes only.
    scratch: Vec<BlockSlot>,
    /// Duration of one call of each filter in seconds, by filter position. Empty unless this attempt is sampled.
    seconds: Vec<f64>,
    /// Verdicts on the nodes with nominated pods, by position in the block.
    crowded: Vec<(usize, NodeVerdict)>,
}

/// The verdict on one node of a block, with the filled scratch slots by filter position.
pub(crate) type NodeRun = (NodeOutcome, Vec<(usize, Scratch)>);

/// The number of calls that upstream would have made of each filter for the nodes of a block.
struct BlockCalls {
    /// Number of nodes that passed every filter.
    passed: usize,
    /// Number of other nodes, by the position of the last filter called and by its status.
    ended: Vec<[usize; Code::ALL.len()]>,
}

/// Returns the verdicts of a block node by node. Plugin calls are counted only for the nodes that upstream would have filtered.
/// The caller decides for each node whether it is one of these.
pub(crate) struct BlockReader<'a> {
    framework: &'a Framework,
    state: &'a CycleState,
    plain: IntoIter<NodeOutcome>,
    scratch: IntoIter<BlockSlot>,
    crowded: IntoIter<(usize, NodeVerdict)>,
    /// Position of the next node among the nodes without nominated pods.
    next_plain: usize,
    /// Position of the next node in the block.
    next: usize,
    calls: BlockCalls,
    seconds: Vec<f64>,
}

impl Framework {
    /// Runs the filters on a block of nodes, plugin by plugin. Nodes with nominated pods are filtered one by one.
    /// [`BlockRun::read`] returns the verdicts and counts the calls.
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

    /// Returns the positions of the nodes with nominated pods, ascending.
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
                // Plugins filter the nodes of a block together, so each node counts with an equal share of the time.
                #[expect(clippy::cast_precision_loss, reason = "a block has few nodes")]
                seconds.push(self.mono().seconds_since(started) / calls as f64);
            }
        }
        let (outcomes, scratch) = block.finish();
        BlockRun { outcomes, scratch, seconds, crowded: Vec::new() }
    }

    /// Adds the calls that upstream would have made for a block's nodes to `scheduler_plugin_evaluation_total`. Also observes
    /// the durations of these calls if this attempt is sampled.
    fn count_block(&self, state: &CycleState, calls: &BlockCalls, seconds: &[f64]) {
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
    /// Whether every node passed, no node has nominated pods, and no filter filled a scratch slot.
    pub(crate) fn is_plain_pass(&self) -> bool {
        self.outcomes.is_empty() && self.scratch.is_empty() && self.crowded.is_empty()
    }

    /// Starts to read the verdicts.
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
            calls: BlockCalls { passed: 0, ended: vec![[0; Code::ALL.len()]; framework.filter.len()] },
            seconds: self.seconds,
        }
    }
}

impl BlockReader<'_> {
    /// Returns the verdict on the next node, and counts the plugin calls for this node if `counts` is set. The caller must not
    /// read beyond the last node.
    #[inline]
    pub(crate) fn next(&mut self, counts: bool) -> NodeRun {
        let at = self.next;
        self.next += 1;
        // This looks at the slice instead of using a peekable iterator, which would move a verdict each time.
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
        (verdict.last.outcome, verdict.last.calls.scratch)
    }

    /// Counts the calls for this many nodes that passed every filter, without returning them.
    pub(crate) fn pass(&mut self, nodes: usize) {
        self.calls.passed += nodes;
    }

    /// Counts the calls for the nodes that were filtered as a block.
    pub(crate) fn finish(self) {
        self.framework.count_block(self.state, &self.calls, &self.seconds);
    }
}

impl BlockCalls {
    #[inline]
    fn count(&mut self, outcome: &NodeOutcome) {
        match outcome {
            NodeOutcome::Rejected(filter, _) | NodeOutcome::Failed(Some(filter), _) => {
                self.ended[*filter][outcome.code().index()] += 1;
            }
            // No filter was called, because a plugin failed to add a nominated pod.
            NodeOutcome::Failed(None, _) => {}
            NodeOutcome::Feasible => self.passed += 1,
        }
    }
}
