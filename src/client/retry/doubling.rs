//! Waits that double, without a limit to the number of attempts.

use std::time::Duration;

/// Waits that double up to a maximum.
#[derive(Clone, Debug)]
pub struct DoublingWaits {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl DoublingWaits {
    /// Waits of lists and watches that failed, before jitter. Follows
    /// `client-go/tools/cache/reflector.go#defaultBackoffInit`, `#defaultBackoffMax @v1.36.3`.
    pub const LIST_AND_WATCH: Self = Self::new(Duration::from_millis(800), Duration::from_secs(30));

    /// Waits that start at `first` and grow to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// Returns the next wait and doubles the one after it.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = self.longest.min(wait * 2);
        wait
    }

    /// Starts over with the first wait.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum_and_reset() {
        let mut waits = DoublingWaits::new(Duration::from_secs(5), Duration::from_secs(12));
        let mut seconds = || waits.next_wait().as_secs();
        assert_eq!([seconds(), seconds(), seconds(), seconds()], [5, 10, 12, 12]);
        waits.reset();
        assert_eq!(waits.next_wait().as_secs(), 5);
    }
}
