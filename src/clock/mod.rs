//! Time as an argument: a monotonic and a wall-clock reading of the same moment, and the clock that waits for a deadline.
//!
//! ```text
//!  Clock::real() ──▶ Instant, Timestamp, tokio timers
//!  SimClock ───────▶ a number that only its owner moves; sleepers wake in order of their deadlines
//! ```
//!
//! Code that makes decisions takes a [`Now`] and never reads a clock. Only the outermost code holds a [`Clock`]: it reads the
//! `Now`, and waits with [`Clock::sleep_until`], which behaves the same for both sources. tokio's paused time is not used
//! anywhere. This module imports no other module of the crate.

mod rng;
mod sim;

use std::fmt;
use std::future::Future;
use std::ops::{Add, AddAssign, Sub};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use jiff::Timestamp;

pub use rng::Rng;
pub use sim::SimClock;
use sim::{SimSleep, SimState};

/// Number of nanoseconds per second.
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A monotonic reading: nanoseconds since the clock's own origin. Readings of different clocks cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

/// A monotonic and a wall reading of the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic reading, for durations and deadlines.
    pub mono: Mono,
    /// Wall-clock reading, for timestamps in API objects.
    pub wall: Timestamp,
}

/// A source of time. It is cheap to clone, and all clones read the same source.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    Real { origin: Instant },
    Simulated(Arc<SimState>),
}

/// Error of [`Clock::timeout_at`]: the deadline passed before the future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline has elapsed")]
pub struct Elapsed;

/// A future that waits for a deadline; see [`Clock::sleep_until`]. Dropping it removes its deadline from the clock.
#[must_use = "a sleep does nothing until it is awaited"]
pub struct Sleep(SleepKind);

enum SleepKind {
    Real(Pin<Box<tokio::time::Sleep>>),
    Simulated(SimSleep),
}

impl Mono {
    /// Reading at the clock's origin.
    pub const ZERO: Self = Self(0);
    /// The largest reading, which no clock reaches. Means "never" as a deadline.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a reading from nanoseconds since the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a reading from whole seconds since the origin, for tests and fixtures. Saturates.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(NANOS_PER_SECOND))
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`, or zero if `earlier` is the later reading.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds since `earlier`, the unit of duration metrics.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        self.since(earlier).as_secs_f64()
    }
}

/// Addition that saturates at [`Mono::MAX`].
impl Add<Duration> for Mono {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Mono {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// Subtraction that saturates at the origin.
impl Sub<Duration> for Mono {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The time between two readings, or zero if the right one is later.
impl Sub for Mono {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Advances both readings by the duration.
impl Add<Duration> for Now {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let wall = self.wall.checked_add(duration).unwrap_or(Timestamp::MAX);
        Self { mono: self.mono + duration, wall }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the operating system's clocks")]
impl Clock {
    /// Creates a clock that uses the operating system's clocks and tokio's timers. Its monotonic origin is this call.
    pub fn real() -> Self {
        Self(Source::Real { origin: Instant::now() })
    }

    fn simulated(state: Arc<SimState>) -> Self {
        Self(Source::Simulated(state))
    }

    /// Reads both clocks at this moment.
    pub fn now(&self) -> Now {
        match &self.0 {
            Source::Real { origin } => Now { mono: elapsed(*origin), wall: Timestamp::now() },
            Source::Simulated(state) => state.now(),
        }
    }

    /// Reads the monotonic clock alone, for measuring durations.
    pub fn mono(&self) -> Mono {
        match &self.0 {
            Source::Real { origin } => elapsed(*origin),
            Source::Simulated(state) => state.now().mono,
        }
    }

    /// Whether time moves only when a [`SimClock`] advances it.
    pub fn is_simulated(&self) -> bool {
        matches!(self.0, Source::Simulated(_))
    }

    /// Returns a future that is ready once the clock has reached `deadline`, at once if it already has.
    ///
    /// A simulated clock includes the deadline in [`SimClock::next_deadline`] from this call on, even before the first poll.
    /// With the real clock, call this inside a tokio runtime.
    pub fn sleep_until(&self, deadline: Mono) -> Sleep {
        Sleep(match &self.0 {
            Source::Real { origin } => {
                let left = deadline - elapsed(*origin);
                SleepKind::Real(Box::pin(tokio::time::sleep(left)))
            }
            Source::Simulated(state) => SleepKind::Simulated(SimState::sleep_until(state, deadline)),
        })
    }

    /// Returns a future that is ready after `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.mono() + duration)
    }

    /// Awaits `future` until `deadline` at the latest. If the future is ready and the deadline has passed, the future's output
    /// is returned.
    pub async fn timeout_at<F: Future>(&self, deadline: Mono, future: F) -> Result<F::Output, Elapsed> {
        let sleep = self.sleep_until(deadline);
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = sleep => Err(Elapsed),
        }
    }
}

fn elapsed(origin: Instant) -> Mono {
    Mono::ZERO + origin.elapsed()
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_simulated() { "simulated" } else { "real" };
        f.debug_struct("Clock").field("kind", &kind).field("mono", &self.mono()).finish()
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            SleepKind::Real(sleep) => sleep.as_mut().poll(context),
            SleepKind::Simulated(sleep) => Pin::new(sleep).poll(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let one = Mono::from_secs(1);
        assert_eq!(one + Duration::from_nanos(5), Mono::from_nanos(1_000_000_005));
        assert_eq!(one - Mono::from_secs(3), Duration::ZERO);
        assert_eq!(one - Duration::from_secs(3), Mono::ZERO);
        assert_eq!(Mono::MAX + Duration::MAX, Mono::MAX);
        assert!((Mono::from_secs(3).seconds_since(one) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn now_moves_both_readings() {
        let start = Now { mono: Mono::ZERO, wall: Timestamp::UNIX_EPOCH };
        let later = start + Duration::from_millis(1500);
        assert_eq!(later.mono, Mono::from_nanos(1_500_000_000));
        assert_eq!(later.wall.as_millisecond(), 1500);
    }

    #[tokio::test]
    async fn real_clock_sleeps_until_the_deadline() {
        let clock = Clock::real();
        let deadline = clock.mono() + Duration::from_micros(50);
        clock.sleep_until(deadline).await;
        assert!(clock.mono() >= deadline);
        assert_eq!(clock.timeout_at(clock.mono(), std::future::pending::<()>()).await, Err(Elapsed));
        assert_eq!(clock.timeout_at(Mono::ZERO, async { 7 }).await, Ok(7));
    }
}
