//! Arguments of the plugin `PodTopologySpread`.
//!
//! Follows `pkg/scheduler/apis/config/types_pluginargs.go`, `pkg/scheduler/apis/config/v1/defaults.go` and
//! `pkg/scheduler/apis/config/validation/validation_pluginargs.go @v1.36.3`.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde::Serialize;

use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::wire_args;
use crate::config::{FeatureGates, PluginArgs};
use crate::go::quote::quote;
use crate::k8s::names::qualified_name_errors;

/// The defaulting type that applies built-in soft constraints.
pub(super) const SYSTEM: &str = "System";

/// The defaulting type that applies the constraints in the arguments.
pub(super) const LIST: &str = "List";

/// Arguments of the plugin `PodTopologySpread`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTopologySpreadArgs {
    /// Constraints for pods without constraints of their own. They must not have label selectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub default_constraints: Vec<TopologySpreadConstraint>,
    /// `System` for built-in soft constraints, or `List` for `default_constraints`.
    pub defaulting_type: String,
}

wire_args!(PodTopologySpreadArgs, {
    "defaultConstraints" => default_constraints,
    "defaultingType" as "v1.PodTopologySpreadConstraintsDefaulting" => defaulting_type,
});

impl PluginArgs for PodTopologySpreadArgs {
    const KIND: &'static str = "PodTopologySpreadArgs";

    fn set_defaults(&mut self, _gates: &FeatureGates) {
        if self.defaulting_type.is_empty() {
            SYSTEM.clone_into(&mut self.defaulting_type);
        }
    }

    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        let type_path = path.child("defaultingType");
        match self.defaulting_type.as_str() {
            SYSTEM if !self.default_constraints.is_empty() => {
                errors.invalid(&type_path, quote(SYSTEM), "when .defaultConstraints are not empty");
            }
            SYSTEM | LIST => {}
            other => errors.unsupported(&type_path, other, &[SYSTEM, LIST]),
        }
        for i in 0..self.default_constraints.len() {
            let path = path.child("defaultConstraints").index(i);
            validate_last(&path, &self.default_constraints[..=i], errors);
        }
    }
}

/// Adds the errors of the last constraint, which is at `path`.
fn validate_last(path: &FieldPath, constraints: &[TopologySpreadConstraint], errors: &mut FieldErrors) {
    let Some((constraint, earlier)) = constraints.split_last() else { return };
    if constraint.max_skew <= 0 {
        errors.invalid(&path.child("maxSkew"), constraint.max_skew, "not in valid range (0, inf)");
    }
    let key = constraint.topology_key.as_str();
    let key_path = path.child("topologyKey");
    if key.is_empty() {
        errors.required(&key_path, "can not be empty");
    }
    for fault in qualified_name_errors(key).iter().filter(|_| !key.is_empty()) {
        errors.invalid(&key_path, quote(key), fault);
    }
    let when_path = path.child("whenUnsatisfiable");
    match constraint.when_unsatisfiable.as_str() {
        "" => errors.required(&when_path, "can not be empty"),
        "DoNotSchedule" | "ScheduleAnyway" => {}
        other => errors.unsupported(&when_path, other, &["DoNotSchedule", "ScheduleAnyway"]),
    }
    if constraint.label_selector.is_some() {
        let detail = "constraint must not define a selector, as they deduced for each pod";
        errors.forbidden(&path.child("labelSelector"), detail);
    }
    let same = |other: &TopologySpreadConstraint| {
        other.topology_key == constraint.topology_key && other.when_unsatisfiable == constraint.when_unsatisfiable
    };
    if earlier.iter().any(same) {
        errors.duplicate(path, &format!("{{{key}, {}}}", constraint.when_unsatisfiable));
    }
}
