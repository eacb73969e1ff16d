//! `PodTopologySpread`: spreads pods over topology domains, the values of a node label. A hard constraint rejects nodes in
//! domains that already have too many pods. A soft constraint gives such nodes a lower score.
//!
//! ```text
//!  constraints ◀─ default_selector      the constraints of the pod, or the profile's for pods without constraints
//!       │
//!       ├──▶ filter   PreFilter counts the pods of all nodes by domain, Filter compares with the minimum count
//!       ├──▶ score    PreScore counts the pods in the domains of feasible nodes, Score and Normalize compute the scores
//!       └──▶ hints    the events that may help a rejected pod
//! ```
//!
//! The plugin does not iterate over pods. A selector is matched once per label class, and the snapshot has the number of pods of
//! each class on each node. Inclusion policies are checked for each node, but not if no policy can exclude a node. Domains are
//! numbered, so the counts by domain are an array (`counts`).
//!
//! Follows `pkg/scheduler/framework/plugins/podtopologyspread @v1.36.3`.

mod args;
mod constraints;
mod counts;
mod default_selector;
mod filter;
mod hints;
mod score;
mod topology;

use std::sync::Arc;

pub use args::PodTopologySpreadArgs;

use super::event::hints_enabled;
use crate::config::Gate;
use crate::framework::{Handle, Plugin, PluginError, Registration, Rejection, SignOutcome, SignPlugin, Slot};
use crate::model::PodInfo;
use constraints::Defaults;
use default_selector::DefaultSelectors;

/// Name of the plugin.
pub const NAME: &str = "PodTopologySpread";

/// The in-tree plugin `PodTopologySpread`.
#[derive(Clone, Debug)]
struct PodTopologySpread {
    hints: bool,
    /// Whether `matchLabelKeys` restrict selectors.
    match_label_keys: bool,
    /// Whether tolerations may compare numbers: gate `TaintTolerationComparisonOperators`.
    comparisons: bool,
    defaults: Defaults,
    /// Derives the selector of default constraints. `None` if there are no default constraints.
    selectors: Option<DefaultSelectors>,
    hard: Slot<filter::Spread>,
    soft: Slot<score::Points>,
}

impl PodTopologySpread {
    /// Builds the plugin, which watches the same kinds as upstream.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#New @v1.36.3`.
    fn new(args: PodTopologySpreadArgs, handle: &Handle) -> Result<Self, PluginError> {
        let defaults = Defaults::new(args);
        let selectors = (!defaults.constraints.is_empty()).then(|| DefaultSelectors::new(handle)).transpose()?;
        Ok(Self {
            hints: hints_enabled(handle),
            match_label_keys: handle.gates().enabled(Gate::MatchLabelKeysInPodTopologySpread),
            comparisons: handle.gates().enabled(Gate::TaintTolerationComparisonOperators),
            defaults,
            selectors,
            hard: handle.slot(),
            soft: handle.slot(),
        })
    }
}

/// Builds the plugin for a profile.
pub fn factory(args: PodTopologySpreadArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(PodTopologySpread::new(args, handle)?);
    Ok(Registration::new(NAME)
        .events(&plugin)
        .pre_filter(&plugin)
        .filter(&plugin)
        .pre_score(&plugin)
        .score(&plugin)
        .normalize(&plugin)
        .sign(&plugin))
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &str {
        NAME
    }
}

impl SignPlugin for PodTopologySpread {
    /// Refuses to sign pods with constraints, because a signature does not cover the placement of other pods.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#PodTopologySpread.SignPod @v1.36.3`.
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        let refuse = |reason| SignOutcome::Refuse(Rejection::unschedulable(reason));
        Ok(if !pod.pod().spec.topology_spread_constraints.is_empty() {
            refuse("pods with topology constraints are not signable")
        } else if !self.defaults.constraints.is_empty() {
            refuse("pods with default topology constraints are not signable")
        } else {
            SignOutcome::Fragments(Vec::new())
        })
    }
}

#[cfg(test)]
mod tests;
