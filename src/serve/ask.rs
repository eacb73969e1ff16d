//! Requests to the API server for authentication and authorization, with rate limits, time limits and retries.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::client::retry::Backoff;
use crate::client::{ApiError, Call, RateLimiter, RestClient, Target, TransportKind, retry};
use crate::clock::{Clock, Rng};

/// Time limit of one attempt.
/// From `apiserver/pkg/server/options/authentication.go#NewDelegatingAuthenticationOptions` and
/// `apiserver/pkg/server/options/authorization.go#NewDelegatingAuthorizationOptions @v1.36.3`.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Requests per second, and their burst. From `apiserver/pkg/server/options/authentication.go#getClient @v1.36.3`.
const RATE: (f32, u32) = (200.0, 400);

/// Backoff between the attempts of a request.
/// From `apiserver/pkg/server/options/authentication.go#DefaultAuthWebhookRetryBackoff @v1.36.3`.
const BACKOFF: Backoff = Backoff { steps: 5, duration: Duration::from_millis(500), factor: 1.5, jitter: 0.2 };

/// A client that sends token and access reviews. Cheap to clone.
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
        let client = RestClient::new(client, limiter, clock.clone()).limit(TIMEOUT);
        Self { client, clock: clock.clone(), rng: Arc::new(Mutex::new(rng)) }
    }

    /// Returns the same client, which also sends the time limit to the server.
    /// Follows `apiserver/pkg/server/options/authorization.go#getClient @v1.36.3`. The client of
    /// `apiserver/pkg/server/options/authentication.go` does not send it.
    pub(super) fn sending_timeout(self) -> Self {
        Self { client: self.client.sending_timeout(), ..self }
    }

    /// Sends one request within [`TIMEOUT`].
    pub(super) async fn send(&self, call: &Call, target: &Target<'_>) -> Result<Bytes, ApiError> {
        self.client.send(call, target).await
    }

    /// Posts an object, and retries temporary failures.
    /// Follows `apiserver/pkg/util/webhook/webhook.go#WithExponentialBackoff @v1.36.3`.
    pub(super) async fn post(&self, body: Bytes, target: Target<'_>) -> Result<Bytes, ApiError> {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner).split();
        let call = Call::Post(body);
        let policy = BACKOFF.policy(|| rng.unit(), is_temporary);
        retry(&self.clock, policy, || self.send(&call, &target)).await
    }
}

/// Whether a failure is temporary: the connection was reset, or the server reports an internal error, a timeout or too many
/// requests, or suggests a delay.
/// Follows `apiserver/pkg/util/webhook/webhook.go#DefaultShouldRetry @v1.36.3`.
fn is_temporary(error: &ApiError) -> bool {
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
    fn only_temporary_failures_are_retried() {
        let check = |error: ApiError, expected: bool| assert_eq!(is_temporary(&error), expected, "{error:?}");
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
