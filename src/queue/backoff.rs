//! Backoff of pods whose scheduling attempts failed.

use std::time::Duration;

use super::QueuedPodInfo;
use crate::clock::{Mono, Now};

/// Width of an ordering window in podBackoffQ, and period of its flushes.
/// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQOrderingWindowDuration @v1.36.3`.
pub(super) const WINDOW: Duration = Duration::from_secs(1);

const WINDOW_NANOS: u64 = 1_000_000_000;

/// Computes the backoffs of pods. They have no jitter.
///
/// With `SchedulerPopFromBackoffQ`, expiries are truncated to whole seconds of the wall clock, so that pods that expire in
/// the same second are ordered as in activeQ. Upstream truncates each reading of the wall clock. Here the offset between whole
/// wall seconds and the monotonic clock is taken once, when the queue is created, and all arithmetic uses the monotonic clock.
/// The two agree until the wall clock is set. After that only the phase of the flushes differs, and setting the clock does not
/// change any backoff.
/// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue @v1.36.3`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    initial: Duration,
    max: Duration,
    /// Nanoseconds from the monotonic clock's origin to the first whole wall second. `None` without windows.
    phase: Option<u64>,
}

impl Backoff {
    /// Creates the backoff arithmetic. With `windows`, expiries are truncated to whole seconds.
    pub(super) fn new(initial: Duration, max: Duration, windows: bool, now: Now) -> Self {
        let phase = || {
            let into_second = now.wall.as_nanosecond().rem_euclid(i128::from(WINDOW_NANOS));
            let into_second = u64::try_from(into_second).expect("a remainder is not negative");
            // now.mono - into_second is a whole wall second, and so is every time a multiple of a second away from it.
            (now.mono.as_nanos() % WINDOW_NANOS + WINDOW_NANOS - into_second) % WINDOW_NANOS
        };
        Self { initial, max, phase: windows.then(phase) }
    }

    /// Truncates a time to the start of its window, or returns it unchanged without windows. Times before the first whole
    /// second become the clock's origin.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.alignToWindow @v1.36.3`.
    pub(super) fn align(&self, at: Mono) -> Mono {
        let Some(phase) = self.phase else { return at };
        match at.as_nanos().checked_sub(phase) {
            Some(after) => Mono::from_nanos(at.as_nanos() - after % WINDOW_NANOS),
            None => Mono::ZERO,
        }
    }

    /// Returns the time of the first flush if the queue starts at `now`.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.waitUntilAlignedWithOrderingWindow @v1.36.3`.
    pub(super) fn first_flush(&self, now: Mono) -> Mono {
        self.align(now + WINDOW)
    }

    /// Returns the backoff of a pod that failed `count` times.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.calculateBackoffDuration @v1.36.3`.
    pub(super) fn duration(&self, count: u32) -> Duration {
        let Some(shift) = count.checked_sub(1) else { return Duration::ZERO };
        let initial = self.initial.as_nanos();
        if initial > self.max.as_nanos().checked_shr(shift).unwrap_or(0) {
            return self.max;
        }
        // `initial << shift` is at most the maximum, except if `initial` is zero. Then any shift yields zero.
        let nanos = initial.checked_shl(shift).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the time at which the pod's backoff ends, if it has one. The pod keeps the time until its next attempt ends.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.getBackoffTime @v1.36.3`.
    pub(super) fn expiration(&self, pod: &mut QueuedPodInfo) -> Option<Mono> {
        let count = match pod.consecutive_errors_count {
            0 => pod.unschedulable_count,
            errors => errors,
        };
        if self.max.is_zero() || count == 0 {
            return None;
        }
        let expiration = pod.backoff_expiration.unwrap_or_else(|| self.align(pod.timestamp + self.duration(count)));
        pod.backoff_expiration = Some(expiration);
        Some(expiration)
    }

    /// Whether a pod with this expiry is backing off at `now`. Its backoff lasts until the end of the window of the expiry.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.isPodBackingoff @v1.36.3`.
    pub(super) fn is_backing_off(&self, expiration: Option<Mono>, now: Mono) -> bool {
        expiration.is_some_and(|expiration| expiration >= self.align(now))
    }

    /// Returns the first time at which a pod with this expiry is no longer backing off.
    pub(super) fn over(&self, expiration: Mono) -> Mono {
        // `align` returns the clock's origin for every expiry before the first whole second.
        let windows = |phase: u64| {
            if expiration == Mono::ZERO && phase > 0 { Mono::from_nanos(phase) } else { expiration + WINDOW }
        };
        self.phase.map_or(expiration + Duration::from_nanos(1), windows)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::testing::pod;

    fn backoff(initial: u64, max: u64, windows: bool, mono_ms: u64, wall_ms: i64) -> Backoff {
        let now = Now {
            mono: Mono::from_nanos(mono_ms * 1_000_000),
            wall: Timestamp::from_millisecond(wall_ms).expect("a time"),
        };
        Backoff::new(Duration::from_secs(initial), Duration::from_secs(max), windows, now)
    }

    #[test]
    fn durations_double_up_to_the_maximum() {
        let check = |initial: u64, max: u64, expected: [u64; 6]| {
            let backoff = backoff(initial, max, true, 0, 0);
            let seconds: Vec<u64> = (0..6).map(|count| backoff.duration(count).as_secs()).collect();
            assert_eq!(seconds, expected, "{initial} {max}");
        };
        check(1, 10, [0, 1, 2, 4, 8, 10]);
        check(1, 8, [0, 1, 2, 4, 8, 8]);
        check(3, 100, [0, 3, 6, 12, 24, 48]);
        check(20, 10, [0, 10, 10, 10, 10, 10]);
        check(0, 10, [0, 0, 0, 0, 0, 0]);
        check(0, 0, [0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn many_attempts_do_not_overflow_the_duration() {
        let check = |initial: u64, count: u32, expected: u64| {
            assert_eq!(backoff(initial, 10, true, 0, 0).duration(count).as_secs(), expected, "{initial} {count}");
        };
        for count in [64, 65, 128, 129, 1000, u32::MAX] {
            check(1, count, 10);
            check(0, count, 0);
        }
    }

    #[test]
    fn windows_align_to_whole_wall_clock_seconds() {
        let check = |mono_ms: u64, wall_ms: i64, at_ms: u64, expected_ms: u64| {
            let aligned = backoff(1, 10, true, mono_ms, wall_ms).align(Mono::from_nanos(at_ms * 1_000_000));
            assert_eq!(aligned.as_nanos(), expected_ms * 1_000_000, "mono {mono_ms} wall {wall_ms} at {at_ms}");
        };
        check(0, 0, 2300, 2000);
        check(0, 0, 3000, 3000);
        check(0, 250, 2300, 1750);
        check(0, 250, 2750, 2750);
        check(5100, 250, 2300, 1850);
        check(0, -250, 2300, 2250);
        check(0, 250, 700, 0);
    }

    #[test]
    fn first_flush_is_window_aligned_or_one_second_later() {
        let at = Mono::from_nanos(1_300_000_000);
        assert_eq!(backoff(1, 10, true, 0, 0).first_flush(at), Mono::from_secs(2));
        assert_eq!(backoff(1, 10, false, 0, 0).first_flush(at), Mono::from_nanos(2_300_000_000));
    }

    fn check_expiry(rejections: u32, errors: u32, max: u64, windows: bool, expected_ms: Option<u64>) {
        let backoff = backoff(1, max, windows, 0, 0);
        let mut info = QueuedPodInfo::new(pod("a").info(), Mono::from_nanos(500_000_000));
        info.unschedulable_count = rejections;
        info.consecutive_errors_count = errors;
        let expected = expected_ms.map(|ms| Mono::from_nanos(ms * 1_000_000));
        assert_eq!(backoff.expiration(&mut info), expected);
        // The expiry stays until it is cleared, even if the timestamp that it was computed from changes.
        info.timestamp = Mono::from_secs(100);
        assert_eq!(backoff.expiration(&mut info), expected);
    }

    #[test]
    fn expiry_follows_attempts_errors_and_windows() {
        check_expiry(0, 0, 10, true, None);
        check_expiry(3, 0, 0, true, None);
        check_expiry(1, 0, 10, true, Some(1000));
        check_expiry(1, 0, 10, false, Some(1500));
        check_expiry(2, 0, 10, true, Some(2000));
        check_expiry(4, 1, 10, true, Some(1000));
        check_expiry(1, 4, 10, false, Some(8500));
        check_expiry(9, 0, 10, false, Some(10_500));
    }

    #[test]
    fn pod_backs_off_until_the_end_of_its_window() {
        let check = |windows: bool, expiration_ms: Option<u64>, now_ms: u64, expected: bool| {
            let backoff = backoff(1, 10, windows, 0, 0);
            let at = |ms: u64| Mono::from_nanos(ms * 1_000_000);
            assert_eq!(
                backoff.is_backing_off(expiration_ms.map(at), at(now_ms)),
                expected,
                "{expiration_ms:?} {now_ms}"
            );
        };
        check(true, None, 0, false);
        check(true, Some(1000), 999, true);
        check(true, Some(1000), 1000, true);
        check(true, Some(1000), 1999, true);
        check(true, Some(1000), 2000, false);
        check(false, Some(1000), 1000, true);
        check(false, Some(1000), 1001, false);
    }
}
