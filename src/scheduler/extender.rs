//! Extenders: webhooks that take part in scheduling, as the cycle calls them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::framework::preemption::Candidate;
use crate::framework::{BoxFuture, PluginError};
use crate::model::{NodeInfo, PodInfo, Snapshot};

/// The nodes that an extender keeps.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Some of those that it was given, by position in that list, in the order of its reply.
    Positions(Vec<usize>),
    /// What it made of them: nodes built from the objects in its reply, without the pods on them. Scores of this pod see
    /// them like that.
    Nodes(Vec<Arc<NodeInfo>>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Positions(Vec::new())
    }
}

/// What an extender leaves of the nodes.
#[derive(Clone, Debug, Default)]
pub struct ExtenderFilter {
    /// The nodes it keeps.
    pub kept: Kept,
    /// Nodes it rejects, with its reason; preemption may help.
    pub failed: BTreeMap<String, String>,
    /// Nodes it rejects, with its reason; preemption does not help. Wins over `failed`.
    pub failed_and_unresolvable: BTreeMap<String, String>,
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
    /// Whether it has a say in preemption.
    fn supports_preemption(&self) -> bool {
        false
    }
    /// Leaves out candidates for preemption that it does not want, and may choose other victims on the rest, which are on the
    /// nodes of `snapshot`.
    fn preempt(
        &self,
        pod: &PodInfo,
        candidates: Vec<Candidate>,
        snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, PluginError> {
        let _ = (pod, snapshot);
        Ok(candidates)
    }
    /// Leaves out nodes that it does not want. One without filter keeps all.
    fn filter(&self, pod: &PodInfo, nodes: &[&NodeInfo]) -> Result<ExtenderFilter, PluginError>;
    /// Scores nodes from 0 to 10, by name, and says what the scores are multiplied with. One that does not score gives
    /// every node 0.
    fn prioritize(&self, pod: &PodInfo, nodes: &[&NodeInfo]) -> Result<(Vec<(String, i64)>, i64), PluginError>;
    /// Binds the pod to a node, in the pod's own task.
    fn bind<'a>(&'a self, pod: &'a PodInfo, node: &'a str) -> BoxFuture<'a, Result<(), PluginError>>;
}
