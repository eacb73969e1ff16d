//! The client-side rate limit: a token bucket that computes waits from timestamps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Mono};

/// Requests per second, and the burst, of a client that sets neither. From
/// `client-go/rest/config.go#DefaultQPS`, `#DefaultBurst @v1.36.3`.
const DEFAULT: (f32, u32) = (5.0, 10);

/// A rate limit in requests per second, with a burst. Cheap to clone; clones share the bucket. The lock on the bucket is held
/// only for a computation.
///
/// The bucket starts full, holds at most `burst` tokens and gains `qps` tokens a second. Each request takes a token, and the
/// count may become negative. A request that makes the count negative is sent once the missing tokens have been gained.
/// Requests are therefore sent in the order in which they took their tokens.
/// Follows `client-go/util/flowcontrol/throttle.go#NewTokenBucketRateLimiter @v1.36.3`.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    bucket: Arc<Mutex<Bucket>>,
    qps: f64,
    burst: f64,
}

#[derive(Debug)]
struct Bucket {
    /// Tokens in the bucket; negative while requests wait.
    tokens: f64,
    filled: Mono,
}

impl RateLimiter {
    /// A limit of `qps` requests a second after a burst of `burst`. Returns `None`, which means no limit, if `qps` is not above
    /// 0. A burst of 0 would never let a request pass and counts as 1.
    pub fn new(qps: f32, burst: u32) -> Option<Self> {
        let burst = f64::from(burst.max(1));
        let bucket = Arc::new(Mutex::new(Bucket { tokens: burst, filled: Mono::ZERO }));
        (qps > 0.0).then(|| Self { bucket, qps: f64::from(qps), burst })
    }

    /// The limit that a client's configuration asks for. A negative `qps` means no limit. A `qps` of 0, which only a flag can
    /// set, means 5 requests a second. A `burst` of 0 means 10 requests.
    /// Follows `client-go/rest/config.go#RESTClientForConfigAndClient @v1.36.3`. If `qps` is 0, upstream has one limit for each
    /// API group.
    pub fn of_client(qps: f32, burst: i32) -> Option<Self> {
        let or = |given: f32, default: f32| if given == 0.0 { default } else { given };
        let burst = if burst == 0 { DEFAULT.1 } else { u32::try_from(burst).unwrap_or(0) };
        Self::new(or(qps, DEFAULT.0), burst)
    }

    /// Locks the bucket and adds the tokens gained until now.
    fn filled(&self, now: Mono) -> MutexGuard<'_, Bucket> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.tokens = (bucket.tokens + now.seconds_since(bucket.filled) * self.qps).min(self.burst);
        bucket.filled = bucket.filled.max(now);
        bucket
    }

    /// Takes a token if one is available. Returns whether it took one.
    pub fn try_acquire(&self, now: Mono) -> bool {
        let mut bucket = self.filled(now);
        let available = bucket.tokens >= 1.0;
        if available {
            bucket.tokens -= 1.0;
        }
        available
    }

    /// Takes a token, which may put the bucket into debt. Returns the wait before the request may be sent.
    pub fn reserve(&self, now: Mono) -> Duration {
        let mut bucket = self.filled(now);
        bucket.tokens -= 1.0;
        let debt = (-bucket.tokens).max(0.0);
        // Truncates to whole nanoseconds, as the Go limiter does.
        Duration::try_from_secs_f64(debt / self.qps).unwrap_or(Duration::MAX)
    }

    /// Takes a token and waits until the request may be sent.
    pub async fn acquire(&self, clock: &Clock) {
        let now = clock.mono();
        let wait = self.reserve(now);
        if !wait.is_zero() {
            clock.sleep_until(now + wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_burst_wait_in_turn() {
        let limiter = RateLimiter::new(50.0, 3).unwrap();
        let at = |milliseconds: u64| Mono::from_nanos(milliseconds * 1_000_000);
        let waits: Vec<u128> = (0..5).map(|_| limiter.reserve(at(0)).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 20, 40]);
        assert_eq!(limiter.reserve(at(40)).as_millis(), 20, "two of three debts are paid");
        assert_eq!(limiter.reserve(at(10_000)), Duration::ZERO);
        let waits: Vec<u128> = (0..3).map(|_| limiter.reserve(at(10_000)).as_millis()).collect();
        assert_eq!(waits, [0, 0, 20], "a long rest fills the bucket, not more");
    }

    #[test]
    fn try_acquire_takes_a_token_only_if_available() {
        let limiter = RateLimiter::new(1.0, 1).unwrap();
        let taken: Vec<bool> = [0, 0, 0, 1, 1].map(|second| limiter.try_acquire(Mono::from_secs(second))).to_vec();
        assert_eq!(taken, [true, false, false, true, false]);
    }

    #[test]
    fn non_positive_rate_is_unlimited() {
        assert!(RateLimiter::new(0.0, 10).is_none());
        assert!(RateLimiter::new(-1.0, 10).is_none());
        assert!(RateLimiter::new(f32::NAN, 10).is_none());
        assert!(RateLimiter::of_client(-1.0, 0).is_none());
        let limits = |limiter: Option<RateLimiter>| limiter.map(|limiter| (limiter.qps, limiter.burst));
        assert_eq!(limits(RateLimiter::of_client(50.0, 100)), Some((50.0, 100.0)));
        assert_eq!(limits(RateLimiter::of_client(0.0, 0)), Some((5.0, 10.0)), "which is not: no limit");
        assert_eq!(RateLimiter::new(1.0, 0).unwrap().reserve(Mono::ZERO), Duration::ZERO);
    }
}
