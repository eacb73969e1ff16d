//! The extension points, one trait each.
//!
//! Order and concurrency are upstream's: `PreFilter`, `PostFilter`, `PreScore`, `Reserve` and `Permit` run one after
//! another in the scheduling thread; `Filter`, `AddPod`, `RemovePod`, `Score` and `Normalize` may run for many nodes at
//! once and only read the cycle's state; `PreBind`, `Bind` and `PostBind` run in the pod's own task.

use std::sync::Arc;

pub use futures::future::BoxFuture;

use super::{
    BindOutcome, CandidateReview, Candidates, CycleContext, CycleState, Diagnosis, FilterRunner, NodeRef, NodeScores,
    PermitOutcome, PluginError, PostFilterOutcome, PreBindOutcome, PreBindPreFlight, PreFilterOutcome, PreScoreOutcome,
    Scratch, SignOutcome, Verdict,
};
use crate::clock::Mono;
use crate::model::PodInfo;

/// What all plugins have.
pub trait Plugin: Send + Sync + 'static {
    /// The name under which the plugin is configured.
    fn name(&self) -> &str;
}

/// Keeps pods out of activeQ until they are ready. Runs under the queue's lock: it has to be quick and must not call the
/// queue.
pub trait PreEnqueuePlugin: Plugin {
    /// Whether the pod may be scheduled now.
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict;
}

/// A queued pod, as far as its place in activeQ depends on it.
#[derive(Clone, Copy, Debug)]
pub struct QueueSortKey<'a> {
    /// The pod.
    pub pod: &'a PodInfo,
    /// When it was last put into the queue after an attempt, or first.
    pub timestamp: Mono,
}

/// Orders activeQ. Exactly one is enabled, the same in all profiles.
pub trait QueueSortPlugin: Plugin {
    /// Whether `a` goes before `b`: a strict, total order. Runs under the queue's lock.
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool;
}

/// Signs pods: two pods with the same signature get the same answers from the plugin.
pub trait SignPlugin: Plugin {
    /// What the plugin's answers for this pod depend on.
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError>;
}

/// Looks at the pod and at the cluster as a whole before any node is filtered.
pub trait PreFilterPlugin: Plugin {
    /// Prepares the cycle's state, or rejects the pod, or narrows the nodes.
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError>;

    /// How the state changes with pods that come and go in a what-if; `None` when it does not depend on other pods.
    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        None
    }
}

/// Keeps what `PreFilter` prepared up to date in a what-if: on a clone of the state and a copy of the node.
pub trait PreFilterExtensions {
    /// `added` came to the node.
    fn add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: NodeRef<'_>) -> Result<Verdict, PluginError>;

    /// `removed` left the node.
    fn remove_pod(
        &self,
        cx: &mut CycleContext<'_>,
        removed: &PodInfo,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError>;
}

/// Decides whether a node can take the pod.
pub trait FilterPlugin: Plugin {
    /// Decides one node. Same inputs, same verdict, on any thread; what `Score` or `Reserve` needs later goes into
    /// `scratch`, the plugin's own slot for this node in this cycle. `node` may differ from the snapshot's (nominated pods
    /// added, victims removed) and is what counts.
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, scratch: &mut Scratch) -> Result<Verdict, PluginError>;

    /// Decides a block of nodes. The provided method is compiled for each plugin, so one virtual call serves the block and
    /// the call for each node inlines; override it to read the cycle's state once.
    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        block.retain(|node, scratch| self.filter(cx, node, scratch));
        Ok(())
    }
}

/// What `PostFilter` is given beside the cycle.
pub struct PostFilterContext<'a> {
    /// Why no node can take the pod.
    pub diagnosis: &'a Diagnosis,
    /// Runs the profile's filters on what-ifs.
    pub filters: &'a dyn FilterRunner,
    /// Webhooks that have a say in whom preemption hits.
    pub extenders: &'a dyn CandidateReview,
    /// A random number, drawn for this attempt.
    pub random: u64,
}

/// Tries to make room for a pod that no node can take.
pub trait PostFilterPlugin: Plugin {
    /// What can be done.
    fn post_filter(
        &self,
        cx: &mut CycleContext<'_>,
        failed: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError>;
}

/// Looks at the feasible nodes as a whole before they are scored.
pub trait PreScorePlugin: Plugin {
    /// Prepares the cycle's state, or opts out of scoring.
    fn pre_score(&self, cx: &mut CycleContext<'_>, nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError>;
}

/// Scores feasible nodes.
pub trait ScorePlugin: Plugin {
    /// Scores one node: 0 to 100, unless the plugin also normalises. Same inputs, same score, on any thread.
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, scratch: Option<&Scratch>) -> Result<i64, PluginError>;

    /// Scores all feasible nodes; override it to read the cycle's state once.
    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        for at in 0..scores.nodes.len() {
            scores.scores[at] = self.score(cx, scores.nodes[at], scores.scratch(at))?;
        }
        Ok(())
    }
}

/// Brings a plugin's scores into the range from 0 to 100.
pub trait NormalizeScore: Plugin {
    /// Rewrites the scores.
    fn normalize(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError>;
}

/// Keeps account of what an assumed pod holds.
pub trait ReservePlugin: Plugin {
    /// Takes what the pod needs on `node`. `scratch` is what the plugin's `Filter` left for that node.
    fn reserve(&self, cx: &mut CycleContext<'_>, node: &str, scratch: Option<&Scratch>)
    -> Result<Verdict, PluginError>;

    /// Gives it back: in memory at once; what has to be written to the API is returned. Also called for plugins whose
    /// `reserve` was never reached, so it has to be idempotent.
    fn unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Option<BoxFuture<'static, ()>>;
}

/// Holds a pod back, or lets it go, between its reservation and its binding.
pub trait PermitPlugin: Plugin {
    /// Whether the pod may be bound to `node` now.
    fn permit(&self, cx: &mut CycleContext<'_>, node: &str) -> Result<PermitOutcome, PluginError>;
}

/// A pod on its way to being bound.
#[derive(Clone, Copy, Debug)]
pub struct BindContext<'a> {
    /// The pod, with its node name set.
    pub pod: &'a Arc<PodInfo>,
    /// The node.
    pub node: &'a Arc<str>,
    /// What plugins remembered during the cycle.
    pub state: &'a CycleState,
}

/// Does what has to be done before a pod is bound.
pub trait PreBindPlugin: Plugin {
    /// Whether `pre_bind` has work to do. Without side effects.
    fn pre_flight(&self, cx: BindContext<'_>) -> Result<PreBindPreFlight, PluginError>;

    /// Does it.
    fn pre_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<PreBindOutcome, PluginError>>;
}

/// Binds pods.
pub trait BindPlugin: Plugin {
    /// Binds the pod, or leaves it to another plugin.
    fn bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>>;
}

/// Hears of bound pods.
pub trait PostBindPlugin: Plugin {
    /// The pod is bound.
    fn post_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, ()>;
}
