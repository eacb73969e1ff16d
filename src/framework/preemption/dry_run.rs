//! What-ifs: which pods would have to leave a node, and on how many nodes that is found out.

use std::sync::Arc;

use super::super::{
    CycleContext, CycleState, Diagnosis, FilterRunner, NodeRef, NodeRejection, Parallelizer, PluginError, Rejection,
    Verdict,
};
use super::budgets::Budgets;
use super::importance::sort_by_importance;
use super::{Candidate, Candidates, NO_VICTIMS, potential_victims};
use crate::apimachinery::field_error::aggregate;
use crate::model::{NodeInfo, NodeOrdinal, PodInfo};

/// How many nodes are looked at together while enough candidates are known, but all of them violate budgets: the first one
/// that does not ends the search, and what was found beyond it is thrown away.
const BATCH_WHILE_VIOLATING: usize = 16;

/// How many nodes one thread looks at before it takes the next ones.
const PIECE: usize = 8;

/// What a dry run needs to know.
pub(super) struct DryRun<'a, 'c> {
    pub(super) cx: &'a CycleContext<'c>,
    pub(super) filters: &'a dyn FilterRunner,
    pub(super) budgets: &'a Budgets,
}

/// Whether a node is a candidate, or why it is none.
type Outcome = Result<Result<Candidate, Rejection>, PluginError>;

/// A node as it would be without some of its pods.
struct WhatIf<'a, 'c> {
    run: &'a DryRun<'a, 'c>,
    state: CycleState,
    /// The node with all of its pods.
    original: NodeRef<'a>,
    node: NodeInfo,
}

impl WhatIf<'_, '_> {
    fn remove(&mut self, pod: &Arc<PodInfo>) -> Result<(), PluginError> {
        self.node.take_pod(pod);
        let DryRun { cx, filters, .. } = self.run;
        let mut what_if = CycleContext { pod: cx.pod, snapshot: cx.snapshot, state: &mut self.state, now: cx.now };
        filters.remove_pod(&mut what_if, pod, self.original.with_pods_of(&self.node))
    }

    fn add(&mut self, pod: &Arc<PodInfo>) -> Result<(), PluginError> {
        self.node.add_pod(pod.clone());
        let DryRun { cx, filters, .. } = self.run;
        let mut what_if = CycleContext { pod: cx.pod, snapshot: cx.snapshot, state: &mut self.state, now: cx.now };
        filters.add_pod(&mut what_if, pod, self.original.with_pods_of(&self.node))
    }

    fn fits(&mut self) -> Result<Verdict, PluginError> {
        let DryRun { cx, filters, .. } = self.run;
        let what_if = CycleContext { pod: cx.pod, snapshot: cx.snapshot, state: &mut self.state, now: cx.now };
        filters.run_filters_with_nominated_pods(&what_if, self.original.with_pods_of(&self.node))
    }

    /// Puts a pod back if the preemptor still fits then. A filter that fails counts as one that rejects, as upstream has it.
    fn reprieve(&mut self, pod: &Arc<PodInfo>) -> Result<bool, PluginError> {
        self.add(pod)?;
        let fits = matches!(self.fits(), Ok(Verdict::Pass));
        if !fits {
            self.remove(pod)?;
        }
        Ok(fits)
    }
}

impl DryRun<'_, '_> {
    /// The fewest pods that have to leave the node: without all that are less important the preemptor has to fit; then each
    /// may stay that does not stand in its way, those first that a budget protects, and the most important ones first.
    /// Follows
    /// `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#DefaultPreemption.SelectVictimsOnNode @v1.36.3`.
    fn on(&self, node: NodeOrdinal) -> Outcome {
        let original = NodeRef::new(self.cx.snapshot, node);
        let node = original.info;
        let now = self.cx.now.wall;
        let mut pods = potential_victims(node, self.cx.pod);
        if pods.is_empty() {
            return Ok(Err(Rejection::unresolvable(NO_VICTIMS)));
        }
        let mut what_if = WhatIf { run: self, state: (*self.cx.state).clone(), original, node: node.clone() };
        for pod in &pods {
            what_if.remove(pod)?;
        }
        if let Verdict::Reject(rejection) = what_if.fits()? {
            return Ok(Err(rejection));
        }
        sort_by_importance(&mut pods, now);
        let (violating, others) = self.budgets.split(pods);
        let mixed = !violating.is_empty() && !others.is_empty();
        let mut victims = Vec::new();
        for pod in violating {
            if !what_if.reprieve(&pod)? {
                victims.push(pod);
            }
        }
        let violations = victims.len();
        for pod in others {
            if !what_if.reprieve(&pod)? {
                victims.push(pod);
            }
        }
        if victims.is_empty() {
            let message = format!("expected at least one victim pod on node {:?}", node.name());
            return Err(PluginError::new(message));
        }
        if mixed {
            sort_by_importance(&mut victims, now);
        }
        let pdb_violations = i64::try_from(violations).unwrap_or(i64::MAX);
        Ok(Ok(Candidate { node: node.name_arc().clone(), victims, pdb_violations }))
    }
}

/// Candidates as they are found, node by node, until there are enough.
#[derive(Default)]
pub(super) struct Shortlist {
    wanted: usize,
    lawful: Vec<Candidate>,
    violating: Vec<Candidate>,
    rejected: Vec<(NodeOrdinal, Rejection)>,
    errors: Vec<PluginError>,
}

impl Shortlist {
    /// Looks at nodes, the one at `order(0)` first, until so many candidates are found and one of them violates no budget.
    /// The result is the same for any number of workers.
    /// Follows `pkg/scheduler/framework/preemption/preemption.go#Evaluator.DryRunPreemption @v1.36.3` with a single worker.
    pub(super) fn fill(
        run: &DryRun<'_, '_>,
        nodes: usize,
        order: impl Fn(usize) -> NodeOrdinal + Sync,
        wanted: usize,
        parallelizer: &Parallelizer,
    ) -> Self {
        let mut list = Self { wanted, ..Self::default() };
        let mut at = 0;
        while at < nodes && !list.is_complete() {
            // So many nodes upstream looks at in any case, as each gives one candidate at most.
            let missing = wanted - (list.lawful.len() + list.violating.len()).min(wanted);
            let batch = if missing == 0 { BATCH_WHILE_VIOLATING } else { missing }.min(nodes - at);
            let outcomes = parallelizer.map(batch.div_ceil(PIECE), |piece| {
                let first = piece * PIECE;
                let nodes = (first..batch.min(first + PIECE)).map(|more| order(at + more));
                nodes.map(|node| (node, run.on(node))).collect::<Vec<_>>()
            });
            for (node, outcome) in outcomes.into_iter().flatten() {
                list.take(node, outcome);
                if list.is_complete() {
                    break;
                }
            }
            at += batch;
        }
        list
    }

    fn is_complete(&self) -> bool {
        !self.lawful.is_empty() && self.lawful.len() + self.violating.len() >= self.wanted
    }

    fn take(&mut self, node: NodeOrdinal, outcome: Outcome) {
        match outcome {
            Ok(Ok(candidate)) => {
                let list = if candidate.pdb_violations == 0 { &mut self.lawful } else { &mut self.violating };
                // Neither list grows beyond what is wanted, which may be nothing at all.
                if list.len() < self.wanted {
                    list.push(candidate);
                }
            }
            Ok(Err(rejection)) => self.rejected.push((node, rejection)),
            Err(error) => self.errors.push(error),
        }
    }

    /// The candidates, or what went wrong if there are none. `rejected` says what is said of nodes that were not looked at.
    pub(super) fn finish(self, plugin: &Arc<str>, mut rejected: Diagnosis) -> Result<Candidates, PluginError> {
        let mut candidates = self.lawful;
        candidates.extend(self.violating);
        if candidates.is_empty() && !self.errors.is_empty() {
            return Err(PluginError::new(aggregate(&self.errors)));
        }
        for (node, rejection) in self.rejected {
            rejected.record(NodeRejection { node, plugin: plugin.clone(), rejection });
        }
        Ok(Candidates { candidates, rejected })
    }
}
