//! `VolumeBinding`, which is not implemented yet: pods with claims are not scheduled.
//!
//! Follows `pkg/scheduler/framework/plugins/volumebinding/volume_binding.go @v1.36.3` in deciding which pods need the plugin.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use serde::Serialize;

use super::unsupported::{MissingForVolumes, Unsupported};
use super::utilization::{MAX_CURVE_SCORE, UtilizationShapePoint, validate_shape};
use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::wire_args;
use crate::config::{FeatureGates, Gate, PluginArgs};
use crate::framework::{Handle, PluginError, Registration};
use crate::k8s::{Volume, VolumeSource};

/// Name of the plugin.
pub const NAME: &str = "VolumeBinding";

/// Arguments of the plugin `VolumeBinding`.
/// Follows `pkg/scheduler/apis/config/types_pluginargs.go#VolumeBindingArgs @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeBindingArgs {
    /// Time limit, in seconds, for binding the volumes of a pod.
    pub bind_timeout_seconds: i64,
    /// The curve that scores storage utilization. `None` unless `StorageCapacityScoring` is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<UtilizationShapePoint>>,
}

wire_args!(VolumeBindingArgs, { "bindTimeoutSeconds" => bind_timeout_seconds, "shape" => shape });

impl Default for VolumeBindingArgs {
    fn default() -> Self {
        Self { bind_timeout_seconds: 600, shape: None }
    }
}

impl PluginArgs for VolumeBindingArgs {
    const KIND: &'static str = "VolumeBindingArgs";

    /// Sets the defaults that depend on feature gates.
    /// Follows `pkg/scheduler/apis/config/v1/defaults.go#SetDefaults_VolumeBindingArgs @v1.36.3`.
    fn set_defaults(&mut self, gates: &FeatureGates) {
        if gates.enabled(Gate::StorageCapacityScoring) && self.shape.as_ref().is_none_or(Vec::is_empty) {
            let points = [(0, MAX_CURVE_SCORE), (100, 0)];
            self.shape = Some(points.map(|(utilization, score)| UtilizationShapePoint { utilization, score }).into());
        }
    }

    /// Adds an error for each invalid value.
    /// Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go#ValidateVolumeBindingArgsWithOptions @v1.36.3`.
    fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors) {
        if self.bind_timeout_seconds < 0 {
            let detail = "invalid BindTimeoutSeconds, should not be a negative value";
            errors.invalid(&path.child("bindTimeoutSeconds"), self.bind_timeout_seconds, detail);
        }
        let shape_path = path.child("shape");
        if gates.enabled(Gate::StorageCapacityScoring) {
            validate_shape(&shape_path, self.shape.as_deref().unwrap_or_default(), errors);
        } else if let Some(points) = &self.shape {
            let point = |point: &UtilizationShapePoint| {
                format!(r#"{{"Utilization":{},"Score":{}}}"#, point.utilization, point.score)
            };
            let shown = format!("[{}]", points.iter().map(point).collect::<Vec<_>>().join(","));
            let detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";
            errors.invalid(&shape_path, shown, detail);
        }
    }
}

struct VolumeBinding;

/// Builds the plugin, which does not use its arguments yet.
pub fn factory(_args: VolumeBindingArgs, handle: &Handle) -> Result<Registration, PluginError> {
    // Upstream watches these kinds, so their listers are requested although they are not used yet.
    handle.lister::<PersistentVolume>()?;
    handle.lister::<PersistentVolumeClaim>()?;
    handle.lister::<StorageClass>()?;
    handle.lister::<CSINode>()?;
    handle.lister::<CSIDriver>()?;
    handle.lister::<CSIStorageCapacity>()?;
    let plugin = Unsupported::new(VolumeBinding);
    Ok(Registration::new(NAME)
        .events(&plugin)
        .pre_filter(&plugin)
        .filter(&plugin)
        .pre_score(&plugin)
        .score(&plugin)
        .reserve(&plugin)
        .pre_bind(&plugin)
        .sign(&plugin))
}

impl MissingForVolumes for VolumeBinding {
    const NAME: &'static str = NAME;
    const WHAT: &'static str = "persistent volume claims";

    fn is_needed(volume: &Volume) -> bool {
        matches!(volume.source, VolumeSource::PersistentVolumeClaim { .. } | VolumeSource::Ephemeral)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::unsupported::not_supported;
    use super::*;
    use crate::framework::{
        BindContext, CycleState, PreBindOutcome, PreBindPreFlight, PreScoreOutcome, SignOutcome, Verdict,
    };
    use crate::testing::{Harness, node, pod};

    fn check(volumes: Value, passes: bool) {
        let rejected = Verdict::unresolvable(not_supported(NAME, "persistent volume claims"));
        let expected = if passes { Verdict::Pass } else { rejected };
        Harness::new(factory).check_filter(&pod("p").set("spec.volumes", volumes), node("n"), &expected);
    }

    #[test]
    fn pods_with_claims_are_rejected() {
        check(json!([{"name": "v", "emptyDir": {}}]), true);
        check(json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), false);
        check(json!([{"name": "v", "ephemeral": {}}]), false);
    }

    #[test]
    fn filter_without_pre_filter_decides_alike() {
        let claiming = pod("p").set("spec.volumes", json!([{"name": "v", "ephemeral": {}}]));
        let harness = Harness::new(factory);
        let rejected = Verdict::unresolvable(not_supported(NAME, "persistent volume claims"));
        assert_eq!(harness.bare_filter(&claiming, node("n")), Ok(rejected));
        assert_eq!(harness.bare_filter(&pod("p"), node("n")), Ok(Verdict::Pass));
    }

    #[test]
    fn pods_without_claims_pass_every_point() {
        let harness = Harness::new(factory).cluster(vec![node("n")], &[]);
        assert_eq!(harness.pre_score(&pod("p")).0, Ok(PreScoreOutcome::Skip));
        let registration = &harness.registration;
        let (pod, node, state) = (pod("p").info(), std::sync::Arc::from("n"), CycleState::default());
        let cx = BindContext { pod: &pod, node: &node, state: &state };
        let pre_bind = registration.pre_bind.as_ref().expect("PreBind");
        assert_eq!(pre_bind.pre_flight(cx), Ok(PreBindPreFlight::Skip { parallel: true }));
        assert_eq!(futures::executor::block_on(pre_bind.pre_bind(cx)), Ok(PreBindOutcome::Pass));
        let reserve = registration.reserve.as_ref().expect("Reserve");
        assert!(reserve.unreserve(&state, &pod, "n").is_none());
    }

    #[test]
    fn ephemeral_volumes_are_not_signed() {
        let harness = Harness::new(factory);
        harness.check_signature(&pod("p"), &[("v1.Pod.Spec.Volumes.NonSyntheticSources()", "[]")]);
        let ephemeral = pod("p").set("spec.volumes", json!([{"name": "v", "ephemeral": {}}]));
        let outcome = harness.registration.sign.expect("Sign").sign(&ephemeral.info());
        assert!(matches!(outcome, Ok(SignOutcome::Refuse(_))));
    }
}
