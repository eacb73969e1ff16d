//! Choice of the best candidate.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::Candidate;
use super::importance::start;

/// Added to each priority before the priorities are summed, so that a few pods with negative priorities have a lower sum than
/// many.
const ABOVE_ALL: i64 = i32::MAX as i64 + 1;

/// Returns the candidate with the fewest budget violations. Ties are broken by the lowest priority of the first victim, then the
/// smallest sum of priorities, then the fewest victims, then the latest start time. The start time of a candidate is the
/// earliest start among its victims with the highest priority. If candidates are still equal, the first one is returned. Follows
/// `pkg/scheduler/framework/preemption/preemption.go#pickOneNodeForPreemption @v1.36.3`.
pub(super) fn best(candidates: &[Candidate], now: Timestamp) -> Option<&Candidate> {
    candidates.iter().min_by_key(|candidate| {
        let victims = &candidate.victims;
        let sum: i64 = victims.iter().map(|pod| i64::from(pod.priority()) + ABOVE_ALL).sum();
        (
            candidate.pdb_violations,
            victims.first().map(|pod| pod.priority()),
            sum,
            victims.len(),
            Reverse(earliest_start(candidate, now)),
        )
    })
}

/// Returns the earliest start time among the victims with the highest priority.
/// Follows `pkg/scheduler/util/utils.go#GetEarliestPodStartTime @v1.36.3`.
fn earliest_start(candidate: &Candidate, now: Timestamp) -> Option<Timestamp> {
    let highest = candidate.victims.iter().map(|pod| pod.priority()).max()?;
    candidate.victims.iter().filter(|pod| pod.priority() == highest).map(|pod| start(pod, now)).min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodFixture, pod};

    fn victim(priority: i32, minute: u32) -> PodFixture {
        pod("v").priority(priority).set("status.startTime", json!(format!("2026-01-01T00:{minute:02}:00Z")))
    }

    /// Checks which candidate is chosen, by its position. Candidates are given by their violations and victims.
    #[track_caller]
    fn check(candidates: &[(i64, &[PodFixture])], expected: &str) {
        let candidates: Vec<Candidate> = candidates
            .iter()
            .enumerate()
            .map(|(at, (violations, victims))| Candidate {
                node: at.to_string().into(),
                victims: victims.iter().map(|pod| pod.clone().info()).collect(),
                pdb_violations: *violations,
            })
            .collect();
        let now = "2026-01-01T12:00:00Z".parse().expect("a time");
        assert_eq!(best(&candidates, now).map(|candidate| &*candidate.node), Some(expected));
    }

    #[test]
    fn each_rule_breaks_ties_of_the_previous_ones() {
        check(&[(1, &[victim(-9, 1)]), (0, &[victim(5, 1)])], "1");
        check(&[(0, &[victim(5, 1)]), (0, &[victim(4, 1), victim(4, 1)])], "1");
        check(&[(0, &[victim(5, 1), victim(3, 1)]), (0, &[victim(5, 1), victim(2, 1)])], "1");
        check(&[(0, &[victim(-5, 1), victim(-5, 1)]), (0, &[victim(-5, 1)])], "1");
        check(&[(0, &[victim(5, 1)]), (0, &[victim(5, 2)])], "1");
        check(&[(0, &[victim(5, 2)]), (0, &[victim(5, 2)])], "0");
    }

    #[test]
    fn start_time_of_the_most_important_victim_counts() {
        let (early, late) = ([victim(5, 9), victim(3, 1)], [victim(5, 8), victim(3, 9)]);
        check(&[(0, &late), (0, &early)], "1");
        check(&[(0, &[victim(5, 9)]), (0, &[pod("v").priority(5)])], "1");
    }

    #[test]
    fn without_candidates_no_node_is_selected() {
        assert!(best(&[], Timestamp::UNIX_EPOCH).is_none());
    }
}
