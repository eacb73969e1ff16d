//! A simulated clock, which moves only when its owner advances it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;

use super::{Clock, Mono, Now};

/// The owner's handle of a simulated clock: only this handle can advance it.
///
/// The clock is deterministic and independent of threads: sleepers are woken in order of deadline, and in order of
/// registration for equal deadlines.
#[derive(Clone)]
pub struct SimClock(Arc<SimState>);

/// State that all handles of one simulated clock share. The lock guards the reading and the registered sleepers. It is never
/// held while a waker runs.
pub(super) struct SimState {
    inner: Mutex<Inner>,
}

struct Inner {
    /// Wall-clock reading at [`Mono::ZERO`].
    origin: Timestamp,
    mono: Mono,
    /// Registration number of the next sleeper.
    registered: u64,
    /// Wakers by deadline and registration number; `None` until the first poll.
    sleepers: BTreeMap<(Mono, u64), Option<Waker>>,
}

/// A sleeper of the simulated clock. It stays registered until it is dropped or its deadline has passed.
pub(super) struct SimSleep {
    state: Arc<SimState>,
    key: (Mono, u64),
}

impl SimClock {
    /// Creates a clock that reads `wall` and monotonic zero.
    pub fn new(wall: Timestamp) -> Self {
        let inner = Inner { origin: wall, mono: Mono::ZERO, registered: 0, sleepers: BTreeMap::new() };
        Self(Arc::new(SimState { inner: Mutex::new(inner) }))
    }

    /// Returns a [`Clock`] that reads this clock and waits for its deadlines.
    pub fn clock(&self) -> Clock {
        Clock::simulated(Arc::clone(&self.0))
    }

    /// Reads both clocks at this moment.
    pub fn now(&self) -> Now {
        self.0.now()
    }

    /// Advances the clock to `mono` and wakes every sleeper whose deadline is reached. The clock never goes back: an earlier
    /// `mono` changes nothing. Returns the number of sleepers that were woken.
    pub fn advance_to(&self, mono: Mono) -> usize {
        let due = {
            let mut inner = self.0.lock();
            let reached = inner.mono.max(mono);
            inner.mono = reached;
            let later = inner.sleepers.split_off(&(reached, u64::MAX));
            std::mem::replace(&mut inner.sleepers, later)
        };
        let woken = due.len();
        due.into_values().flatten().for_each(Waker::wake);
        woken
    }

    /// Advances the clock by `duration`; see [`SimClock::advance_to`].
    pub fn advance(&self, duration: Duration) -> usize {
        self.advance_to(self.now().mono + duration)
    }

    /// Steps the wall clock by `seconds`, as when a machine's time is set. The monotonic reading stays the same.
    pub fn step_wall(&self, seconds: i64) {
        let mut inner = self.0.lock();
        inner.origin = inner.origin.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(inner.origin);
    }

    /// Returns the earliest deadline of all sleepers.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.0.lock().sleepers.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Counts the registered sleepers.
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }
}

impl SimState {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No code under the lock panics in the middle of a change, so the state is consistent even if the lock is poisoned.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Now {
        let Inner { origin, mono, .. } = *self.lock();
        let wall = origin.checked_add(mono.since(Mono::ZERO)).unwrap_or(Timestamp::MAX);
        Now { mono, wall }
    }

    pub(super) fn sleep_until(state: &Arc<Self>, deadline: Mono) -> SimSleep {
        let mut inner = state.lock();
        let key = (deadline, inner.registered);
        inner.registered += 1;
        if deadline > inner.mono {
            inner.sleepers.insert(key, None);
        }
        drop(inner);
        SimSleep { state: Arc::clone(state), key }
    }
}

impl Future for SimSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.state.lock();
        if inner.mono >= self.key.0 {
            return Poll::Ready(());
        }
        let waker = inner.sleepers.entry(self.key).or_default();
        match waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        let waker = self.state.lock().sleepers.remove(&self.key);
        // Dropping the waker may run other code, so the lock has to be released first.
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::executor::LocalPool;
    use futures::task::LocalSpawnExt;

    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_secs(seconds)
    }

    #[test]
    fn sleepers_wake_in_order_of_their_deadlines() {
        let sim = SimClock::new(Timestamp::UNIX_EPOCH);
        let mut pool = LocalPool::new();
        let (sender, woken) = mpsc::channel();
        for (name, seconds) in [("late", 9), ("early", 3), ("twin", 3), ("past", 0)] {
            let (sender, sleep) = (sender.clone(), sim.clock().sleep_until(at(seconds)));
            let task = async move {
                sleep.await;
                sender.send(name).unwrap();
            };
            pool.spawner().spawn_local(task).unwrap();
        }
        let mut step = |advance: u64| {
            let count = sim.advance_to(at(advance));
            pool.run_until_stalled();
            (count, woken.try_iter().collect::<Vec<_>>(), sim.next_deadline())
        };
        assert_eq!(step(0), (0, vec!["past"], Some(at(3))));
        assert_eq!(step(2), (0, vec![], Some(at(3))));
        assert_eq!(step(3), (2, vec!["early", "twin"], Some(at(9))));
        assert_eq!(step(1), (0, vec![], Some(at(9))), "the clock does not go back");
        assert_eq!(step(20), (1, vec!["late"], None));
    }

    #[test]
    fn deadline_is_registered_by_the_call_and_removed_by_the_drop() {
        let sim = SimClock::new(Timestamp::UNIX_EPOCH);
        let sleep = sim.clock().sleep(Duration::from_secs(5));
        assert_eq!((sim.next_deadline(), sim.sleepers()), (Some(at(5)), 1));
        drop(sleep);
        assert_eq!((sim.next_deadline(), sim.sleepers()), (None, 0));
    }

    #[test]
    fn advancing_moves_both_readings() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let sim = SimClock::new(start);
        sim.advance(Duration::from_millis(2500));
        let now = sim.clock().now();
        assert_eq!(now.mono, Mono::from_nanos(2_500_000_000));
        assert_eq!(now.wall.to_string(), "2026-01-01T00:00:02.5Z");
    }

    #[test]
    fn a_timeout_fires_in_virtual_time() {
        let sim = SimClock::new(Timestamp::UNIX_EPOCH);
        let mut pool = LocalPool::new();
        let (sender, results) = mpsc::channel();
        let clock = sim.clock();
        let task = async move {
            sender.send(clock.timeout_at(at(4), std::future::pending::<()>()).await).unwrap();
        };
        pool.spawner().spawn_local(task).unwrap();
        pool.run_until_stalled();
        sim.advance_to(at(3));
        pool.run_until_stalled();
        assert_eq!(results.try_iter().count(), 0);
        sim.advance_to(at(4));
        pool.run_until_stalled();
        assert_eq!(results.try_iter().collect::<Vec<_>>(), [Err(super::super::Elapsed)]);
    }
}
