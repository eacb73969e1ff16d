//! The result of an evaluation: each node's verdict, each plugin's score.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::framework::{Code, PluginError, Rejection};
use crate::model::NodeInfo;

/// The answer of a plugin, in the names that messages and metrics give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusEvaluation {
    /// The plugin that answered; empty where the answer is no single plugin's.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub plugin: Arc<str>,
    /// `Success`, `Unschedulable`, `UnschedulableAndUnresolvable`, `Pending` or `Error`.
    pub code: &'static str,
    /// The reasons, in the plugin's order.
    pub reasons: Vec<String>,
}

/// The result of all `PreFilter` plugins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreFilterEvaluation {
    /// The combined answer of the plugins.
    #[serde(flatten)]
    pub status: StatusEvaluation,
    /// The nodes that the search is narrowed to, sorted; `None` for all.
    pub nodes: Option<Vec<String>>,
    /// The plugins that `Filter` leaves out, sorted.
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
    /// Whether `PreFilter` left the node out, so that no filter saw it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    /// The score of each plugin; only where the node can take the pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<Arc<str>, ScoreEvaluation>,
    /// The sum of the weighted scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
}

/// The answers of all plugins of a profile about one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The pod as `namespace/name`.
    pub pod: Arc<str>,
    /// The schedulerName of the profile.
    pub scheduler: Arc<str>,
    /// Why the pod is not scheduled at all, if it is not; the rest is what would have been decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skipped: String,
    /// The rejection by `PreEnqueue` that keeps the pod out of activeQ.
    pub pre_enqueue: Option<StatusEvaluation>,
    /// The pod's signature; `None` if a plugin cannot sign it.
    pub signature: Option<String>,
    /// The result of `PreFilter`.
    pub pre_filter: PreFilterEvaluation,
    /// Every node, in the order in which they are tried from the first one on; none if `PreFilter` rejects the pod.
    pub nodes: Vec<NodeEvaluation>,
    /// The plugins that do not score this pod, sorted.
    pub score_skip: Vec<Arc<str>>,
    /// The error of `PreScore` or `Score`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub score_error: String,
    /// The name of the chosen node; empty if none is chosen.
    pub host: String,
    /// Number of nodes that the search evaluated until it found the host, if `percentageOfNodesToScore` does not stop it
    /// earlier. 0 without a host.
    #[serde(skip_serializing_if = "is_zero")]
    pub evaluated_nodes: usize,
    /// Number of evaluated nodes that can take the pod.
    #[serde(skip_serializing_if = "is_zero")]
    pub feasible_nodes: usize,
    /// The reason why no node can take the pod, as its condition says it but for the words of `PostFilter`, which is not
    /// run.
    pub message: String,
    /// The plugins whose events may help the pod, sorted.
    pub rejectors: Vec<Arc<str>>,
    /// The plugins among these that will say themselves when to try again, sorted.
    pub pending_plugins: Vec<Arc<str>>,
    /// The error that ends the attempt.
    pub error: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl StatusEvaluation {
    /// The answer of plugins that have nothing against the pod.
    pub(super) fn success() -> Self {
        Self { plugin: Arc::default(), code: Code::Success.as_str(), reasons: Vec::new() }
    }

    /// The answer of a plugin that rejects the pod.
    pub(super) fn rejected(plugin: &Arc<str>, rejection: &Rejection) -> Self {
        Self {
            plugin: plugin.clone(),
            code: rejection.code().as_str(),
            reasons: rejection.reasons.iter().map(str::to_owned).collect(),
        }
    }

    /// The answer of a plugin that failed.
    pub(super) fn failed(plugin: &Arc<str>, error: &PluginError) -> Self {
        Self { plugin: plugin.clone(), code: Code::Error.as_str(), reasons: vec![error.to_string()] }
    }
}

impl NodeEvaluation {
    pub(super) fn new(node: &NodeInfo, status: StatusEvaluation, absent: bool) -> Self {
        Self { node: node.name_arc().clone(), status, absent, scores: BTreeMap::new(), total: None }
    }
}
