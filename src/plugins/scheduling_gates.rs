//! `SchedulingGates`: a pod is not scheduled while it has scheduling gates.
//!
//! Follows `pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go @v1.36.3`.

use std::sync::Arc;

use super::event::{hint, hints_enabled, updated_pod};
use crate::framework::{
    EnqueueExtensions, EventRegistration, Handle, Plugin, PluginError, PreEnqueuePlugin, QueueingHint, Registration,
    Verdict,
};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "SchedulingGates";

/// The in-tree plugin `SchedulingGates`.
#[derive(Debug)]
struct SchedulingGates {
    hints: bool,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(SchedulingGates { hints: hints_enabled(handle) });
    Ok(Registration::new(NAME).events(&plugin).pre_enqueue(&plugin))
}

impl Plugin for SchedulingGates {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreEnqueuePlugin for SchedulingGates {
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict {
        let gates = &pod.pod().spec.scheduling_gates;
        if gates.is_empty() {
            return Verdict::Pass;
        }
        let names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
        Verdict::unresolvable(format!("waiting for scheduling gates: [{}]", names.join(" ")))
    }
}

impl EnqueueExtensions for SchedulingGates {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        // Without hints, an update of a waiting pod moves it back to the queue.
        if !self.hints {
            return Ok(Vec::new());
        }
        let gates_gone = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_SCHEDULING_GATES_ELIMINATED);
        Ok(vec![EventRegistration::with_hint(gates_gone, after_gates_gone)])
    }
}

fn after_gates_gone(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let own = updated_pod(objects)?.uid() == pod.uid();
    Ok(hint(own))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

    use super::*;
    use crate::config::{FeatureGates, Gate};
    use crate::testing::{Harness, PodFixture, pod};

    fn check(pod: PodFixture, expected: Verdict) {
        let plugin = Harness::new(factory).registration.pre_enqueue.expect("PreEnqueue");
        assert_eq!(plugin.pre_enqueue(&pod.info()), expected);
    }

    #[test]
    fn pods_with_scheduling_gates_are_rejected() {
        check(pod("p"), Verdict::Pass);
        check(pod("p").gate("a"), Verdict::unresolvable("waiting for scheduling gates: [a]"));
        check(pod("p").gate("a").gate("b"), Verdict::unresolvable("waiting for scheduling gates: [a b]"));
    }

    #[test]
    fn removed_gates_of_the_own_pod_requeue() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events(), ["PodUpdatePodSchedulingGatesEliminated"]);
        let waiting = pod("p").gate("a");
        assert_eq!(harness.pod_update(&waiting, 0, waiting.clone(), pod("p")), QueueingHint::Queue);
        assert_eq!(harness.pod_update(&waiting, 0, pod("q").gate("a"), pod("q")), QueueingHint::Skip);
    }

    #[test]
    fn without_hints_no_events_are_registered() {
        let gates = FeatureGates::at(33).with(Gate::SchedulerQueueingHints, false);
        assert!(Harness::with_gates(gates, factory).events().is_empty());
    }
}
