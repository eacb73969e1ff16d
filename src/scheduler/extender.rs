//! Extenders: webhooks that take part in scheduling, as the cycle calls them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::framework::{BoxFuture, NodeRef, PluginError};
use crate::model::{NodeInfo, PodInfo, Snapshot};

/// The nodes that an extender keeps.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Some of those that it was given, by position in that list, in the order of its reply.
    Positions(Vec<usize>),
    /// Nodes built from the objects in the extender's reply, without the pods on them. Scores of this pod see them like
    /// that.
    Nodes(Vec<Arc<NodeInfo>>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Positions(Vec::new())
    }
}

/// The answer of an extender that filters nodes.
#[derive(Clone, Debug, Default)]
pub struct ExtenderFilter {
    /// The nodes it keeps.
    pub kept: Kept,
    /// Nodes it rejects, with its reason; preemption may help.
    pub failed: BTreeMap<String, String>,
    /// Nodes it rejects, with its reason; preemption does not help. Wins over `failed`.
    pub failed_and_unresolvable: BTreeMap<String, String>,
}

/// The pods that would have to go from a node for another pod's sake.
/// Follows `kube-scheduler/extender/v1/types.go#Victims @v1.36.3`.
#[derive(Clone, Debug, Default)]
pub struct Victims {
    /// The pods to evict.
    pub pods: Vec<Arc<PodInfo>>,
    /// Number of these pods that a `PodDisruptionBudget` protects.
    pub num_pdb_violations: i64,
}

/// Whose JSON an extender is sent, which therefore has to be kept beside what scheduling reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeObjects {
    /// Pods without a node.
    pub pending_pods: bool,
    /// Pods with a node.
    pub assigned_pods: bool,
    /// Nodes.
    pub nodes: bool,
}

/// What several extenders are sent together.
impl FromIterator<WholeObjects> for WholeObjects {
    fn from_iter<I: IntoIterator<Item = Self>>(each: I) -> Self {
        each.into_iter().fold(Self::default(), |all, one| Self {
            pending_pods: all.pending_pods || one.pending_pods,
            assigned_pods: all.assigned_pods || one.assigned_pods,
            nodes: all.nodes || one.nodes,
        })
    }
}

/// A webhook that takes part in scheduling. Calls wait for its answer, with its own timeout. All but `bind` are made by the
/// scheduling thread, which waits, too. Follows `kube-scheduler/framework/extender.go#Extender @v1.36.3`.
pub trait Extender: Send + Sync {
    /// What it is called in logs: its URL.
    fn name(&self) -> &str;
    /// Whether it has a say about this pod.
    fn is_interested(&self, pod: &PodInfo) -> bool;
    /// Whether scheduling goes on without it when it fails.
    fn is_ignorable(&self) -> bool;
    /// Whether it filters nodes.
    fn is_filter(&self) -> bool;
    /// Whether it scores nodes.
    fn is_prioritizer(&self) -> bool;
    /// Whether it binds pods.
    fn is_binder(&self) -> bool;
    /// Leaves out nodes that it does not want. One without filter keeps all.
    fn filter(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Result<ExtenderFilter, PluginError>;
    /// Scores nodes from 0 to 10, by name, and says what the scores are multiplied with. One that does not score gives
    /// every node 0.
    fn prioritize(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Result<(Vec<(String, i64)>, i64), PluginError>;
    /// Binds the pod to a node, in the pod's own task.
    fn bind<'a>(&'a self, pod: &'a PodInfo, node: &'a str) -> BoxFuture<'a, Result<(), PluginError>>;
    /// Whether it takes part in preemption.
    fn supports_preemption(&self) -> bool {
        false
    }
    /// Which of the nodes, by name, it lets preemption consider, and with which victims; any pods on the snapshot's nodes.
    /// Follows `kube-scheduler/framework/extender.go#Extender.ProcessPreemption @v1.36.3`.
    fn process_preemption(
        &self,
        _pod: &PodInfo,
        _victims: &BTreeMap<String, Victims>,
        _snapshot: &Snapshot,
    ) -> Result<BTreeMap<String, Victims>, PluginError> {
        let name = self.name();
        let text = format!("preempt verb is not defined for extender {name} but run into ProcessPreemption");
        Err(PluginError::new(text))
    }
    /// Whose JSON it is sent.
    fn whole_objects(&self) -> WholeObjects {
        WholeObjects::default()
    }
}
