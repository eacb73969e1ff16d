//! Conditions of a pod.

use super::Pod;

/// Whether the pod's node refused to resize it for good.
/// Follows `component-helpers/resource/helpers.go#IsPodResizeInfeasible @v1.36.3`.
pub fn is_pod_resize_infeasible(pod: &Pod) -> bool {
    let pending = pod.status.conditions.iter().find(|condition| condition.type_ == "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"))
}
