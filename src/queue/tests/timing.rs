//! Tests of backoffs and timers.

use std::time::Duration;

use super::fixture::{Answer, Bench, NODE_ADD, NODE_LABEL, Setup, fake, ms, setup};
use crate::config::Gate;
use crate::testing::pod;

fn plugins() -> Setup {
    setup([fake("A").on(NODE_ADD, Answer::Queue), fake("G").gates().on(NODE_LABEL, Answer::Queue)])
}

fn deadline_ms(q: &Bench) -> Option<u64> {
    q.queue.next_deadline().map(|deadline| u64::try_from((deadline - ms(0)).as_millis()).expect("soon"))
}

#[test]
fn repeated_errors_back_off_longer() {
    let mut q = plugins().build();
    q.queue.run(q.now());
    q.advance_ms(300);
    q.add(pod("a"));
    let mut waits = Vec::new();
    for _ in 0..6 {
        assert_eq!(q.pop(), "a");
        q.fail("a", &[]);
        let failed = q.now().mono;
        assert_eq!(q.pop(), "");
        let deadline = q.queue.next_deadline().expect("it will be tried again");
        q.clock.advance_to(deadline - Duration::from_nanos(1));
        q.queue.flush(q.now());
        q.check("error: a");
        q.clock.advance_to(deadline);
        q.queue.flush(q.now());
        q.check("active: a");
        waits.push(u64::try_from((deadline - failed).as_millis()).expect("soon"));
    }
    // The first backoff expires at 1.3 s, in the window from 1 s to 2 s. After that, attempts begin at whole seconds.
    assert_eq!(waits, [1700, 3000, 5000, 9000, 11_000, 11_000]);
}

/// Checks when a pod is retried after an error that occurred `failed_ms` after the start.
#[track_caller]
fn check_retry(windows: bool, phase_ms: i64, started_ms: u64, failed_ms: u64, expected_ms: u64) {
    let mut q = plugins().gate(Gate::SchedulerPopFromBackoffQ, windows).phase_ms(phase_ms).build();
    q.advance_ms(started_ms);
    q.queue.run(q.now());
    q.advance_ms(failed_ms - started_ms);
    q.reject(pod("a"), &[]);
    assert_eq!(deadline_ms(&q), Some(expected_ms), "{phase_ms} {started_ms} {failed_ms}");
    for early_ms in [expected_ms - 1000, expected_ms - 1] {
        q.flush_at_ms(early_ms);
        q.check("error: a");
    }
    q.flush_at_ms(expected_ms);
    q.check("active: a");
}

#[test]
fn backoff_flush_is_window_aligned_or_periodic() {
    check_retry(true, 0, 0, 300, 2000);
    check_retry(true, 0, 400, 2999, 4000);
    check_retry(true, 0, 400, 3000, 5000);
    check_retry(true, 250, 0, 300, 1750);
    check_retry(true, 250, 100, 800, 2750);
    // Without windows the expiry is exact, and the pod still waits at that time.
    check_retry(false, 0, 0, 300, 2000);
    check_retry(false, 0, 400, 1400, 3400);
    check_retry(false, 250, 400, 1401, 3400);
    check_retry(false, 250, 400, 1399, 2400);
}

#[test]
fn zero_max_backoff_disables_backoff() {
    let mut q = plugins().options(|options| options.max_backoff = Duration::ZERO).build();
    q.queue.run(q.now());
    q.advance_ms(10);
    q.reject(pod("a"), &["A"]);
    q.event(&NODE_ADD);
    q.check("active: a");
    q.pop();
    q.fail("a", &[]);
    q.check("active: a");
    assert_eq!(deadline_ms(&q), None);
}

#[test]
fn unschedulable_pods_are_flushed_after_five_minutes() {
    let mut q = plugins().build();
    q.queue.run(q.now());
    q.advance_ms(10_000);
    q.reject(pod("a"), &["A"]);
    q.advance_ms(15_000);
    q.reject(pod("b"), &["A"]);
    // The timer runs every 30 s, and a pod has to wait for more than 5 min.
    assert_eq!(deadline_ms(&q), Some(330_000));
    for early in [300_000, 329_999] {
        q.flush_at_ms(early);
        q.check("unschedulable: a b");
    }
    q.flush_at_ms(330_000);
    q.check("active: a b");
    assert_eq!(deadline_ms(&q), None);
    assert!([q.pop(), q.pop()].iter().all(|name| q.popped(name).was_flushed_from_unschedulable));
    // The next attempt clears the flag.
    q.fail("a", &["A"]);
    q.activate(&["a"]);
    q.pop();
    assert!(!q.popped("a").was_flushed_from_unschedulable);
}

#[test]
fn pod_unschedulable_for_exactly_five_minutes_stays() {
    let mut q = plugins().build();
    q.queue.run(q.now());
    q.advance_ms(30_000);
    q.reject(pod("a"), &["A"]);
    assert_eq!(deadline_ms(&q), Some(360_000));
    q.flush_at_ms(330_000);
    q.check("unschedulable: a");
    q.flush_at_ms(360_000);
    q.check("active: a");
}

#[test]
fn gated_pods_are_not_flushed() {
    let q = plugins().build();
    q.queue.run(q.now());
    q.close("G", "a");
    q.add(pod("a"));
    assert_eq!(deadline_ms(&q), None);
    q.open("G", "a");
    q.flush_at_ms(3_600_000);
    q.check("unschedulable: a");
}

#[test]
fn flushed_pod_may_still_be_backing_off() {
    let mut q = plugins()
        .options(|options| {
            options.initial_backoff = Duration::from_secs(1000);
            options.max_backoff = Duration::from_secs(1000);
        })
        .build();
    q.queue.run(q.now());
    q.reject(pod("a"), &["A"]);
    q.flush_at_ms(330_000);
    q.check("backoff: a");
    assert_eq!(deadline_ms(&q), Some(1_001_000));
}

#[test]
fn timers_do_nothing_before_run() {
    let mut q = plugins().build();
    q.reject(pod("a"), &[]);
    assert_eq!(deadline_ms(&q), None);
    q.flush_at_ms(5000);
    q.check("error: a");
    q.advance_ms(500);
    q.queue.run(q.now());
    assert_eq!(deadline_ms(&q), Some(6000));
    // A second start has no effect.
    q.advance_ms(300);
    q.queue.run(q.now());
    q.flush_at_ms(6000);
    q.check("active: a");
}

#[test]
fn late_flush_runs_once_and_keeps_the_period() {
    let mut q = plugins().build();
    q.queue.run(q.now());
    q.reject(pod("a"), &[]);
    q.flush_at_ms(7300);
    q.check("active: a");
    assert_eq!(q.pop(), "a");
    q.fail("a", &[]);
    // The second failure at 7.3 s expires in the window from 9 s.
    assert_eq!(deadline_ms(&q), Some(10_000));
}

#[test]
fn pop_runs_due_timers() {
    let mut q = plugins().build();
    q.queue.run(q.now());
    q.reject(pod("a"), &[]);
    q.advance_ms(1999);
    assert_eq!(q.pop(), "");
    q.advance_ms(1);
    assert_eq!(q.pop(), "a");
}

#[test]
fn error_backoff_q_is_never_popped_early() {
    let mut q = plugins().build();
    q.reject(pod("a"), &[]);
    q.add(pod("b"));
    q.pop();
    q.event(&NODE_ADD);
    q.fail("b", &["A"]);
    q.check("backoff: b; error: a");
    assert_eq!([q.pop(), q.pop()], ["b", ""]);
    q.check("error: a; in flight: b");
}
