//! Lookup and update of pod conditions.

use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Pod;

/// Finds the condition of a type.
/// Follows `pkg/api/v1/pod/util.go#GetPodConditionFromList @v1.36.3`.
pub fn find_pod_condition<'a>(conditions: &'a [PodCondition], type_: &str) -> Option<&'a PodCondition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Replaces the condition of the same type, or adds the condition. The transition time of the condition becomes `now`, or stays
/// the same if the status stays the same. Returns whether anything except the observed generation changed.
/// Follows `pkg/api/v1/pod/util.go#UpdatePodCondition @v1.36.3`.
pub fn update_pod_condition(conditions: &mut Vec<PodCondition>, mut condition: PodCondition, now: Time) -> bool {
    condition.last_transition_time = Some(now);
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if condition.status == old.status {
        condition.last_transition_time.clone_from(&old.last_transition_time);
    }
    let is_same = condition.status == old.status
        && text(condition.reason.as_ref()) == text(old.reason.as_ref())
        && text(condition.message.as_ref()) == text(old.message.as_ref())
        && condition.last_probe_time == old.last_probe_time
        && condition.last_transition_time == old.last_transition_time;
    *old = condition;
    !is_same
}

fn text(field: Option<&String>) -> &str {
    field.map_or("", String::as_str)
}

/// Returns whether the kubelet reported the pod's resize as infeasible.
/// Follows `component-helpers/resource/helpers.go#IsPodResizeInfeasible @v1.36.3`.
pub fn is_pod_resize_infeasible(pod: &Pod) -> bool {
    is_resize_pending_for(pod, "Infeasible")
}

/// Returns whether the kubelet deferred the pod's resize.
/// Follows `component-helpers/resource/helpers.go#IsPodResizeDeferred @v1.36.3`.
pub fn is_pod_resize_deferred(pod: &Pod) -> bool {
    is_resize_pending_for(pod, "Deferred")
}

fn is_resize_pending_for(pod: &Pod, reason: &str) -> bool {
    let pending = find_pod_condition(&pod.status.conditions, "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodCondition;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::{find_pod_condition, is_pod_resize_deferred, is_pod_resize_infeasible, update_pod_condition};
    use crate::k8s::Pod;

    fn condition(type_: &str, status: &str, reason: &str) -> PodCondition {
        PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            ..PodCondition::default()
        }
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).expect("a time"))
    }

    #[test]
    fn transition_time_changes_only_with_the_status() {
        let mut conditions = vec![condition("Other", "True", "")];
        let mut check = |new: PodCondition, now: i64, changed: bool, transition: i64| {
            let type_ = new.type_.clone();
            assert_eq!(update_pod_condition(&mut conditions, new, at(now)), changed);
            let found = find_pod_condition(&conditions, &type_).and_then(|found| found.last_transition_time.clone());
            assert_eq!(found, Some(at(transition)));
            assert_eq!(conditions.len(), 2);
        };
        check(condition("PodScheduled", "False", "A"), 1, true, 1);
        check(condition("PodScheduled", "False", "A"), 2, false, 1);
        check(condition("PodScheduled", "False", "B"), 3, true, 1);
        check(condition("PodScheduled", "True", "B"), 4, true, 4);
        check(PodCondition { observed_generation: Some(7), ..condition("PodScheduled", "True", "B") }, 5, false, 4);
        check(PodCondition { message: Some("m".to_owned()), ..condition("PodScheduled", "True", "B") }, 6, true, 4);
        check(PodCondition { last_probe_time: Some(at(1)), ..condition("PodScheduled", "True", "") }, 7, true, 4);
    }

    #[test]
    fn absent_and_empty_reasons_are_equal() {
        let mut conditions = vec![condition("A", "True", "")];
        let empty = PodCondition { reason: Some(String::new()), ..condition("A", "True", "") };
        assert!(!update_pod_condition(&mut conditions, empty, at(1)));
    }

    #[test]
    fn only_the_first_pending_resize_condition_is_used() {
        let mut pod = Pod::default();
        assert!(!is_pod_resize_infeasible(&pod));
        pod.status.conditions = vec![condition("PodResizePending", "True", "Deferred")];
        assert!(is_pod_resize_deferred(&pod) && !is_pod_resize_infeasible(&pod));
        pod.status.conditions.push(condition("PodResizePending", "True", "Infeasible"));
        assert!(!is_pod_resize_infeasible(&pod));
        pod.status.conditions.remove(0);
        assert!(is_pod_resize_infeasible(&pod));
    }
}
