//! Preemption: which pods have to go so that another one fits, and sending them away.
//!
//! The decision is pure: it is made on the cycle's snapshot with cloned state and copied nodes, and time and chance are
//! arguments. What follows from it is the [`Executor`]'s business.
//!
//! Where upstream's order is that of a map, nodes go in the order of the snapshot here, and of equal candidates the first
//! one found is taken.

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

/// The condition of a pod that is on its way out for the sake of another.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Its reason where preemption is why. Follows `k8s.io/api/core/v1/types.go#PodReasonPreemptionByScheduler @v1.36.3`.
const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

/// What is said of nodes on which no pod was a victim.
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// What is said of all other nodes.
const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// What a search for candidates found.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The candidates, those that violate no budget first, each group in the order in which nodes were looked at.
    pub candidates: Vec<Candidate>,
    /// Why the other nodes are none.
    pub rejected: Diagnosis,
}

/// What preemption comes to for a pod.
#[derive(Clone, Debug)]
pub enum Choice {
    /// This node, without these victims, takes the pod.
    Best(Candidate),
    /// There is none, and why.
    None {
        /// Why.
        rejection: Rejection,
        /// What becomes of the pod's nomination: an empty name clears it, `None` keeps it.
        nominated: Option<String>,
    },
}

/// The number of candidates after which a search for candidates ends: the greater of a share and a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinCandidates {
    /// Percentage (0–100) of the nodes.
    pub percentage: i32,
    /// Number of nodes, whatever the size of the cluster.
    pub absolute: i32,
}

/// Makes room for pods that fit nowhere, on behalf of a plugin.
/// Follows `pkg/scheduler/framework/preemption/preemption.go#Evaluator @v1.36.3` with
/// `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#DefaultPreemption @v1.36.3` behind it.
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
    /// An evaluator that acts in the name of `plugin`, and looks for so many candidates. It reads pods and disruption budgets.
    pub fn new(plugin: &str, handle: &Handle, min_candidates: MinCandidates) -> Result<Self, PluginError> {
        let plugin: Arc<str> = Arc::from(plugin);
        let (pods, budgets) = (handle.lister::<Pod>()?, handle.lister()?);
        let executor = Executor::new(plugin.clone(), handle, pods.clone());
        Ok(Self { executor, plugin, handle: handle.clone(), min_candidates, pods, budgets })
    }

    /// What sends victims away, and knows for whom it is doing so.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Chooses a node and victims on it, sends these away, and nominates the node.
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

    /// Chooses a node and victims on it, and does nothing else.
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

    /// The pod as the informers know it now.
    fn latest(&self, pod: &Arc<PodInfo>) -> Result<Arc<PodInfo>, PluginError> {
        let known = self.pods.get(pod.key());
        let known = known.ok_or_else(|| PluginError::new(format!("pod \"{}\" not found", pod.name())))?;
        Ok(if Arc::ptr_eq(&known, pod.pod()) { pod.clone() } else { self.handle.pod_info(known) })
    }

    /// The nodes on which preemption would help, with the victims there: as many as the plugin's arguments ask for.
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

    /// How many candidates are enough, out of so many nodes.
    /// Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#calculateNumCandidates @v1.36.3`.
    fn wanted(&self, nodes: usize) -> usize {
        let number = |given: i32| usize::try_from(given).unwrap_or(0);
        let share = nodes * number(self.min_candidates.percentage) / 100;
        share.max(number(self.min_candidates.absolute)).min(nodes)
    }
}

/// A number below `bound` that is as far up as `random` is among all 64-bit numbers.
fn scale(random: u64, bound: usize) -> usize {
    let wide = u128::from(random) * (bound as u128);
    usize::try_from(wide >> 64).unwrap_or(0)
}

/// The nodes that rejected the pod in a way that preemption may help, in the order of the snapshot.
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

/// Why the pod may not send others away.
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

/// Whether preemption may send `other` away for `pod`.
fn yields(other: &PodInfo, pod: &PodInfo) -> bool {
    other.priority() < pod.priority()
}

/// Whether the pod is ending because it was a victim.
/// Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#podTerminatingByPreemption @v1.36.3`.
fn is_terminating_by_preemption(pod: &Pod) -> bool {
    pod.is_terminating()
        && find_pod_condition(&pod.status.conditions, DISRUPTION_TARGET).is_some_and(|condition| {
            condition.status == "True" && condition.reason.as_deref() == Some(PREEMPTION_BY_SCHEDULER)
        })
}

/// The node's pods that may have to go.
fn potential_victims(node: &NodeInfo, pod: &PodInfo) -> Vec<Arc<PodInfo>> {
    node.pods().iter().filter(|other| yields(other, pod)).cloned().collect()
}
