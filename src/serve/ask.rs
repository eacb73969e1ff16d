//! Questions to the API server: how often they are asked again, and how fast.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::clock::{Clock, Rng};
use crate::dispatcher::retry::{Backoff, on_error};
use crate::dispatcher::{ApiError, Call, RateLimiter, RestClient, Target, TransportKind};

/// How long one question may take.
/// From `apiserver/pkg/server/options/authentication.go#NewDelegatingAuthenticationOptions` and
/// `apiserver/pkg/server/options/authorization.go#NewDelegatingAuthorizationOptions @v1.36.3`.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Questions a second, and at once. From `apiserver/pkg/server/options/authentication.go#getClient @v1.36.3`.
const RATE: (f32, u32) = (200.0, 400);

/// From `apiserver/pkg/server/options/authentication.go#DefaultAuthWebhookRetryBackoff @v1.36.3`.
const BACKOFF: Backoff = Backoff { steps: 5, duration: Duration::from_millis(500), factor: 1.5, jitter: 0.2 };

/// A client that asks. Cheap to clone.
#[derive(Clone)]
pub(super) struct Asker {
    client: RestClient,
    clock: Clock,
    /// Draws the jitter of retries. The lock is held for a draw.
    rng: Arc<Mutex<Rng>>,
}

impl Asker {
    pub(super) fn new(client: kube::Client, clock: &Clock, rng: Rng) -> Self {
        let limiter = RateLimiter::new(RATE.0, RATE.1);
        let client = RestClient::new(client, limiter, clock.clone());
        Self { client, clock: clock.clone(), rng: Arc::new(Mutex::new(rng)) }
    }

    /// The same, that tells the server how long it has. Follows `apiserver/pkg/server/options/authorization.go#getClient
    /// @v1.36.3`; that of `apiserver/pkg/server/options/authentication.go` does not.
    pub(super) fn telling(self) -> Self {
        Self { client: self.client.timeout(TIMEOUT), ..self }
    }

    /// Sends one request, which may take [`TIMEOUT`].
    pub(super) async fn send(&self, call: &Call, target: &Target<'_>) -> Result<Bytes, ApiError> {
        self.client.send_within(TIMEOUT, call, target).await
    }

    /// Posts an object, again where the failure is one that passes.
    /// Follows `apiserver/pkg/util/webhook/webhook.go#WithExponentialBackoff @v1.36.3`.
    pub(super) async fn post(&self, body: Bytes, target: Target<'_>) -> Result<Bytes, ApiError> {
        let rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner).split();
        let call = Call::Post(body);
        on_error(&self.clock, BACKOFF, rng, passes, || self.send(&call, &target)).await
    }
}

/// Whether a failure may pass: the connection was reset, or the server said that it has a problem of its own or is busy.
/// Follows `apiserver/pkg/util/webhook/webhook.go#DefaultShouldRetry @v1.36.3`.
fn passes(error: &ApiError) -> bool {
    match error {
        ApiError::Transport { kind, .. } => *kind == TransportKind::Reset,
        ApiError::Status(status) => {
            let delay = status.details.as_ref().is_some_and(|details| details.retry_after_seconds > 0);
            delay || matches!(status.code, 500 | 504 | 429)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::Status;

    use super::*;

    #[test]
    fn only_what_may_pass_is_asked_again() {
        let check = |error: ApiError, expected: bool| assert_eq!(passes(&error), expected, "{error:?}");
        let status = |code: u16| ApiError::Status(Box::new(Status { code, ..Status::default() }));
        let unanswered = |kind| ApiError::Transport { message: String::new(), kind };
        check(unanswered(TransportKind::Reset), true);
        check(unanswered(TransportKind::Refused), false);
        check(unanswered(TransportKind::Other), false);
        check(status(500), true);
        check(status(504), true);
        check(status(429), true);
        check(status(403), false);
        check(status(503), false);
        let details = serde_json::json!({"code": 503, "details": {"retryAfterSeconds": 1}});
        check(ApiError::Status(Box::new(serde_json::from_value(details).expect("a status"))), true);
    }
}
