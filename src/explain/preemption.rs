//! Simulated preemption for a pod that fits nowhere.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::change::Nodes;
use crate::config::ExtensionPoint;
use crate::framework::preemption::{Candidate, Choice, Evaluator};
use crate::framework::{CycleContext, Diagnosis, Framework, PostFilterContext};
use crate::plugins::default_preemption;
use crate::simulate::Loading;

/// Result that preemption would have, without asking extenders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionExplanation {
    /// The node with the victims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// The pods that would be preempted, the most important one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<Arc<str>>,
    /// Number of victims whose preemption would violate a disruption budget.
    #[serde(rename = "pdbViolations")]
    pub pdb_violations: i64,
    /// Why no preemption is possible.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Evaluates the profile's `DefaultPreemption`, if it has one, without preempting any pod.
pub(super) fn explain(
    cluster: &Loading,
    profile: &Framework,
    cx: &CycleContext<'_>,
    diagnosis: &Diagnosis,
) -> Option<PreemptionExplanation> {
    let enabled = profile.expanded().point(ExtensionPoint::PostFilter);
    enabled.iter().find(|plugin| plugin.name == default_preemption::NAME)?;
    let min_candidates = cluster.preemption.get(&**profile.name())?;
    // The profile has the plugin, so the resources that it reads are watched.
    let evaluator = Evaluator::new(default_preemption::NAME, profile.handle(), *min_candidates).ok()?;
    let failed = PostFilterContext { diagnosis, filters: profile, extenders: &(), random: 0 };
    let said = |message: String| PreemptionExplanation { node: None, victims: Vec::new(), pdb_violations: 0, message };
    Some(match evaluator.choose(cx, &failed) {
        Ok(Choice::Best(Candidate { node, victims, pdb_violations })) => PreemptionExplanation {
            victims: victims.iter().map(|pod| pod.key().clone()).collect(),
            node: Some(node),
            pdb_violations,
            message: String::new(),
        },
        Ok(Choice::None { rejection, .. }) => said(rejection.reasons.to_string()),
        Err(error) => said(error.to_string()),
    })
}

impl fmt::Display for PreemptionExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(node) = &self.node else { return f.write_str(&self.message) };
        let victims: Vec<&str> = self.victims.iter().map(|victim| &**victim).collect();
        write!(f, "would preempt {} on {node}", Nodes(&victims))?;
        match self.pdb_violations {
            0 => Ok(()),
            violations => write!(f, ", {violations} in violation of a disruption budget"),
        }
    }
}
