//! Retries: one loop, and the policies that decide which errors are retried, how often and after which wait.

mod backoff;
mod doubling;
mod server;

use std::time::Duration;

pub use backoff::{Backoff, jitter};
pub use doubling::DoublingWaits;
pub(super) use server::{RetriedByCaller, Unsettled, as_server_asks, wait_after_error, wait_after_response};

use crate::clock::Clock;

/// Calls `attempt` until it succeeds or the policy ends the retries, and returns the last result. `policy` returns the wait
/// before the next attempt, or `None` if the failure is final.
pub async fn retry<T, E, F>(
    clock: &Clock,
    mut policy: impl FnMut(&E) -> Option<Duration>,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(wait) = policy(&error) else { return Err(error) };
        if !wait.is_zero() {
            clock.sleep(wait).await;
        }
    }
}
