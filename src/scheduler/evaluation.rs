//! The result of an evaluation: the verdict on each node, and the scores of each plugin.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::framework::{Code, PluginError, Rejection};
use crate::model::NodeInfo;

/// The outcome of a plugin, with the names used in metrics and messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusEvaluation {
    /// Name of the plugin with this outcome. Empty if the outcome is not that of a single plugin.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub plugin: Arc<str>,
    /// `Success`, `Unschedulable`, `UnschedulableAndUnresolvable`, `Pending` or `Error`.
    pub code: &'static str,
    /// The reasons, in the plugin's order.
    pub reasons: Vec<String>,
}

/// The combined result of the `PreFilter` plugins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreFilterEvaluation {
    /// The combined status of the plugins.
    #[serde(flatten)]
    pub status: StatusEvaluation,
    /// Names of the nodes to which the search is restricted, sorted. `None` for all nodes.
    pub nodes: Option<Vec<String>>,
    /// The plugins whose `Filter` is skipped, sorted.
    pub skip: Vec<Arc<str>>,
}

/// One plugin's score of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScoreEvaluation {
    /// The score as `Score` returned it.
    pub raw: i64,
    /// The score after `NormalizeScore`: 0 to 100.
    pub normalized: i64,
    /// The normalized score times the plugin's weight.
    pub weighted: i64,
}

/// The verdict and the scores of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeEvaluation {
    /// The name of the node.
    pub node: Arc<str>,
    /// The verdict of the filters.
    #[serde(flatten)]
    pub status: StatusEvaluation,
    /// Whether `PreFilter` excluded the node, so that no filter ran on it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    /// The scores by plugin. Empty unless the node is feasible.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<Arc<str>, ScoreEvaluation>,
    /// The sum of the weighted scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
}

/// The results of all plugins of a profile for one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The pod as `namespace/name`.
    pub pod: Arc<str>,
    /// The schedulerName of the profile.
    pub scheduler: Arc<str>,
    /// The reason why the scheduler skips the pod. The other fields then show the decision that would be made otherwise. Empty
    /// if the pod is not skipped.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skipped: String,
    /// The rejection by `PreEnqueue` that keeps the pod out of activeQ.
    pub pre_enqueue: Option<StatusEvaluation>,
    /// The pod's signature; `None` if a plugin cannot sign it.
    pub signature: Option<String>,
    /// The result of `PreFilter`.
    pub pre_filter: PreFilterEvaluation,
    /// Results for all nodes, in the order of the snapshot. Empty if `PreFilter` rejects the pod or fails.
    pub nodes: Vec<NodeEvaluation>,
    /// The plugins whose `Score` is skipped for this pod, sorted.
    pub score_skip: Vec<Arc<str>>,
    /// The error of `PreScore` or `Score`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub score_error: String,
    /// The name of the chosen node; empty if none is chosen.
    pub host: String,
    /// Number of nodes that the search examines to find the host if `percentageOfNodesToScore` is 100. 0 without a host.
    #[serde(skip_serializing_if = "is_zero")]
    pub evaluated_nodes: usize,
    /// Number of feasible nodes among the examined nodes.
    #[serde(skip_serializing_if = "is_zero")]
    pub feasible_nodes: usize,
    /// The reason why no node is feasible, as in the pod's condition. The message of `PostFilter` is missing, unless the caller
    /// of [`evaluate_then`](super::evaluate_then) adds it.
    pub message: String,
    /// The plugins that rejected the pod and whose events may help it, sorted.
    pub rejectors: Vec<Arc<str>>,
    /// The plugins among `rejectors` that decide themselves when the pod is retried, sorted.
    pub pending_plugins: Vec<Arc<str>>,
    /// The error that ends the attempt.
    pub error: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl StatusEvaluation {
    /// Returns the status of plugins that accept the pod.
    pub(super) fn success() -> Self {
        Self { plugin: Arc::default(), code: Code::Success.as_str(), reasons: Vec::new() }
    }

    /// Returns the status of a plugin that rejects the pod.
    pub(super) fn rejected(plugin: &Arc<str>, rejection: &Rejection) -> Self {
        Self {
            plugin: plugin.clone(),
            code: rejection.code().as_str(),
            reasons: rejection.reasons.iter().map(str::to_owned).collect(),
        }
    }

    /// Returns the status of a plugin that failed.
    pub(super) fn failed(plugin: &Arc<str>, error: &PluginError) -> Self {
        Self { plugin: plugin.clone(), code: Code::Error.as_str(), reasons: vec![error.to_string()] }
    }
}

impl NodeEvaluation {
    pub(super) fn new(node: &NodeInfo, status: StatusEvaluation, absent: bool) -> Self {
        Self { node: node.name_arc().clone(), status, absent, scores: BTreeMap::new(), total: None }
    }
}
