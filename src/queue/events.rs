//! Differences between two versions of a pod or node, as the events that plugins register for.

use crate::config::{FeatureGates, Gate};
use crate::k8s::{Node, Pod, RequestOptions, pod_requests};
use crate::model::{ActionType, ClusterEvent, EventResource};

/// Returns one event for each kind of change of a pod, in upstream's order, or a general update if the change has no event
/// of its own.
/// Follows `pkg/scheduler/framework/events.go#PodSchedulingPropertiesChange @v1.36.3`.
pub fn pod_events(old: &Pod, new: &Pod, gates: &FeatureGates) -> Vec<ClusterEvent> {
    let claims_count = gates.enabled(Gate::DynamicResourceAllocation);
    let changes = [
        (ActionType::UPDATE_POD_LABEL, old.labels() != new.labels()),
        (ActionType::UPDATE_POD_SCALE_DOWN, is_scaled_down(old, new, gates)),
        (
            ActionType::UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            !old.spec.scheduling_gates.is_empty() && new.spec.scheduling_gates.is_empty(),
        ),
        // Tolerations can only be added, so comparing their number is enough.
        (ActionType::UPDATE_POD_TOLERATION, old.spec.tolerations.len() != new.spec.tolerations.len()),
        (ActionType::UPDATE_POD_GENERATED_RESOURCE_CLAIM, claims_count && has_new_claims(old, new)),
    ];
    let resource = if new.node_name().is_some() { EventResource::AssignedPod } else { EventResource::UnschedulablePod };
    let mut events = events(&resource, changes);
    if events.is_empty() {
        events.push(ClusterEvent::new(resource, ActionType::UPDATE));
    }
    events
}

/// Returns one event for each kind of change of a node, in upstream's order. Empty if scheduling does not depend on the change.
/// Follows `pkg/scheduler/framework/events.go#NodeSchedulingPropertiesChange @v1.36.3`.
pub fn node_events(old: &Node, new: &Node, gates: &FeatureGates) -> Vec<ClusterEvent> {
    let features_count = gates.enabled(Gate::NodeDeclaredFeatures);
    let changes = [
        (ActionType::UPDATE_NODE_TAINT, old.spec.unschedulable && !new.spec.unschedulable),
        (ActionType::UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (ActionType::UPDATE_NODE_LABEL, old.labels() != new.labels()),
        (ActionType::UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (ActionType::UPDATE_NODE_CONDITION, have_conditions_changed(old, new)),
        (ActionType::UPDATE_NODE_ANNOTATION, old.annotations() != new.annotations()),
        (
            ActionType::UPDATE_NODE_DECLARED_FEATURE,
            features_count && old.status.declared_features != new.status.declared_features,
        ),
    ];
    events(&EventResource::Node, changes)
}

fn events<const N: usize>(resource: &EventResource, changes: [(ActionType, bool); N]) -> Vec<ClusterEvent> {
    let happened = changes.into_iter().filter(|(_, changed)| *changed);
    happened.map(|(action, _)| ClusterEvent::new(resource.clone(), action)).collect()
}

/// Whether the pod requests less of a resource than before.
/// Follows `pkg/scheduler/framework/events.go#extractPodScaleDown @v1.36.3`.
fn is_scaled_down(old: &Pod, new: &Pod, gates: &FeatureGates) -> bool {
    let options = RequestOptions {
        use_status: gates.enabled(Gate::InPlacePodVerticalScaling),
        use_pod_level_status: gates.enabled(Gate::InPlacePodLevelResourcesVerticalScaling),
        ..RequestOptions::default()
    };
    let new = pod_requests(new, &options);
    pod_requests(old, &options)
        .iter()
        .any(|(name, old)| new.get(name).is_none_or(|new| old.milli_value() > new.milli_value()))
}

/// Whether the claims in the pod's status changed.
/// Follows `pkg/scheduler/framework/events.go#extractPodGeneratedResourceClaimChange @v1.36.3`.
pub(super) fn has_new_claims(old: &Pod, new: &Pod) -> bool {
    old.status.resource_claim_statuses != new.status.resource_claim_statuses
        || old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
}

/// Whether the status of a condition changed, or a condition was added or removed. Reasons and times are ignored.
/// Follows `pkg/scheduler/framework/events.go#extractNodeConditionsChange @v1.36.3`.
fn have_conditions_changed(old: &Node, new: &Node) -> bool {
    let statuses = |node: &Node| -> std::collections::BTreeMap<String, String> {
        node.status.conditions.iter().map(|condition| (condition.type_.clone(), condition.status.clone())).collect()
    };
    statuses(old) != statuses(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{NodeFixture, PodFixture, node, pod};

    fn labels(events: &[ClusterEvent]) -> String {
        events.iter().map(|event| event.label().to_string()).collect::<Vec<_>>().join(" ")
    }

    /// Checks the events of a change from a pod with one gate, one toleration and requests of 2 CPUs and 1 GiB.
    #[track_caller]
    fn check_pod(change: impl FnOnce(PodFixture) -> PodFixture, expected: &str) {
        let base = || pod("a").label("app", "a").cpu("2").memory("1Gi").gate("g").toleration("t", "", "");
        let events = pod_events(&base().build(), &change(base()).build(), &FeatureGates::default());
        assert_eq!(labels(&events), expected);
    }

    #[test]
    fn pod_updates_map_to_events() {
        check_pod(|pod| pod, "UnschedulablePodUpdate");
        check_pod(|pod| pod.set("metadata.annotations", json!({"a": "b"})), "UnschedulablePodUpdate");
        check_pod(|pod| pod.on("n"), "AssignedPodUpdate");
        check_pod(|pod| pod.label("app", "b"), "UnschedulablePodUpdatePodLabel");
        check_pod(|pod| pod.set("metadata.labels", json!({})), "UnschedulablePodUpdatePodLabel");
        check_pod(|pod| pod.cpu("3"), "UnschedulablePodUpdate");
        check_pod(|pod| pod.cpu("2000m"), "UnschedulablePodUpdate");
        check_pod(|pod| pod.cpu("1999m"), "UnschedulablePodUpdatePodScaleDown");
        check_pod(|pod| pod.cpu("1").on("n"), "AssignedPodUpdatePodScaleDown");
        check_pod(
            |pod| pod.set("spec.containers", json!([{"name": "c", "resources": {"requests": {"cpu": "9"}}}])),
            "UnschedulablePodUpdatePodScaleDown",
        );
        check_pod(|pod| pod.gate("h"), "UnschedulablePodUpdate");
        check_pod(
            |pod| pod.set("spec.schedulingGates", json!([])),
            "UnschedulablePodUpdatePodSchedulingGatesEliminated",
        );
        check_pod(|pod| pod.toleration("u", "", ""), "UnschedulablePodUpdatePodToleration");
        let claims = json!([{"name": "c", "resourceClaimName": "made"}]);
        check_pod(
            |pod| pod.set("status.resourceClaimStatuses", claims),
            "UnschedulablePodUpdatePodGeneratedResourceClaim",
        );
        let extended = json!({"resourceClaimName": "made", "requestMappings": []});
        check_pod(
            |pod| pod.set("status.extendedResourceClaimStatus", extended),
            "UnschedulablePodUpdatePodGeneratedResourceClaim",
        );
        check_pod(
            |pod| pod.toleration("u", "", "").set("spec.schedulingGates", json!([])).cpu("1").label("x", "y"),
            "UnschedulablePodUpdatePodLabel UnschedulablePodUpdatePodScaleDown \
             UnschedulablePodUpdatePodSchedulingGatesEliminated UnschedulablePodUpdatePodToleration",
        );
    }

    #[test]
    fn claim_changes_are_ignored_without_dra() {
        let gates = FeatureGates::default().with(Gate::DynamicResourceAllocation, false);
        let new = pod("a").set("status.resourceClaimStatuses", json!([{"name": "c"}]));
        assert_eq!(labels(&pod_events(&pod("a").build(), &new.build(), &gates)), "UnschedulablePodUpdate");
    }

    /// While a pod is resized, the larger of its requested and its allocated resources counts.
    #[test]
    fn scale_down_counts_once_the_node_resized_the_pod() {
        let status = |cpu: &str| json!([{"name": "c", "allocatedResources": {"cpu": cpu}, "resources": {"requests": {"cpu": cpu}}}]);
        let at =
            |spec: &str, has: &str| pod("a").on("n").cpu(spec).set("status.containerStatuses", status(has)).build();
        let gates = FeatureGates::default();
        assert_eq!(labels(&pod_events(&at("2", "2"), &at("1", "2"), &gates)), "AssignedPodUpdate");
        assert_eq!(labels(&pod_events(&at("1", "2"), &at("1", "1"), &gates)), "AssignedPodUpdatePodScaleDown");
    }

    #[track_caller]
    fn check_node(change: impl FnOnce(NodeFixture) -> NodeFixture, expected: &str) {
        let condition = |status: &str, reason: &str| json!([{"type": "Ready", "status": status, "reason": reason}]);
        let base = || {
            node("n").taint("k", "v", "NoSchedule").unschedulable().set("status.conditions", condition("True", "up"))
        };
        let events = node_events(&base().build(), &change(base()).build(), &FeatureGates::default());
        assert_eq!(labels(&events), expected);
    }

    #[test]
    fn node_updates_map_to_events() {
        check_node(|node| node, "");
        check_node(|node| node.set("metadata.resourceVersion", json!("9")), "");
        check_node(|node| node.set("spec.unschedulable", json!(false)), "NodeUpdateNodeTaint");
        check_node(|node| node.allocatable("cpu", "4000m"), "");
        check_node(|node| node.allocatable("cpu", "3"), "NodeUpdateNodeAllocatable");
        check_node(|node| node.zone("z"), "NodeUpdateNodeLabel");
        check_node(|node| node.taint("l", "", "NoExecute"), "NodeUpdateNodeTaint");
        let condition = |status: &str, reason: &str| json!([{"type": "Ready", "status": status, "reason": reason}]);
        check_node(|node| node.set("status.conditions", condition("True", "still up")), "");
        check_node(|node| node.set("status.conditions", condition("False", "up")), "NodeUpdateNodeCondition");
        check_node(|node| node.set("status.conditions", json!([])), "NodeUpdateNodeCondition");
        check_node(|node| node.set("metadata.annotations", json!({"a": "b"})), "NodeUpdateNodeAnnotation");
        check_node(|node| node.set("status.declaredFeatures", json!(["F"])), "NodeUpdateNodeDeclaredFeature");
        check_node(
            |node| {
                node.set("spec.unschedulable", json!(false))
                    .set("spec.taints", json!([]))
                    .zone("z")
                    .allocatable("cpu", "1")
            },
            "NodeUpdateNodeTaint NodeUpdateNodeAllocatable NodeUpdateNodeLabel NodeUpdateNodeTaint",
        );
    }

    #[test]
    fn cordoning_a_node_is_no_event() {
        let events = node_events(&node("n").build(), &node("n").unschedulable().build(), &FeatureGates::default());
        assert_eq!(labels(&events), "");
    }

    #[test]
    fn declared_features_are_ignored_without_their_gate() {
        let gates = FeatureGates::default().with(Gate::NodeDeclaredFeatures, false);
        let new = node("n").set("status.declaredFeatures", json!(["F"]));
        assert_eq!(labels(&node_events(&node("n").build(), &new.build(), &gates)), "");
    }
}
