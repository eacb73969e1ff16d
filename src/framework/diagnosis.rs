//! The reasons why a pod fits on no node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{CycleContext, NodeRef, PluginError, Rejection, RejectionKind, Verdict};
use crate::model::{NodeOrdinal, PodInfo};

/// The pseudo-plugin that stands for extenders. Follows `pkg/scheduler/framework/types.go#ExtenderName @v1.36.3`.
pub const EXTENDER: &str = "Extender";

/// Message for a cluster without nodes. Follows `pkg/scheduler/scheduler.go#ErrNoNodesAvailable @v1.36.3`.
pub const NO_NODES_AVAILABLE: &str = "no nodes available to schedule pods";

/// A node that was examined and rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRejection {
    /// Ordinal of the node in the snapshot.
    pub node: NodeOrdinal,
    /// The plugin that rejected the node, or [`EXTENDER`].
    pub plugin: Arc<str>,
    /// The rejection with its reasons.
    pub rejection: Rejection,
}

/// The reasons why a pod fits on no node. Follows `pkg/scheduler/framework/types.go#Diagnosis @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The rejected nodes, in the order in which they were examined.
    pub nodes: Vec<NodeRejection>,
    /// The rejection that applies to every node that is not in `nodes`.
    pub absent: Option<Rejection>,
    /// The plugins that rejected the pod. Events that these plugins registered may make the pod schedulable.
    pub unschedulable_plugins: BTreeSet<Arc<str>>,
    /// The plugins among `unschedulable_plugins` that returned `Pending`. Such a plugin decides itself when the pod is retried.
    pub pending_plugins: BTreeSet<Arc<str>>,
    /// The message of `PreFilter`, if it rejected the pod.
    pub pre_filter_message: String,
    /// The message of `PostFilter`.
    pub post_filter_message: String,
}

impl Diagnosis {
    /// Returns the diagnosis of a rejection at `Reserve` or `Permit`, where one plugin rejects the pod independently of nodes.
    pub fn of_plugin(plugin: Arc<str>, rejection: Rejection) -> Self {
        let mut diagnosis = Self::default();
        diagnosis.record(NodeRejection { node: NodeOrdinal::new(0), plugin, rejection });
        diagnosis
    }

    /// Records a rejected node, and adds its plugin to the plugins that rejected the pod.
    pub fn record(&mut self, node: NodeRejection) {
        if !self.unschedulable_plugins.contains(&node.plugin) {
            self.unschedulable_plugins.insert(node.plugin.clone());
        }
        if node.rejection.kind == RejectionKind::Pending && !self.pending_plugins.contains(&node.plugin) {
            self.pending_plugins.insert(node.plugin.clone());
        }
        self.nodes.push(node);
    }

    /// Returns the kind of rejection for this node.
    /// Follows `pkg/scheduler/framework/interface.go#NodeToStatus.Get @v1.36.3`.
    pub fn kind_of(&self, node: NodeOrdinal) -> RejectionKind {
        let examined = self.nodes.iter().find(|rejected| rejected.node == node).map(|rejected| &rejected.rejection);
        examined.or(self.absent.as_ref()).map_or(RejectionKind::Unresolvable, |rejection| rejection.kind)
    }

    /// Returns the message `0/N nodes are available: …`. The counted reasons are sorted as text, so `10 x` comes before `2 y`.
    /// Follows `pkg/scheduler/framework/types.go#FitError.Error @v1.36.3`.
    pub fn message(&self, num_all_nodes: usize) -> String {
        let mut message = format!("0/{num_all_nodes} nodes are available:");
        if self.pre_filter_message.is_empty() {
            message.push_str(&self.histogram(num_all_nodes));
        } else {
            message.push(' ');
            message.push_str(&self.pre_filter_message);
            message.push('.');
        }
        if !self.post_filter_message.is_empty() {
            message.push(' ');
            message.push_str(&self.post_filter_message);
        }
        message
    }

    fn histogram(&self, num_all_nodes: usize) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &self.nodes {
            for reason in node.rejection.reasons.iter() {
                *counts.entry(reason).or_default() += 1;
            }
        }
        let unexamined = num_all_nodes.saturating_sub(self.nodes.len());
        if let Some(absent) = self.absent.as_ref().filter(|_| unexamined > 0) {
            for reason in absent.reasons.iter() {
                *counts.entry(reason).or_default() += unexamined;
            }
        }
        let mut lines: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        lines.sort_unstable();
        if lines.is_empty() { String::new() } else { format!(" {}.", lines.join(", ")) }
    }
}

/// Runs a profile's filters on hypothetical nodes, for plugins that simulate preemption.
pub trait FilterRunner: Send + Sync {
    /// Runs all filters on one node with exactly the pods that `node` has. Nominated pods are not added.
    fn run_filters(&self, cx: &CycleContext<'_>, node: NodeRef<'_>) -> Result<Verdict, PluginError>;

    /// Runs all filters on one node, with and without the pods nominated to it that have at least this pod's priority.
    /// Follows `kube-scheduler/framework/interface.go#Handle.RunFilterPluginsWithNominatedPods @v1.36.3`.
    fn run_filters_with_nominated_pods(&self, cx: &CycleContext<'_>, node: NodeRef<'_>)
    -> Result<Verdict, PluginError>;

    /// Tells the plugins that `added` is now on the hypothetical node.
    fn add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: NodeRef<'_>) -> Result<(), PluginError>;

    /// Tells the plugins that `removed` is no longer on the hypothetical node.
    fn remove_pod(&self, cx: &mut CycleContext<'_>, removed: &PodInfo, node: NodeRef<'_>) -> Result<(), PluginError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(reasons: &[(&'static str, usize)]) -> Diagnosis {
        let mut diagnosis = Diagnosis::default();
        for (reason, count) in reasons {
            for _ in 0..*count {
                diagnosis.record(NodeRejection {
                    node: NodeOrdinal::new(diagnosis.nodes.len()),
                    plugin: Arc::from("P"),
                    rejection: Rejection::unschedulable(*reason),
                });
            }
        }
        diagnosis
    }

    #[test]
    fn reasons_are_sorted_as_text() {
        assert_eq!(
            diagnosis(&[("Too many pods", 2), ("Insufficient cpu", 10)]).message(12),
            "0/12 nodes are available: 10 Insufficient cpu, 2 Too many pods."
        );
    }

    #[test]
    fn nodes_without_a_status_count_with_the_absent_reason() {
        let mut diagnosis = diagnosis(&[("Insufficient cpu", 1)]);
        diagnosis.absent = Some(Rejection::unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]"));
        diagnosis.post_filter_message = "no new claims to deallocate".into();
        assert_eq!(
            diagnosis.message(3),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to deallocate"
        );
    }

    #[test]
    fn pre_filter_message_has_no_reason_counts() {
        let mut diagnosis = diagnosis(&[]);
        diagnosis.pre_filter_message = "pod affinity terms conflict".into();
        diagnosis.absent = Some(Rejection::unresolvable("pod affinity terms conflict"));
        assert_eq!(diagnosis.message(3), "0/3 nodes are available: pod affinity terms conflict.");
    }
}
