//! The interface between the cycles and extenders, the webhooks that take part in scheduling.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::framework::{BoxFuture, NodeRef, PluginError};
use crate::model::{NodeInfo, PodInfo, Snapshot};

/// The nodes that remain after an extender filtered them.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Nodes of the request, in the order of the reply. Each is given by its position in the request.
    Positions(Vec<usize>),
    /// Nodes built from the objects in the extender's reply, without pods. The scores of this pod are computed on these nodes.
    Nodes(Vec<Arc<NodeInfo>>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Positions(Vec::new())
    }
}

/// The reply of an extender that filters nodes.
#[derive(Clone, Debug, Default)]
pub struct ExtenderFilter {
    /// The nodes that remain feasible.
    pub kept: Kept,
    /// Rejected nodes with the extender's reason. Preemption may help.
    pub failed: BTreeMap<String, String>,
    /// Rejected nodes with the extender's reason. Preemption does not help. Takes precedence over `failed`.
    pub failed_and_unresolvable: BTreeMap<String, String>,
}

/// The pods to evict from a node so that another pod fits.
/// Follows `kube-scheduler/extender/v1/types.go#Victims @v1.36.3`.
#[derive(Clone, Debug, Default)]
pub struct Victims {
    /// The pods to evict.
    pub pods: Vec<Arc<PodInfo>>,
    /// Number of these pods that a `PodDisruptionBudget` protects.
    pub num_pdb_violations: i64,
}

/// The kinds of objects that extenders receive as whole JSON. The JSON of these objects must be kept in addition to the parsed
/// objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeObjects {
    /// Pods that have no node.
    pub pending_pods: bool,
    /// Pods that have a node.
    pub assigned_pods: bool,
    /// Nodes of the cluster.
    pub nodes: bool,
}

/// Union of the objects that several extenders receive.
impl FromIterator<WholeObjects> for WholeObjects {
    fn from_iter<I: IntoIterator<Item = Self>>(each: I) -> Self {
        each.into_iter().fold(Self::default(), |all, one| Self {
            pending_pods: all.pending_pods || one.pending_pods,
            assigned_pods: all.assigned_pods || one.assigned_pods,
            nodes: all.nodes || one.nodes,
        })
    }
}

/// A webhook that takes part in scheduling. Each call waits for the reply, up to the extender's own timeout. The scheduling
/// thread makes all calls except `bind`, and waits for them. Follows `kube-scheduler/framework/extender.go#Extender @v1.36.3`.
pub trait Extender: Send + Sync {
    /// Returns the extender's URL, which is its name in logs.
    fn name(&self) -> &str;
    /// Whether the extender handles this pod.
    fn is_interested(&self, pod: &PodInfo) -> bool;
    /// Whether scheduling goes on without the extender if it fails.
    fn is_ignorable(&self) -> bool;
    /// Whether the extender filters nodes.
    fn is_filter(&self) -> bool;
    /// Whether the extender scores nodes.
    fn is_prioritizer(&self) -> bool;
    /// Whether the extender binds pods.
    fn is_binder(&self) -> bool;
    /// Filters the given nodes. An extender that is not a filter keeps all nodes.
    fn filter(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Result<ExtenderFilter, PluginError>;
    /// Returns the scores of the nodes, 0 to 10, by name, and the weight of the scores. An extender that is not a prioritizer
    /// gives every node 0.
    fn prioritize(&self, pod: &PodInfo, nodes: &[NodeRef<'_>]) -> Result<(Vec<(String, i64)>, i64), PluginError>;
    /// Binds the pod to a node. This runs in the pod's own task.
    fn bind<'a>(&'a self, pod: &'a PodInfo, node: &'a str) -> BoxFuture<'a, Result<(), PluginError>>;
    /// Whether the extender takes part in preemption.
    fn supports_preemption(&self) -> bool {
        false
    }
    /// Returns the nodes, by name, that remain candidates for preemption, with their victims. Victims may be any pods on the
    /// snapshot's nodes.
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
    /// Returns the kinds of objects that the extender receives as whole JSON.
    fn whole_objects(&self) -> WholeObjects {
        WholeObjects::default()
    }
}
