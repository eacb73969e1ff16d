//! Order of pods by importance.

use std::cmp::Reverse;
use std::sync::Arc;

use jiff::Timestamp;

use crate::go::sort::sort_slice;
use crate::model::PodInfo;

/// Returns the pod's start time. A pod that has not started counts as starting now.
/// Follows `pkg/scheduler/util/utils.go#GetPodStartTime @v1.36.3`.
pub(super) fn start(pod: &PodInfo, now: Timestamp) -> Timestamp {
    pod.pod().status.start_time.as_ref().map_or(now, |time| time.0)
}

/// Sorts pods by importance: by priority, highest first, and then by start time, earliest first.
///
/// Pods of equal importance have the same order as in upstream, whose sort is stable for up to twelve pods only. If neither of
/// two pods has started, the first argument of the comparison counts as more important, whichever pod that is. The reason is
/// that upstream reads the clock once for each of the two pods, and the earlier reading counts as the earlier start.
/// Follows `pkg/scheduler/util/utils.go#MoreImportantPod @v1.36.3`.
pub(super) fn sort_by_importance(pods: &mut Vec<Arc<PodInfo>>, now: Timestamp) {
    let mut keyed: Vec<_> = std::mem::take(pods)
        .into_iter()
        .map(|pod| {
            let waits = pod.pod().status.start_time.is_none();
            ((Reverse(pod.priority()), start(&pod, now)), waits, pod)
        })
        .collect();
    sort_slice(&mut keyed, |(a, a_waits, _), (b, b_waits, _)| a < b || (*a_waits && *b_waits && a == b));
    pods.extend(keyed.into_iter().map(|(_, _, pod)| pod));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodFixture, pod};

    fn check(pods: &[PodFixture], expected: &[&str]) {
        let now = "2026-01-01T12:00:00Z".parse().expect("a time");
        let mut pods: Vec<Arc<PodInfo>> = pods.iter().map(|pod| pod.clone().info()).collect();
        sort_by_importance(&mut pods, now);
        assert_eq!(pods.iter().map(|pod| pod.name()).collect::<Vec<_>>(), expected);
    }

    fn started(name: &str, hour: u32) -> PodFixture {
        pod(name).set("status.startTime", json!(format!("2026-01-01T{hour:02}:00:00Z")))
    }

    #[test]
    fn higher_priority_is_more_important() {
        check(&[started("old", 1), started("high", 9).priority(5), pod("low").priority(-1)], &["high", "old", "low"]);
    }

    #[test]
    fn earlier_start_is_more_important_and_ties_keep_order() {
        check(&[started("c", 3), started("a", 2), started("b", 2)], &["a", "b", "c"]);
    }

    #[test]
    fn ties_of_many_pods_follow_gos_unstable_sort() {
        let names: Vec<String> = (0..14).map(|at| at.to_string()).collect();
        let pods: Vec<PodFixture> =
            names.iter().enumerate().map(|(at, name)| started(name, 1).priority([0, 0, 5][at % 3])).collect();
        check(&pods, &["5", "11", "2", "8", "6", "4", "0", "7", "3", "9", "10", "1", "12", "13"]);
    }

    #[test]
    fn pod_started_now_precedes_one_not_started() {
        check(&[started("now", 12), pod("waits")], &["now", "waits"]);
    }

    #[test]
    fn pods_without_start_time_count_as_just_started() {
        check(&[pod("a"), started("b", 3), pod("c"), started("late", 13)], &["b", "c", "a", "late"]);
    }
}
