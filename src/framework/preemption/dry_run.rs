//! Dry runs of preemption: find the victims on each node, until enough candidates are found.

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

/// Number of nodes examined together when enough candidates are known but all of them violate budgets. The first candidate
/// without a violation ends the search, and the results of later nodes are discarded.
const BATCH_WHILE_VIOLATING: usize = 16;

/// Number of nodes that a thread takes at a time.
const PIECE: usize = 8;

/// The inputs of a dry run.
pub(super) struct DryRun<'a, 'c> {
    pub(super) cx: &'a CycleContext<'c>,
    pub(super) filters: &'a dyn FilterRunner,
    pub(super) budgets: &'a Budgets,
}

/// The candidate on this node, or the reason why the node is not a candidate.
type Outcome = Result<Result<Candidate, Rejection>, PluginError>;

/// A hypothetical node, without some of its pods.
struct WhatIf<'a, 'c> {
    run: &'a DryRun<'a, 'c>,
    state: CycleState,
    /// The node with all its pods.
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

    /// Puts a victim back if the preemptor still fits. A failing filter counts as a rejection, as in upstream.
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
    /// Finds the victims on a node. First, all pods of lower priority are removed, and the preemptor must fit without them. Then
    /// each of these pods is put back if the preemptor still fits: first the pods protected by a budget, then the others, each
    /// group by importance. The pods that were not put back are the victims. Follows
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

/// Candidates collected node by node, until there are enough.
#[derive(Default)]
pub(super) struct Shortlist {
    wanted: usize,
    lawful: Vec<Candidate>,
    violating: Vec<Candidate>,
    rejected: Vec<(NodeOrdinal, Rejection)>,
    errors: Vec<PluginError>,
}

impl Shortlist {
    /// Examines nodes, starting with `order(0)`, until `wanted` candidates are found and at least one of them violates no
    /// budget. The result is the same for any number of workers.
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
            // Upstream examines at least this many nodes too, because a node gives at most one candidate.
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
                // Each list holds at most `wanted` candidates, which may be 0.
                if list.len() < self.wanted {
                    list.push(candidate);
                }
            }
            Ok(Err(rejection)) => self.rejected.push((node, rejection)),
            Err(error) => self.errors.push(error),
        }
    }

    /// Returns the candidates, or the errors if there are none. `rejected` has the rejection of the nodes that were not
    /// examined.
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
