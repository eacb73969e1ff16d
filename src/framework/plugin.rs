//! The extension points, one trait each.
//!
//! Order and concurrency are as in upstream. `PreFilter`, `PostFilter`, `PreScore`, `Reserve` and `Permit` run one after another
//! in the scheduling thread, and may write the cycle's state. `Normalize` runs in that thread too, but only reads the state.
//! `Filter` and `Score` may run for many nodes in parallel, and only read the state. `AddPod` and `RemovePod` may run for many
//! nodes in parallel, and write to a clone of the state. `PreBind`, `Bind` and `PostBind` run in the pod's own task.

use std::sync::Arc;

pub use futures::future::BoxFuture;

use super::{
    BindOutcome, CandidateReview, Candidates, CycleContext, CycleState, Diagnosis, FilterRunner, NodeRef, NodeScores,
    PermitOutcome, PluginError, PostFilterOutcome, PreBindOutcome, PreBindPreFlight, PreFilterOutcome, PreScoreOutcome,
    Scratch, SignOutcome, Verdict,
};
use crate::clock::Mono;
use crate::model::PodInfo;

/// The trait that all plugins implement.
pub trait Plugin: Send + Sync + 'static {
    /// The name under which the plugin is configured.
    fn name(&self) -> &str;
}

/// Keeps pods out of activeQ until they are ready. The plugin runs under the queue's lock, so it must be quick and must not call
/// the queue.
pub trait PreEnqueuePlugin: Plugin {
    /// Decides whether the pod may enter activeQ now.
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict;
}

/// The properties of a queued pod that determine its position in activeQ.
#[derive(Clone, Copy, Debug)]
pub struct QueueSortKey<'a> {
    /// The pod in the queue.
    pub pod: &'a PodInfo,
    /// Time at which the pod was last added to the queue, either new or after an attempt.
    pub timestamp: Mono,
}

/// Orders the pods in activeQ. Exactly one such plugin is enabled, the same in all profiles.
pub trait QueueSortPlugin: Plugin {
    /// Whether `a` goes before `b`, as a strict total order. This method runs under the queue's lock.
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool;
}

/// Signs pods: the plugin's decisions for two pods with the same signature are the same.
pub trait SignPlugin: Plugin {
    /// Returns the parts of the pod that the plugin's decisions depend on.
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError>;
}

/// Looks at the pod and at the cluster as a whole before any node is filtered.
pub trait PreFilterPlugin: Plugin {
    /// Prepares the cycle's state, rejects the pod, or restricts the search to some nodes.
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError>;

    /// Returns the methods that update the prepared state for added and removed pods. `None` if the state does not depend on
    /// other pods.
    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        None
    }
}

/// Updates the state that `PreFilter` prepared when preemption or nominated pods change the pods of a hypothetical node. The
/// state is a clone of the cycle's state, and the node is a copy of the snapshot's node.
pub trait PreFilterExtensions {
    /// Updates the state for `added`, which is now on the node.
    fn add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: NodeRef<'_>) -> Result<Verdict, PluginError>;

    /// Updates the state for `removed`, which is no longer on the node.
    fn remove_pod(
        &self,
        cx: &mut CycleContext<'_>,
        removed: &PodInfo,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError>;
}

/// Decides whether a node can take the pod.
pub trait FilterPlugin: Plugin {
    /// Decides whether one node can take the pod. The same inputs must give the same verdict on any thread. Data for `Score` or
    /// `Reserve` goes into `scratch`, the plugin's own slot for this node in this cycle. The pods of `node` may differ from the
    /// snapshot's, because nominated pods are added or victims removed. The plugin must use the pods of `node`.
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, scratch: &mut Scratch) -> Result<Verdict, PluginError>;

    /// Decides a block of nodes. The provided method is compiled for each plugin, so there is one virtual call per block and
    /// the call for each node is inlined. Override this method to read the cycle's state only once.
    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        block.retain(|node, scratch| self.filter(cx, node, scratch));
        Ok(())
    }
}

/// The inputs of `PostFilter` besides the cycle's context.
pub struct PostFilterContext<'a> {
    /// The reasons why the pod fits on no node.
    pub diagnosis: &'a Diagnosis,
    /// Runs the profile's filters on hypothetical nodes.
    pub filters: &'a dyn FilterRunner,
    /// Extenders that review the candidates for preemption.
    pub extenders: &'a dyn CandidateReview,
    /// A random number, drawn for this attempt.
    pub random: u64,
}

/// Tries to make a pod schedulable that fits on no node.
pub trait PostFilterPlugin: Plugin {
    /// Tries to make room for the pod, such as by preemption.
    fn post_filter(
        &self,
        cx: &mut CycleContext<'_>,
        failed: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError>;
}

/// Looks at the feasible nodes as a whole before they are scored.
pub trait PreScorePlugin: Plugin {
    /// Prepares the cycle's state, or opts out of scoring this pod.
    fn pre_score(&self, cx: &mut CycleContext<'_>, nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError>;
}

/// Scores the feasible nodes of a cycle.
pub trait ScorePlugin: Plugin {
    /// Scores one node from 0 to 100. A plugin that also normalizes may return other scores. The same inputs must give the same
    /// score on any thread.
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, scratch: Option<&Scratch>) -> Result<i64, PluginError>;

    /// Scores all feasible nodes. Override this method to read the cycle's state only once.
    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        for at in 0..scores.nodes.len() {
            scores.scores[at] = self.score(cx, scores.nodes[at], scores.scratch(at))?;
        }
        Ok(())
    }
}

/// Normalizes a plugin's scores to the range from 0 to 100.
pub trait NormalizeScore: Plugin {
    /// Replaces the scores by their normalized values.
    fn normalize(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError>;
}

/// Tracks the resources that are reserved for assumed pods.
pub trait ReservePlugin: Plugin {
    /// Reserves the pod's resources on `node`. `scratch` is the slot that the plugin's `Filter` filled for that node.
    fn reserve(&self, cx: &mut CycleContext<'_>, node: &str, scratch: Option<&Scratch>)
    -> Result<Verdict, PluginError>;

    /// Releases the pod's reserved resources. Changes in memory happen at once, and the returned future makes the writes to the
    /// API. This is also called for plugins whose `reserve` was not reached, so it must be idempotent.
    fn unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Option<BoxFuture<'static, ()>>;
}

/// Delays or rejects a pod between its reservation and its binding.
pub trait PermitPlugin: Plugin {
    /// Decides whether the pod may be bound to `node` now.
    fn permit(&self, cx: &mut CycleContext<'_>, node: &str) -> Result<PermitOutcome, PluginError>;
}

/// A pod in its binding cycle.
#[derive(Clone, Copy, Debug)]
pub struct BindContext<'a> {
    /// The pod, with its node name set.
    pub pod: &'a Arc<PodInfo>,
    /// Name of the node.
    pub node: &'a Arc<str>,
    /// State that plugins kept during the scheduling cycle.
    pub state: &'a CycleState,
}

/// Prepares the binding of a pod, such as by provisioning volumes.
pub trait PreBindPlugin: Plugin {
    /// Returns whether `pre_bind` has work to do. It must have no side effects.
    fn pre_flight(&self, cx: BindContext<'_>) -> Result<PreBindPreFlight, PluginError>;

    /// Does the work that must be finished before the pod is bound.
    fn pre_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<PreBindOutcome, PluginError>>;
}

/// Binds pods to their nodes.
pub trait BindPlugin: Plugin {
    /// Binds the pod, or leaves it to another plugin.
    fn bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>>;
}

/// Is notified of bound pods.
pub trait PostBindPlugin: Plugin {
    /// Called after the pod was bound.
    fn post_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, ()>;
}
