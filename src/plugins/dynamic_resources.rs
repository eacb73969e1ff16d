//! `DynamicResources`, which is not implemented yet: pods that need devices are not scheduled.
//!
//! Follows `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go @v1.36.3` in deciding which pods need the
//! plugin, and in the `PostFilter` result for the other pods.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::DeviceClass;
use serde::Serialize;

use super::unsupported::{Missing, Unsupported, not_supported};
use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::wire_args;
use crate::config::{FeatureGates, Gate, PluginArgs};
use crate::framework::{
    CycleContext, CycleState, EventRegistration, Handle, PluginError, PostFilterContext, PostFilterOutcome,
    PostFilterPlugin, PreEnqueuePlugin, Registration, Rejection, SignOutcome, Slot, Verdict,
};
use crate::go::duration::GoDuration;
use crate::go::quote::quote;
use crate::k8s::names::{DEVICE_CLASS_PREFIX, is_device_resource};
use crate::listers::Lister;
use crate::model::{ActionType, ClusterEvent, EventResource, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "DynamicResources";

/// Arguments of the plugin `DynamicResources`.
/// Follows `pkg/scheduler/apis/config/types_pluginargs.go#DynamicResourcesArgs @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicResourcesArgs {
    /// Time limit of `Filter` per node. Zero means no limit. `None` by default if the gate `DRASchedulerFilterTimeout` is off.
    pub filter_timeout: Option<GoDuration>,
    /// Time limit for devices to become ready. `None` by default if the gate `DRADeviceBindingConditions` or
    /// `DRAResourceClaimDeviceStatus` is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_timeout: Option<GoDuration>,
}

wire_args!(DynamicResourcesArgs, { "filterTimeout" => filter_timeout, "bindingTimeout" => binding_timeout });

/// Whether binding may wait for conditions of devices.
fn binding_conditions_enabled(gates: &FeatureGates) -> bool {
    gates.enabled(Gate::DRADeviceBindingConditions) && gates.enabled(Gate::DRAResourceClaimDeviceStatus)
}

impl PluginArgs for DynamicResourcesArgs {
    const KIND: &'static str = "DynamicResourcesArgs";

    /// Sets the defaults that depend on feature gates.
    /// Follows `pkg/scheduler/apis/config/v1/defaults.go#SetDefaults_DynamicResourcesArgs @v1.36.3`.
    fn set_defaults(&mut self, gates: &FeatureGates) {
        if gates.enabled(Gate::DRASchedulerFilterTimeout) {
            self.filter_timeout.get_or_insert(GoDuration::from_secs(10));
        }
        if binding_conditions_enabled(gates) {
            self.binding_timeout.get_or_insert(GoDuration::from_secs(600));
        }
    }

    /// Adds an error for each invalid value.
    /// Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go#ValidateDynamicResourcesArgs @v1.36.3`.
    fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors) {
        if let Some(timeout) = self.filter_timeout {
            let path = path.child("filterTimeout");
            if !gates.enabled(Gate::DRASchedulerFilterTimeout) {
                errors.forbidden(&path, "DRASchedulingFilterTimeout feature gate is disabled");
            } else if timeout < GoDuration::ZERO {
                errors.invalid(&path, quote(&timeout.to_string()), "must be zero or positive");
            }
        }
        if let Some(timeout) = self.binding_timeout {
            let path = path.child("bindingTimeout");
            if !binding_conditions_enabled(gates) {
                let detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled";
                errors.forbidden(&path, detail);
            } else if timeout < GoDuration::from_secs(1) {
                errors.invalid(&path, quote(&timeout.to_string()), "must be at least 1 second");
            }
        }
    }
}

/// Cycle state that marks that this plugin's `PreFilter` ran.
#[derive(Clone, Copy, Debug)]
struct Reached;

struct DynamicResources {
    gates: FeatureGates,
    /// `None` while the gate `DynamicResourceAllocation` is off.
    classes: Option<Lister<DeviceClass>>,
    reached: Slot<Reached>,
}

/// Builds the plugin, which does not use its arguments yet.
pub fn factory(_args: DynamicResourcesArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let gates = *handle.gates();
    let classes = gates.enabled(Gate::DynamicResourceAllocation).then(|| handle.lister()).transpose()?;
    let missing = DynamicResources { gates, classes, reached: handle.slot() };
    let plugin = Unsupported::new(missing);
    Ok(Registration::new(NAME)
        .events(&plugin)
        .pre_enqueue(&plugin)
        .pre_filter(&plugin)
        .filter(&plugin)
        .post_filter(&plugin)
        .score(&plugin)
        .normalize(&plugin)
        .reserve(&plugin)
        .pre_bind(&plugin)
        .sign(&plugin))
}

impl DynamicResources {
    fn is_enabled(&self) -> bool {
        self.gates.enabled(Gate::DynamicResourceAllocation)
    }

    fn has_claims(&self, pod: &PodInfo) -> bool {
        !pod.pod().spec.resource_claims.is_empty()
            || (self.gates.enabled(Gate::DRAExtendedResource)
                && pod.spec_requests().scalars().any(|(name, amount)| amount != 0 && self.is_device_class(name)))
    }

    /// Whether a device class provides this extended resource.
    /// Follows
    /// `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go#hasDeviceClassMappedExtendedResource
    /// @v1.36.3`.
    fn is_device_class(&self, resource: &str) -> bool {
        let Some(classes) = self.classes.as_ref().filter(|_| is_device_resource(resource)) else { return false };
        match resource.strip_prefix(DEVICE_CLASS_PREFIX) {
            Some(class) => classes.get(class).is_some(),
            None => classes.list().iter().any(|class| class.spec.extended_resource_name.as_deref() == Some(resource)),
        }
    }
}

impl Missing for DynamicResources {
    const NAME: &'static str = NAME;

    fn requirement(&self, cx: &CycleContext<'_>) -> Option<Cow<'static, str>> {
        (self.is_enabled() && self.has_claims(cx.pod)).then(|| not_supported(NAME, "device claims"))
    }

    fn begin(&self, state: &mut CycleState) {
        if self.is_enabled() {
            state.set(self.reached, Reached);
        }
    }

    fn sign(&self, pod: &PodInfo) -> SignOutcome {
        if pod.pod().spec.resource_claims.is_empty() {
            SignOutcome::Fragments(Vec::new())
        } else {
            SignOutcome::Refuse(Rejection::unschedulable("pods with dra resource claims are not signable"))
        }
    }

    /// Registers for device classes: a changed class may provide another extended resource.
    fn events(self: Arc<Self>) -> Vec<EventRegistration> {
        if !self.is_enabled() {
            return Vec::new();
        }
        let class_changed = ClusterEvent::new(EventResource::DeviceClass, ActionType::ADD | ActionType::UPDATE);
        vec![EventRegistration::new(class_changed)]
    }
}

/// Lets every pod pass. `PreFilter` rejects pods with claims instead, so that their status shows the reason.
impl PreEnqueuePlugin for Unsupported<DynamicResources> {
    fn pre_enqueue(&self, _pod: &PodInfo) -> Verdict {
        Verdict::Pass
    }
}

impl PostFilterPlugin for Unsupported<DynamicResources> {
    /// Reports that this plugin cannot help the pod. Like upstream, fails if `PreFilter` of this plugin did not run because
    /// another plugin rejected the pod before.
    fn post_filter(
        &self,
        cx: &mut CycleContext<'_>,
        _failed: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError> {
        let said = if !self.missing.is_enabled() {
            "plugin disabled"
        } else if cx.state.get(self.missing.reached).is_none() {
            return Err(PluginError::new("not found"));
        } else if self.missing.has_claims(cx.pod) {
            "still not schedulable"
        } else {
            "no new claims to deallocate"
        };
        Ok(PostFilterOutcome::Reject { rejection: Rejection::unschedulable(said), nominated: None })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Harness, PodFixture, node, pod};

    fn claiming() -> PodFixture {
        pod("p").set("spec.resourceClaims", json!([{"name": "c", "resourceClaimName": "c"}]))
    }

    fn with_class(class: Value) -> Harness {
        let harness = Harness::new(factory);
        let class: DeviceClass = serde_json::from_value(class).expect("a device class");
        harness.handle.listers().put(Arc::new(class));
        harness
    }

    fn rejected() -> Verdict {
        Verdict::unresolvable(not_supported(NAME, "device claims"))
    }

    #[test]
    fn pods_with_resource_claims_are_rejected() {
        Harness::new(factory).check_filter(&pod("p"), node("n"), &Verdict::Pass);
        Harness::new(factory).check_filter(&claiming(), node("n"), &rejected());
    }

    #[test]
    fn extended_resources_with_a_device_class_are_rejected() {
        let harness =
            with_class(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}));
        harness.check_filter(&pod("p").request("example.com/gpu", "1"), node("n"), &rejected());
        harness.check_filter(&pod("p").request("example.com/gpu", "0"), node("n"), &Verdict::Pass);
        harness.check_filter(&pod("p").request("example.com/other", "1"), node("n"), &Verdict::Pass);
        let by_class = |class: &str| pod("p").request(&format!("deviceclass.resource.kubernetes.io/{class}"), "1");
        harness.check_filter(&by_class("gpu"), node("n"), &rejected());
        harness.check_filter(&by_class("other"), node("n"), &Verdict::Pass);
    }

    #[test]
    fn post_filter_messages_equal_upstreams() {
        let harness = Harness::new(factory);
        let check = |pod: &PodFixture, said: &'static str| {
            let (_, state) = harness.pre_filter(pod);
            let rejection = Rejection::unschedulable(said);
            let expected = PostFilterOutcome::Reject { rejection, nominated: None };
            assert_eq!(harness.post_filter(pod, state), Ok(expected));
        };
        check(&pod("p"), "no new claims to deallocate");
        check(&claiming(), "still not schedulable");
        let unreached = harness.post_filter(&pod("p"), CycleState::default());
        assert_eq!(unreached, Err(PluginError::new("not found")));
    }

    #[test]
    fn with_the_gate_off_the_plugin_is_disabled() {
        let gates = FeatureGates::at(33).with(Gate::DynamicResourceAllocation, false);
        let harness = Harness::with_gates(gates, factory);
        assert!(harness.events().is_empty());
        harness.check_filter(&claiming(), node("n"), &Verdict::Pass);
        let rejection = Rejection::unschedulable("plugin disabled");
        let expected = PostFilterOutcome::Reject { rejection, nominated: None };
        assert_eq!(harness.post_filter(&claiming(), CycleState::default()), Ok(expected));
    }

    #[test]
    fn scores_are_zero_and_pods_with_claims_are_not_signed() {
        let harness = Harness::new(factory).cluster(vec![node("a"), node("b")], &[]);
        assert_eq!(harness.scores(&pod("p"), &mut CycleState::default()), Ok((vec![0, 0], vec![0, 0])));
        harness.check_signature(&pod("p"), &[]);
        let signed = harness.registration.sign.as_ref().expect("Sign").sign(&claiming().info());
        let refused = Rejection::unschedulable("pods with dra resource claims are not signable");
        assert_eq!(signed, Ok(SignOutcome::Refuse(refused)));
        assert_eq!(harness.registered[0].event.resource, EventResource::DeviceClass);
        let pre_enqueue = harness.registration.pre_enqueue.as_ref().expect("PreEnqueue");
        assert_eq!(pre_enqueue.pre_enqueue(&claiming().info()), Verdict::Pass);
    }
}
