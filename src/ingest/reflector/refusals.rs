//! Logs that the API server is unreachable, once for all kinds and not for every request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::request::{Chain, is_connection_refused};
use crate::clock::{Clock, Mono};

/// Time until the warning is repeated.
const PERIOD: Duration = Duration::from_secs(30);

/// Time of the last warning by any reflector. The lock is held for a lookup.
#[derive(Clone, Default)]
pub(in crate::ingest) struct Refusals(Arc<Mutex<Option<Mono>>>);

impl Refusals {
    /// Logs the error if the connection was refused. Upstream logs nothing, so a wrong port looks like a healthy start.
    pub(super) fn tell(&self, error: &kube::Error, clock: &Clock) {
        if is_connection_refused(error) && self.is_due(clock.mono()) {
            tracing::warn!(error = %Chain(error), "API server is unreachable, retrying");
        }
    }

    fn is_due(&self, now: Mono) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.since(last) >= PERIOD);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_say_it_once_in_a_while() {
        let refusals = Refusals::default();
        let other = refusals.clone();
        assert!(refusals.is_due(Mono::from_secs(5)));
        assert!(!other.is_due(Mono::from_secs(5)));
        assert!(!refusals.is_due(Mono::from_secs(34)));
        assert!(other.is_due(Mono::from_secs(35)));
        assert!(!refusals.is_due(Mono::from_secs(64)));
    }
}
