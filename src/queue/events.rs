//! What changed in a pod or node, as the events that plugins register.

use crate::config::{FeatureGates, Gate};
use crate::k8s::{Node, Pod, RequestOptions, pod_requests};
use crate::model::{ActionType, ClusterEvent, EventResource};

/// What changed in a pod: one event a kind of change, in upstream's order; a general update if nothing that has an event of
/// its own changed.
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
        // Tolerations can be added only, so comparing the number is enough.
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

/// What changed in a node: one event a kind of change, in upstream's order; none if only its heartbeat or the like changed.
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

/// Whether the pod asks for less of something, or not at all any more.
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

/// Follows `pkg/scheduler/framework/events.go#extractPodGeneratedResourceClaimChange @v1.36.3`.
fn has_new_claims(old: &Pod, new: &Pod) -> bool {
    old.status.resource_claim_statuses != new.status.resource_claim_statuses
        || old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
}

/// Whether a condition has another status, came or went; reasons and times do not count.
/// Follows `pkg/scheduler/framework/events.go#extractNodeConditionsChange @v1.36.3`.
fn have_conditions_changed(old: &Node, new: &Node) -> bool {
    let statuses = |node: &Node| -> std::collections::BTreeMap<String, String> {
        node.status.conditions.iter().map(|condition| (condition.type_.clone(), condition.status.clone())).collect()
    };
    statuses(old) != statuses(new)
}
