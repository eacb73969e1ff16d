//! `NodeUnschedulable`: an unschedulable node accepts only pods that tolerate its taint.
//!
//! Follows `pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go @v1.36.3`.

use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::Taint;

use super::event::{changed_node, hint, hints_enabled, node_event, updated_pod};
use super::json;
use crate::config::Gate;
use crate::framework::{
    Candidates, CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, Plugin, PluginError,
    QueueingHint, Registration, Scratch, SignOutcome, SignPlugin, Verdict,
};
use crate::k8s::{Pod, tolerations};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "NodeUnschedulable";

const REASON: &str = "node(s) were unschedulable";

/// The taint that an unschedulable node is treated as having.
static UNSCHEDULABLE: LazyLock<Taint> = LazyLock::new(|| Taint {
    key: "node.kubernetes.io/unschedulable".to_owned(),
    effect: "NoSchedule".to_owned(),
    ..Taint::default()
});

/// The in-tree plugin `NodeUnschedulable`.
#[derive(Clone, Copy, Debug)]
struct NodeUnschedulable {
    hints: bool,
    /// Whether tolerations may compare numbers: gate `TaintTolerationComparisonOperators`.
    comparisons: bool,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let comparisons = handle.gates().enabled(Gate::TaintTolerationComparisonOperators);
    let plugin = Arc::new(NodeUnschedulable { hints: hints_enabled(handle), comparisons });
    Ok(Registration::new(NAME).events(&plugin).filter(&plugin).sign(&plugin))
}

impl NodeUnschedulable {
    fn tolerates(self, pod: &Pod) -> bool {
        tolerations::tolerated(&pod.spec.tolerations, &UNSCHEDULABLE, self.comparisons)
    }

    /// Returns the hint for an updated pod.
    /// Follows
    /// `pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go#isSchedulableAfterPodTolerationChange
    /// @v1.36.3`.
    fn after_pod_update(self, pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let updated = updated_pod(objects)?;
        let helps = updated.uid() == pod.uid() && self.tolerates(updated);
        Ok(hint(helps))
    }
}

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &str {
        NAME
    }
}

impl FilterPlugin for NodeUnschedulable {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        if !node.is_unschedulable() || self.tolerates(cx.pod.pod()) {
            return Ok(Verdict::Pass);
        }
        Ok(Verdict::unresolvable(REASON))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        if self.tolerates(cx.pod.pod()) {
            return Ok(());
        }
        block.retain(|node, _| Ok(if node.is_unschedulable() { Verdict::unresolvable(REASON) } else { Verdict::Pass }));
        Ok(())
    }
}

impl SignPlugin for NodeUnschedulable {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(SignOutcome::Fragments(vec![json::tolerations(pod.pod())]))
    }
}

impl EnqueueExtensions for NodeUnschedulable {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let node_changed = node_event(self.hints, ActionType::ADD | ActionType::UPDATE_NODE_TAINT);
        let mut events = vec![EventRegistration::with_hint(node_changed, after_node_change)];
        if self.hints {
            let tolerations_changed = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_TOLERATION);
            let hint = move |pod: &PodInfo, objects: &EventObjects| self.after_pod_update(pod, objects);
            events.push(EventRegistration::with_hint(tolerations_changed, hint));
        }
        Ok(events)
    }
}

/// Returns the hint for an added or updated node.
/// Follows `pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go#isSchedulableAfterNodeChange @v1.36.3`.
fn after_node_change(_pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (old, new) = changed_node(objects)?;
    let was_closed = old.is_none_or(|old| old.spec.unschedulable);
    Ok(hint(was_closed && !new.spec.unschedulable))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

    use super::*;
    use crate::config::FeatureGates;
    use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

    const KEY: &str = "node.kubernetes.io/unschedulable";

    fn check(pod: PodFixture, node: NodeFixture, expected: Verdict) {
        Harness::new(factory).check_filter(&pod, node, &expected);
    }

    #[test]
    fn cordoned_nodes_reject_untolerating_pods() {
        let rejected = || Verdict::unresolvable("node(s) were unschedulable");
        check(pod("p"), node("n"), Verdict::Pass);
        check(pod("p"), node("n").unschedulable(), rejected());
        check(pod("p").toleration(KEY, "", "NoSchedule"), node("n").unschedulable(), Verdict::Pass);
        check(pod("p").toleration(KEY, "", "NoExecute"), node("n").unschedulable(), rejected());
        check(pod("p").toleration("", "", ""), node("n").unschedulable(), Verdict::Pass);
        check(pod("p").toleration(KEY, "x", ""), node("n").unschedulable(), rejected());
    }

    #[test]
    fn uncordoned_nodes_requeue() {
        let harness = Harness::new(factory);
        assert_eq!(harness.registered[0].event.action, ActionType::ADD | ActionType::UPDATE_NODE_TAINT);
        let check = |hint, expected| assert_eq!(hint, expected);
        check(harness.node_add(&pod("p"), 0, node("n")), QueueingHint::Queue);
        check(harness.node_add(&pod("p"), 0, node("n").unschedulable()), QueueingHint::Skip);
        check(harness.node_update(&pod("p"), 0, node("n").unschedulable(), node("n")), QueueingHint::Queue);
        check(harness.node_update(&pod("p"), 0, node("n"), node("n")), QueueingHint::Skip);
        check(harness.node_update(&pod("p"), 0, node("n"), node("n").unschedulable()), QueueingHint::Skip);
    }

    #[test]
    fn new_toleration_of_the_own_pod_requeues() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events()[1], "PodUpdatePodToleration");
        let check = |new: PodFixture, expected| {
            assert_eq!(harness.pod_update(&pod("p"), 1, pod("p"), new), expected);
        };
        check(pod("p").toleration(KEY, "", ""), QueueingHint::Queue);
        check(pod("p").toleration("other", "", ""), QueueingHint::Skip);
        check(pod("q").toleration(KEY, "", ""), QueueingHint::Skip);
    }

    #[test]
    fn without_hints_only_nodes_are_registered() {
        let gates = FeatureGates::at(33).with(Gate::SchedulerQueueingHints, false);
        let harness = Harness::with_gates(gates, factory);
        assert_eq!(harness.registered.len(), 1);
        let expected = ActionType::ADD | ActionType::UPDATE_NODE_TAINT | ActionType::UPDATE_NODE_LABEL;
        assert_eq!(harness.registered[0].event.action, expected);
    }

    #[test]
    fn signature_is_the_tolerations() {
        let expected = r#"[{"key":"a","operator":"Exists"}]"#;
        Harness::new(factory)
            .check_signature(&pod("p").toleration("a", "", ""), &[("v1.Pod.Spec.Tolerations", expected)]);
    }
}
