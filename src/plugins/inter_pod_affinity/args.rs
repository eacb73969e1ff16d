//! Arguments of the plugin `InterPodAffinity`.
//!
//! Follows `pkg/scheduler/apis/config/types_pluginargs.go`, `pkg/scheduler/apis/config/v1/defaults.go` and
//! `pkg/scheduler/apis/config/validation/validation_pluginargs.go @v1.36.3`.

use serde::Serialize;

use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::wire_args;
use crate::config::{FeatureGates, PluginArgs};

/// Arguments of the plugin `InterPodAffinity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterPodAffinityArgs {
    /// The weight (0–100) that an existing pod's required affinity has in scoring.
    pub hard_pod_affinity_weight: i32,
    /// Whether the preferred terms of existing pods are ignored when the incoming pod has no preferred terms.
    pub ignore_preferred_terms_of_existing_pods: bool,
}

wire_args!(InterPodAffinityArgs, {
    "hardPodAffinityWeight" => hard_pod_affinity_weight,
    "ignorePreferredTermsOfExistingPods" => ignore_preferred_terms_of_existing_pods,
});

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        Self { hard_pod_affinity_weight: 1, ignore_preferred_terms_of_existing_pods: false }
    }
}

impl PluginArgs for InterPodAffinityArgs {
    const KIND: &'static str = "InterPodAffinityArgs";

    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        let weight = self.hard_pod_affinity_weight;
        if !(0..=100).contains(&weight) {
            errors.invalid(&path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]");
        }
    }
}
