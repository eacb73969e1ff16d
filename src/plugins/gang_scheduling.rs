//! `GangScheduling`, which is not implemented yet: members of a pod group are not scheduled.
//!
//! The extension points are those of `pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go @v1.36.3`. A member is
//! rejected at `Permit`, so that its status shows the reason. The status of a pod rejected at `PreEnqueue` would show no reason.

use std::sync::Arc;

use super::unsupported::not_supported;
use crate::framework::{
    CycleContext, EnqueueExtensions, EventRegistration, Handle, PermitOutcome, PermitPlugin, Plugin, PluginError,
    PreEnqueuePlugin, Registration, Rejection, Verdict,
};
use crate::model::PodInfo;

/// Name of the plugin.
pub const NAME: &str = "GangScheduling";

/// The in-tree plugin `GangScheduling`.
struct GangScheduling;

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), _handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(GangScheduling);
    Ok(Registration::new(NAME).events(&plugin).pre_enqueue(&plugin).permit(&plugin))
}

impl Plugin for GangScheduling {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreEnqueuePlugin for GangScheduling {
    fn pre_enqueue(&self, _pod: &PodInfo) -> Verdict {
        Verdict::Pass
    }
}

impl PermitPlugin for GangScheduling {
    fn permit(&self, cx: &mut CycleContext<'_>, _node: &str) -> Result<PermitOutcome, PluginError> {
        Ok(match cx.pod.pod().spec.scheduling_group {
            Some(_) => PermitOutcome::Reject(Rejection::unresolvable(not_supported(NAME, "a pod group"))),
            None => PermitOutcome::Allow,
        })
    }
}

impl EnqueueExtensions for GangScheduling {
    /// Registers no events, because no event makes a member of a pod group schedulable.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Harness, PodFixture, pod};

    fn check(pod: PodFixture, expected: PermitOutcome) {
        let harness = Harness::new(factory);
        assert!(harness.events().is_empty());
        assert_eq!(harness.permit(&pod, "n"), Ok(expected));
        let pre_enqueue = harness.registration.pre_enqueue.as_ref().expect("PreEnqueue");
        assert_eq!(pre_enqueue.pre_enqueue(&pod.info()), Verdict::Pass);
    }

    #[test]
    fn pod_group_members_are_rejected() {
        check(pod("p"), PermitOutcome::Allow);
        let rejection = Rejection::unresolvable(not_supported(NAME, "a pod group"));
        check(pod("p").set("spec.schedulingGroup", json!({"podGroupName": "g"})), PermitOutcome::Reject(rejection));
    }
}
