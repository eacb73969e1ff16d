//! Backoff of a reflector between failed lists or watches.

use std::time::Duration;

use crate::client::retry::{DoublingWaits, jitter};
use crate::clock::{Mono, Rng};

/// Time after which the backoff starts again at its first value.
/// `client-go/tools/cache/reflector.go#defaultBackoffReset @v1.36.3`.
const RESET: Duration = Duration::from_mins(2);

/// Doubling backoff, in which each wait is multiplied by a random factor between 1 and 2.
/// Follows `apimachinery/pkg/util/wait/backoff.go#backoffManager @v1.36.3`.
#[derive(Debug)]
pub(super) struct Backoff {
    waits: DoublingWaits,
    started: Mono,
}

impl Backoff {
    pub(super) fn new(now: Mono) -> Self {
        Self { waits: DoublingWaits::LIST_AND_WATCH, started: now }
    }

    /// Returns the next wait.
    pub(super) fn next(&mut self, now: Mono, rng: &mut Rng) -> Duration {
        if now - self.started > RESET {
            *self = Self::new(now);
        }
        jitter(self.waits.next_wait(), 1.0, rng.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_and_resets_after_two_minutes() {
        let mut rng = Rng::from_seed(3);
        let mut backoff = Backoff::new(Mono::ZERO);
        let mut check = |at: u64, base: f64| {
            let wait = backoff.next(Mono::from_secs(at), &mut rng).as_secs_f64();
            assert!((base..=2.0 * base).contains(&wait), "{wait} at {at} for {base}");
        };
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            check(120, base);
        }
        check(121, 0.8);
        check(122, 1.6);
        check(241, 3.2);
        check(242, 0.8);
    }
}
