//! Exponential backoff with a limited number of attempts.

use std::time::Duration;

/// Exponential backoff with jitter: the number of attempts, and the waits in between.
/// Follows `apimachinery/pkg/util/wait/backoff.go#Backoff @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Maximum number of attempts, the first included.
    pub steps: u32,
    /// Wait after the first attempt.
    pub duration: Duration,
    /// Factor by which each wait is longer than the previous one.
    pub factor: f64,
    /// Maximum jitter, as a share of the wait. The jitter is random and added to the wait.
    pub jitter: f64,
}

impl Backoff {
    /// Policy for status patches: 4 attempts, with waits of 10 ms, 50 ms and 250 ms.
    /// Follows `client-go/util/retry/util.go#DefaultBackoff @v1.36.3`.
    pub const STATUS_PATCH: Self = Self { steps: 4, duration: Duration::from_millis(10), factor: 5.0, jitter: 0.1 };

    /// The wait after failed attempt number `tried` (counted from 1). `random` is in `[0, 1)`.
    fn wait_after(&self, tried: u32, random: f64) -> Duration {
        let exponent = i32::try_from(tried.saturating_sub(1)).unwrap_or(i32::MAX);
        self.duration.mul_f64(self.factor.powi(exponent) * (1.0 + random * self.jitter))
    }

    /// The policy that retries `retriable` errors until all attempts are used up. `random` draws the jitter, in `[0, 1)`.
    /// Follows `client-go/util/retry/util.go#OnError @v1.36.3`.
    pub fn policy<E>(
        self,
        mut random: impl FnMut() -> f64,
        retriable: impl Fn(&E) -> bool,
    ) -> impl FnMut(&E) -> Option<Duration> {
        let mut tried = 0;
        move |error| {
            tried += 1;
            (retriable(error) && tried < self.steps).then(|| self.wait_after(tried, random()))
        }
    }
}

/// Returns `duration` plus up to `share` of itself. `random` is in `[0, 1)`.
/// Follows `apimachinery/pkg/util/wait/backoff.go#Jitter @v1.36.3`.
pub fn jitter(duration: Duration, share: f64, random: f64) -> Duration {
    duration.mul_f64(1.0 + random * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_and_ends() {
        let waits = |random: f64| -> Vec<Option<u128>> {
            let mut policy = Backoff::STATUS_PATCH.policy(|| random, |(): &()| true);
            (1..=4).map(|_| Some(policy(&())?.as_millis())).collect()
        };
        assert_eq!(waits(0.0), [Some(10), Some(50), Some(250), None]);
        assert_eq!(waits(0.5), [Some(10), Some(52), Some(262), None]);
        assert_eq!(jitter(Duration::from_secs(10), 0.25, 0.5), Duration::from_millis(11_250));
    }

    #[test]
    fn final_failures_are_not_retried() {
        let mut policy = Backoff::STATUS_PATCH.policy(|| 0.0, |error: &u8| *error == 1);
        assert_eq!(policy(&2), None);
        assert!(policy(&1).is_some());
    }
}
