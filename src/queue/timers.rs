//! The two timers, which move pods after their backoff and pods that were in unschedulablePods for too long.

use std::time::Duration;

use super::Place;
use super::backoff::{Backoff, WINDOW};
use super::state::{Origin, State};
use crate::clock::Mono;
use crate::model::EventObjects;

/// Period of the checks for pods that were in unschedulablePods for too long.
/// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.Run @v1.36.3`.
pub(super) const UNSCHEDULABLE_PERIOD: Duration = Duration::from_secs(30);

/// Next due time of each timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    backoff: Mono,
    unschedulable: Mono,
}

impl Timers {
    /// Creates timers that start at `now`.
    pub(super) fn new(backoff: &Backoff, now: Mono) -> Self {
        Self { backoff: backoff.first_flush(now), unschedulable: now }
    }
}

/// Returns the first tick at or after `earliest`. Ticks are at `due` and every `period` after it.
fn tick_from(due: Mono, period: Duration, earliest: Mono) -> Mono {
    let late = u64::try_from((earliest - due).as_nanos()).unwrap_or(u64::MAX);
    let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    due + Duration::from_nanos(late.div_ceil(period).saturating_mul(period))
}

/// Returns the next moment after `at`.
fn just_after(at: Mono) -> Mono {
    at + Duration::from_nanos(1)
}

impl State {
    /// Runs the timers that are due. A timer that missed several ticks runs once.
    pub(super) fn flush(&mut self, now: Mono) {
        let Some(mut timers) = self.timers else { return };
        if timers.backoff <= now {
            timers.backoff = tick_from(timers.backoff, WINDOW, just_after(now));
            self.flush_backoff(now);
        }
        if timers.unschedulable <= now {
            timers.unschedulable = tick_from(timers.unschedulable, UNSCHEDULABLE_PERIOD, just_after(now));
            self.flush_unschedulable(now);
        }
        self.timers = Some(timers);
    }

    /// Moves the pods whose backoff has ended to activeQ.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.flushBackoffQCompleted @v1.36.3`.
    fn flush_backoff(&mut self, now: Mono) {
        let event = self.own.backoff_complete.clone();
        let mut over = Vec::new();
        for place in [Place::Backoff, Place::ErrorBackoff] {
            while let Some(slot) = self.pods.first(place) {
                if self.backoff.is_backing_off(self.pods.get(slot).expiration(), now) {
                    break;
                }
                over.push(self.take(slot));
            }
        }
        for info in over {
            self.move_to_active(info, &event, Origin::Backoff, now);
        }
        debug_assert!(self.every_backoff_lasts(now), "a flush leaves no pod whose backoff is over");
    }

    /// Whether no pod in a backoff queue has completed its backoff.
    fn every_backoff_lasts(&self, now: Mono) -> bool {
        let firsts = [Place::Backoff, Place::ErrorBackoff].into_iter().filter_map(|place| self.pods.first(place));
        firsts.map(|slot| self.pods.get(slot)).all(|record| self.backoff.is_backing_off(record.expiration(), now))
    }

    /// Moves the pods that have been in unschedulablePods for too long.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.flushUnschedulablePodsLeftover @v1.36.3`.
    fn flush_unschedulable(&mut self, now: Mono) {
        // The subtraction saturates at the clock's origin. No pod arrived before it.
        let overdue = self.pods.unschedulable_since(now - self.max_in_unschedulable);
        if overdue.is_empty() {
            return;
        }
        for slot in &overdue {
            self.pods.change(*slot, |info| info.was_flushed_from_unschedulable = true);
        }
        let event = self.own.timeout.clone();
        self.move_pods(overdue, &event, &EventObjects::default(), None, now);
    }

    /// Returns the next time at which [`State::flush`] has pods to move.
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        let timers = self.timers?;
        let expirations = [Place::Backoff, Place::ErrorBackoff].into_iter().filter_map(|place| self.pods.first(place));
        let backoff = expirations.map(|slot| self.pods.get(slot).expiration()).min().map(|expiration| {
            let over = expiration.map_or(Mono::ZERO, |expiration| self.backoff.over(expiration));
            tick_from(timers.backoff, WINDOW, over)
        });
        let timeout = &self.own.timeout;
        let oldest =
            self.pods.oldest_unschedulable(|class| class.gating.is_none_or(|gating| timeout.opens.contains(gating)));
        let unschedulable = oldest.map(|arrived| {
            tick_from(timers.unschedulable, UNSCHEDULABLE_PERIOD, just_after(arrived + self.max_in_unschedulable))
        });
        backoff.into_iter().chain(unschedulable).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ticks_skip_to_the_next_period() {
        let check = |due: u64, period: u64, earliest: u64, expected: u64| {
            let tick = tick_from(Mono::from_nanos(due), Duration::from_nanos(period), Mono::from_nanos(earliest));
            assert_eq!(tick, Mono::from_nanos(expected), "{due} {period} {earliest}");
        };
        check(5, 10, 0, 5);
        check(5, 10, 5, 5);
        check(5, 10, 6, 15);
        check(5, 10, 15, 15);
        check(5, 10, 16, 25);
        check(5, 10, 100, 105);
    }
}
