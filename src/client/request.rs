//! Single requests: building, throttling, sending, and retries that the server asks for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;

use super::error::ApiError;
use super::flowcontrol::RateLimiter;
use super::retry::{RetriedByCaller, Unsettled, as_server_asks, retry, wait_after_error, wait_after_response};
use super::target::Target;
use crate::clock::Clock;
use crate::go::duration::GoDuration;
use crate::metrics::RestMetrics;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STRATEGIC_MERGE: HeaderValue = HeaderValue::from_static("application/strategic-merge-patch+json");
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, */*");

/// A request's verb, with its body.
#[derive(Clone, Debug)]
pub enum Call {
    /// Reads the object; there is no body.
    Get,
    /// Creates an object; the body is JSON.
    Post(Bytes),
    /// Replaces the object; the body is JSON.
    Put(Bytes),
    /// Merges a strategic merge patch into the object; the body is JSON.
    Patch(Bytes),
    /// Deletes the object; the body is JSON, or empty for no options.
    Delete(Bytes),
}

/// A client with a rate limit and client-go's retries. Cheap to clone; clones share the limit.
#[derive(Clone)]
pub struct RestClient {
    client: kube::Client,
    limiter: Option<RateLimiter>,
    sending: Sending,
    clock: Clock,
    /// Time limit of a request, including waits and retries.
    timeout: Option<Duration>,
    /// Whether requests tell the server their time limit.
    sends_timeout: bool,
}

/// Optional parts of a [`RestClient`] that act on each request.
#[derive(Clone, Default)]
pub struct Sending {
    /// Checks before each write that this scheduler is still the leader.
    pub fence: Option<Fence>,
    /// Metrics that count and time requests.
    pub metrics: Option<RestMetrics>,
}

/// Whether this process may write now, that is, holds the lease. Called before each attempt of each write.
pub type Fence = Arc<dyn Fn() -> bool + Send + Sync>;

impl Call {
    fn method(&self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post(_) => Method::POST,
            Self::Put(_) => Method::PUT,
            Self::Patch(_) => Method::PATCH,
            Self::Delete(_) => Method::DELETE,
        }
    }

    fn body(&self) -> (Bytes, Option<HeaderValue>) {
        match self {
            Self::Get => (Bytes::new(), None),
            Self::Post(body) | Self::Put(body) | Self::Delete(body) => {
                (body.clone(), (!body.is_empty()).then_some(JSON))
            }
            Self::Patch(body) => (body.clone(), Some(STRATEGIC_MERGE)),
        }
    }
}

impl RestClient {
    /// A client with this limit, or no limit if it is `None`. kube's own retries must be off (see
    /// [`Transport::client`](super::Transport::client)).
    pub fn new(client: kube::Client, limiter: Option<RateLimiter>, clock: Clock) -> Self {
        Self { client, limiter, sending: Sending::default(), clock, timeout: None, sends_timeout: false }
    }

    /// The same client with this fence and these metrics.
    #[must_use]
    pub fn sending(mut self, sending: Sending) -> Self {
        self.sending = sending;
        self
    }

    /// The same client with a time limit for each request, including waits and retries.
    #[must_use]
    pub fn limit(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same client, which also sends the time limit to the server.
    /// Follows `client-go/rest/request.go#NewRequest`, `#Request.URL @v1.36.3`.
    #[must_use]
    pub fn sending_timeout(mut self) -> Self {
        self.sends_timeout = true;
        self
    }

    /// The clock used for retries and the rate limit.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Sends the request and returns the body of a successful response, which most callers ignore.
    ///
    /// Every attempt passes the rate limit. An attempt is retried after a wait if the server answers with `Retry-After`, or if
    /// it is a read whose connection broke; see [`retry`](super::retry). Dropping the future abandons the request, which may
    /// already have reached the server. Follows `client-go/rest/request.go#request @v1.36.3`.
    pub async fn send(&self, call: &Call, target: &Target<'_>) -> Result<Bytes, ApiError> {
        let (method, began) = (call.method(), self.clock.now().mono);
        let answered = Box::pin(self.send_until_answered(call, &method, target));
        let outcome = match self.timeout {
            Some(timeout) => {
                let answered = self.clock.timeout_at(began + timeout, answered).await;
                answered.unwrap_or_else(|_| Err(ApiError::out_of_time(&method, &target.path())))
            }
            None => answered.await,
        };
        if let Some(metrics) = &self.sending.metrics {
            metrics.took(method.as_str(), self.clock.now().mono.seconds_since(began));
            if let Ok(body) = &outcome {
                metrics.received(method.as_str(), body.len());
            }
        }
        outcome
    }

    async fn send_until_answered(&self, call: &Call, method: &Method, target: &Target<'_>) -> Result<Bytes, ApiError> {
        let mut path = target.path();
        if let Some(timeout) = self.timeout.filter(|_| self.sends_timeout) {
            path = format!("{path}?timeout={}", GoDuration::from(timeout));
        }
        let policy = as_server_asks(|error: &ApiError, wait, attempt| {
            tracing::debug!(path, ?wait, attempt, "Got a Retry-After response");
            if let Some(metrics) = &self.sending.metrics {
                metrics.sent_again(method.as_str(), error.status().map(|status| status.code));
            }
        });
        let outcome = retry(&self.clock, policy, || self.throttle_and_send(call, method, &path, target)).await;
        outcome.map_err(|unsettled| unsettled.outcome)
    }

    /// Makes one attempt, once the rate limit lets it pass. Refuses a write if this process is not the leader.
    async fn throttle_and_send(
        &self,
        call: &Call,
        method: &Method,
        path: &str,
        target: &Target<'_>,
    ) -> Result<Bytes, Unsettled<ApiError>> {
        self.throttle(method).await;
        if !matches!(call, Call::Get) && self.sending.fence.as_ref().is_some_and(|may_write| !may_write()) {
            return Err(Unsettled { wait: None, outcome: ApiError::NotLeading });
        }
        self.send_once(call, method, path, target).await
    }

    /// Waits until the rate limit lets a request pass.
    async fn throttle(&self, method: &Method) {
        let Some(limiter) = &self.limiter else { return };
        let began = self.clock.now().mono;
        limiter.acquire(&self.clock).await;
        if let Some(metrics) = &self.sending.metrics {
            metrics.waited(method.as_str(), self.clock.now().mono.seconds_since(began));
        }
    }

    /// Makes one attempt of a request. A failure carries the wait before the next attempt, if a retry is allowed.
    async fn send_once(
        &self,
        call: &Call,
        method: &Method,
        path: &str,
        target: &Target<'_>,
    ) -> Result<Bytes, Unsettled<ApiError>> {
        let request = build(call, method, path)
            .map_err(|error| Unsettled { wait: None, outcome: ApiError::Request(error.to_string()) })?;
        if let Some(metrics) = &self.sending.metrics {
            metrics.sent(method.as_str(), call.body().0.len());
        }
        let unanswered = |error: kube::Error| {
            let error = ApiError::from_transport(method, path, &error);
            Unsettled { wait: wait_after_error(method, &error), outcome: error }
        };
        let response = self.client.send(request).await.map_err(unanswered)?;
        let (parts, body) = response.into_parts();
        // Reads the body of a success to its end, too, because only then can the connection be reused.
        let body = body.collect().await.map_err(unanswered)?.to_bytes();
        if (200..=206).contains(&parts.status.as_u16()) {
            return Ok(body);
        }
        let error = ApiError::from_response(method, target, parts.status, &parts.headers, &body);
        Err(Unsettled { wait: wait_after_response(parts.status, &parts.headers), outcome: error })
    }
}

fn build(call: &Call, method: &Method, path: &str) -> Result<Request<Body>, http::Error> {
    let (body, content_type) = call.body();
    let mut builder = Request::builder().method(method.clone()).uri(path).header(ACCEPT, ACCEPTED);
    if let Some(content_type) = content_type {
        builder = builder.header(CONTENT_TYPE, content_type);
    }
    builder.extension(RetriedByCaller).body(Body::from(body))
}
