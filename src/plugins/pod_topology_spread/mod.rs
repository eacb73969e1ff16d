//! `PodTopologySpread`: pods that belong together are spread over the values of a node label, the domains of a topology. A
//! hard constraint keeps pods away from domains that have too many already; a soft one makes them less attractive.
//!
//! ```text
//!  constraints ◀─ default_selector      what the pod asks for, or the profile for pods that ask for nothing
//!       │
//!       ├──▶ filter   PreFilter counts every node's pods into domains, Filter compares with the emptiest one
//!       ├──▶ score    PreScore counts for the domains of feasible nodes, Score and Normalize turn that into points
//!       └──▶ hints    which changes may help a pod that was rejected
//! ```
//!
//! Pods are never walked over, nor are nodes where all count: a selector is matched once a class of pods, a class knows how
//! many of its pods are where, and domains are numbers, so that a count by domain is an array (`counts`).
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
    /// Whether `matchLabelKeys` narrow selectors.
    match_label_keys: bool,
    /// Whether tolerations may compare numbers.
    comparisons: bool,
    defaults: Defaults,
    /// Finds the selector of default constraints; none if there are no default constraints.
    selectors: Option<DefaultSelectors>,
    hard: Slot<filter::Spread>,
    soft: Slot<score::Points>,
}

impl PodTopologySpread {
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#New @v1.36.3` in which kinds are watched.
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
    /// What other pods are where is not in a signature.
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
