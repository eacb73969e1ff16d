//! `DefaultPreemption`, which is not built yet: no room is made for a pod that fits nowhere.
//!
//! Its places and its registration are those of
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go @v1.36.3`.

use std::sync::Arc;

use crate::config::Gate;
use crate::framework::{
    CycleContext, EnqueueExtensions, EventRegistration, Handle, Plugin, PluginArgs, PluginError, PostFilterContext,
    PostFilterOutcome, PostFilterPlugin, PreEnqueuePlugin, QueueingHint, Registration, Rejection, Verdict,
};
use crate::metrics::Metrics;
use crate::model::{ActionType, ClusterEvent, EventResource, PodInfo};

/// The plugin's name.
pub const NAME: &str = "DefaultPreemption";

/// The plugin.
struct DefaultPreemption {
    asynchronous: bool,
    metrics: Arc<Metrics>,
}

/// Builds the plugin. Its arguments mean nothing yet.
pub fn factory(_args: PluginArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let asynchronous = handle.gates().enabled(Gate::SchedulerAsyncPreemption);
    let plugin = Arc::new(DefaultPreemption { asynchronous, metrics: handle.metrics().clone() });
    Ok(Registration::new(NAME).events(&plugin).pre_enqueue(&plugin).post_filter(&plugin))
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreEnqueuePlugin for DefaultPreemption {
    fn pre_enqueue(&self, _pod: &PodInfo) -> Verdict {
        Verdict::Pass
    }
}

impl PostFilterPlugin for DefaultPreemption {
    /// The nomination is cleared, as when upstream finds no victims.
    fn post_filter(
        &self,
        _cx: &mut CycleContext<'_>,
        _failed: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError> {
        self.metrics.preemption_attempts().inc();
        let rejection = Rejection::unschedulable("preemption: not supported yet");
        Ok(PostFilterOutcome::Reject { rejection, nominated: Some(String::new()) })
    }
}

impl EnqueueExtensions for DefaultPreemption {
    /// What becomes of a pod's victims is for the plugins to judge that rejected it; the registration only says that
    /// deleted pods matter to this one.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        if !self.asynchronous {
            return Ok(Vec::new());
        }
        let pod_deleted = ClusterEvent::new(EventResource::Pod, ActionType::DELETE);
        Ok(vec![EventRegistration::with_hint(pod_deleted, |_, _| Ok(QueueingHint::Skip))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeatureGates;
    use crate::framework::CycleState;
    use crate::plugins::tests::harness::Harness;
    use crate::testing::pod;

    #[test]
    fn it_says_that_it_is_missing_and_clears_the_nomination() {
        let harness = Harness::new(factory);
        let rejection = Rejection::unschedulable("preemption: not supported yet");
        let expected = PostFilterOutcome::Reject { rejection, nominated: Some(String::new()) };
        assert_eq!(harness.post_filter(&pod("p"), CycleState::default()), Ok(expected));
        assert_eq!(harness.handle.metrics().preemption_attempts().get(), 1);
        let pre_enqueue = harness.registration.pre_enqueue.as_ref().expect("PreEnqueue");
        assert_eq!(pre_enqueue.pre_enqueue(&pod("p").info()), Verdict::Pass);
    }

    #[test]
    fn deleted_pods_are_registered_and_never_help() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events(), ["PodDelete"]);
        assert_eq!(harness.pod_delete(&pod("p"), 0, pod("q").on("n")), QueueingHint::Skip);
        let gates = FeatureGates::default().with(Gate::SchedulerAsyncPreemption, false);
        assert!(Harness::with_gates(gates, factory).events().is_empty());
    }
}
