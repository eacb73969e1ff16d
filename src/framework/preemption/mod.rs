//! Preemption: finds pods to evict so that another pod fits, and evicts them.
//!
//! The decision is pure: it uses the cycle's snapshot, cloned state and copied nodes, and time and randomness are arguments.
//! The [`Executor`] carries the decision out.
//!
//! Upstream iterates over some sets of nodes in the random order of a Go map. Here, these nodes are in the order of the
//! snapshot. Of equal candidates, the first one found is chosen.

mod budgets;
mod candidate;
mod dry_run;
mod executor;
mod importance;
mod select;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

pub use candidate::{Candidate, CandidateReview};
pub use executor::Executor;

use budgets::Budgets;
use dry_run::{DryRun, Shortlist};

use super::{
    CycleContext, Diagnosis, Handle, PluginError, PostFilterContext, PostFilterOutcome, Rejection, RejectionKind,
};
use crate::k8s::Pod;
use crate::k8s::conditions::find_pod_condition;
use crate::listers::Lister;
use crate::metrics::Operation;
use crate::model::{NodeInfo, NodeOrdinal, PodInfo, Snapshot};

/// Type of the condition of a pod that is being evicted.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Reason in the `DisruptionTarget` condition of a preempted pod.
/// Follows `k8s.io/api/core/v1/types.go#PodReasonPreemptionByScheduler @v1.36.3`.
const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

/// Message for nodes without pods of lower priority.
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// Message for the nodes that the search did not examine.
const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// The result of a search for candidates.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The candidates for preemption. Those that violate no budget come first, and each group has the order in which nodes were
    /// examined.
    pub candidates: Vec<Candidate>,
    /// The reasons why the other nodes are not candidates.
    pub rejected: Diagnosis,
}

/// The result of preemption for a pod.
#[derive(Clone, Debug)]
pub enum Choice {
    /// The candidate to carry out.
    Best(Candidate),
    /// No node becomes feasible by preemption.
    None {
        /// The reason why there is no candidate.
        rejection: Rejection,
        /// The pod's new nomination: an empty name clears it, `None` keeps it.
        nominated: Option<String>,
    },
}

/// Minimum number of candidates that ends a search: the larger of a percentage of the nodes and an absolute number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinCandidates {
    /// The percentage of the nodes, 0 to 100.
    pub percentage: i32,
    /// The absolute number of nodes, independent of the cluster's size.
    pub absolute: i32,
}

/// Finds and carries out preemptions, on behalf of a plugin.
/// Follows `pkg/scheduler/framework/preemption/preemption.go#Evaluator @v1.36.3`, together with the methods that upstream's
/// evaluator calls in `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#DefaultPreemption @v1.36.3`.
#[derive(Clone)]
pub struct Evaluator {
    plugin: Arc<str>,
    handle: Handle,
    min_candidates: MinCandidates,
    executor: Executor,
    pods: Lister<Pod>,
    budgets: Lister<PodDisruptionBudget>,
}

impl Evaluator {
    /// Creates an evaluator that acts in the name of `plugin`. It asks `handle` for listers of pods and disruption budgets, so
    /// this function may be called only in a plugin factory.
    pub fn new(plugin: &str, handle: &Handle, min_candidates: MinCandidates) -> Result<Self, PluginError> {
        let plugin: Arc<str> = Arc::from(plugin);
        let (pods, budgets) = (handle.lister::<Pod>()?, handle.lister()?);
        let executor = Executor::new(plugin.clone(), handle, pods.clone());
        Ok(Self { executor, plugin, handle: handle.clone(), min_candidates, pods, budgets })
    }

    /// Returns the executor, which knows for which preemptors victims are still being evicted.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Chooses a node and victims, evicts the victims, and nominates the node.
    /// Follows `pkg/scheduler/framework/preemption/preemption.go#Evaluator.Preempt @v1.36.3`.
    pub fn preempt(
        &self,
        cx: &mut CycleContext<'_>,
        failed: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError> {
        let pod = self.latest(cx.pod)?;
        let cx = CycleContext { pod: &pod, snapshot: cx.snapshot, state: cx.state, now: cx.now };
        match self.choose(&cx, failed)? {
            Choice::Best(best) => {
                self.executor.carry_out(&best, &pod)?;
                Ok(PostFilterOutcome::Success { nominated: Some(best.node.to_string()) })
            }
            Choice::None { rejection, nominated } => Ok(PostFilterOutcome::Reject { rejection, nominated }),
        }
    }

    /// Chooses a node and victims on it, without evicting them.
    pub fn choose(&self, cx: &CycleContext<'_>, failed: &PostFilterContext<'_>) -> Result<Choice, PluginError> {
        if let Some(reason) = ineligible(cx, failed.diagnosis) {
            return Ok(Choice::None { rejection: Rejection::unschedulable(reason), nominated: None });
        }
        let found = self.candidates(cx, failed)?;
        if found.candidates.is_empty() {
            let rejection = Rejection::unschedulable(found.rejected.message(cx.snapshot.len()));
            return Ok(Choice::None { rejection, nominated: Some(String::new()) });
        }
        let candidates = failed.extenders.review(cx.pod, found.candidates, cx.snapshot)?;
        let none = || {
            let rejection = Rejection::unschedulable("no candidate node for preemption");
            Choice::None { rejection, nominated: None }
        };
        Ok(select::best(&candidates, cx.now.wall).map_or_else(none, |best| Choice::Best(best.clone())))
    }

    /// Returns the latest version of the pod that the informers have received. Fails if the informers do not have the pod.
    fn latest(&self, pod: &Arc<PodInfo>) -> Result<Arc<PodInfo>, PluginError> {
        let known = self.pods.get(pod.key());
        let known = known.ok_or_else(|| PluginError::new(format!("pod \"{}\" not found", pod.name())))?;
        Ok(if Arc::ptr_eq(&known, pod.pod()) { pod.clone() } else { self.handle.pod_info(known) })
    }

    /// Finds the nodes on which preemption would help, with their victims, until there are enough candidates.
    /// Follows `pkg/scheduler/framework/preemption/preemption.go#Evaluator.findCandidates @v1.36.3`.
    pub fn candidates(&self, cx: &CycleContext<'_>, failed: &PostFilterContext<'_>) -> Result<Candidates, PluginError> {
        let potential = potential_nodes(cx.snapshot, failed.diagnosis);
        let absent = Some(Rejection::unresolvable(NOT_HELPFUL));
        let rejected = Diagnosis { absent, ..Diagnosis::default() };
        if potential.is_empty() {
            return Ok(Candidates { candidates: Vec::new(), rejected });
        }
        let offset = scale(failed.random, potential.len());
        let wanted = self.wanted(potential.len());
        let budgets = Budgets::new(&self.budgets.list());
        let dry_run = DryRun { cx, filters: failed.filters, budgets: &budgets };
        let shortlist = {
            let _running = self.handle.metrics().running(Operation::DefaultPreemption);
            let order = |at: usize| potential[(offset + at) % potential.len()];
            Shortlist::fill(&dry_run, potential.len(), order, wanted, self.handle.parallelizer())
        };
        shortlist.finish(&self.plugin, rejected)
    }

    /// Returns the number of candidates that is enough for `nodes` potential nodes.
    /// Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#calculateNumCandidates @v1.36.3`.
    fn wanted(&self, nodes: usize) -> usize {
        let number = |given: i32| usize::try_from(given).unwrap_or(0);
        let share = nodes * number(self.min_candidates.percentage) / 100;
        share.max(number(self.min_candidates.absolute)).min(nodes)
    }
}

/// Scales a random 64-bit number to the range from 0 to `bound`, exclusive.
fn scale(random: u64, bound: usize) -> usize {
    let wide = u128::from(random) * (bound as u128);
    usize::try_from(wide >> 64).unwrap_or(0)
}

/// Returns the nodes whose rejection preemption may resolve, in the order of the snapshot.
/// Follows `pkg/scheduler/framework/interface.go#NodeToStatus.NodesForStatusCode @v1.36.3`.
fn potential_nodes(snapshot: &Snapshot, diagnosis: &Diagnosis) -> Vec<NodeOrdinal> {
    let helps = |rejection: &Rejection| rejection.kind == RejectionKind::Unschedulable;
    let mut helped = vec![diagnosis.absent.as_ref().is_some_and(helps); snapshot.len()];
    for node in &diagnosis.nodes {
        if let Some(helped) = helped.get_mut(node.node.index()) {
            *helped = helps(&node.rejection);
        }
    }
    snapshot.ordinals().filter(|node| helped[node.index()]).collect()
}

/// Returns the reason why the pod may not preempt other pods, if there is one.
/// Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#PodEligibleToPreemptOthers @v1.36.3`.
fn ineligible(cx: &CycleContext<'_>, diagnosis: &Diagnosis) -> Option<&'static str> {
    let pod = cx.pod.pod();
    if pod.spec.preemption_policy.as_deref() == Some("Never") {
        return Some("not eligible due to preemptionPolicy=Never.");
    }
    let nominated = cx.snapshot.ordinal(pod.nominated_node_name()?)?;
    let given_up = diagnosis.kind_of(nominated) == RejectionKind::Unresolvable;
    let awaited = |other: &Arc<PodInfo>| yields(other, cx.pod) && is_terminating_by_preemption(other.pod());
    (!given_up && cx.snapshot.node(nominated).pods().iter().any(awaited))
        .then_some("not eligible due to a terminating pod on the nominated node.")
}

/// Whether `other` may be preempted by `pod`.
fn yields(other: &PodInfo, pod: &PodInfo) -> bool {
    other.priority() < pod.priority()
}

/// Whether the pod is terminating because it was preempted.
/// Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#podTerminatingByPreemption @v1.36.3`.
fn is_terminating_by_preemption(pod: &Pod) -> bool {
    pod.is_terminating()
        && find_pod_condition(&pod.status.conditions, DISRUPTION_TARGET).is_some_and(|condition| {
            condition.status == "True" && condition.reason.as_deref() == Some(PREEMPTION_BY_SCHEDULER)
        })
}

/// Returns the node's pods that may be preempted.
fn potential_victims(node: &NodeInfo, pod: &PodInfo) -> Vec<Arc<PodInfo>> {
    node.pods().iter().filter(|other| yields(other, pod)).cloned().collect()
}
