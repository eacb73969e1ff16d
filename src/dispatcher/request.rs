//! One request: built, throttled, sent, sent again where the server asks for it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;

use super::client::SentAgain;
use super::error::ApiError;
use super::flowcontrol::RateLimiter;
use super::retry::{MAX_RETRIES, wait_after_error, wait_after_response};
use crate::clock::{Clock, Mono};
use crate::config::GoDuration;
use crate::metrics::RestMetrics;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const STRATEGIC_MERGE: HeaderValue = HeaderValue::from_static("application/strategic-merge-patch+json");
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, */*");

/// What a request is about: the parts of its path, which are also the parts of an error's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The API group; empty for core.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The namespace; empty for objects that have none.
    pub namespace: &'a str,
    /// The resource's plural.
    pub resource: &'a str,
    /// The object's name; empty for the collection.
    pub name: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
}

/// A request's verb, with its body.
#[derive(Clone, Debug)]
pub enum Call {
    /// Reads the object.
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
    /// How long a request may take, as the server is told.
    timeout: Option<Duration>,
}

/// What else there is to sending a request.
#[derive(Clone, Default)]
pub struct Sending {
    /// Says whether anything may be written at this moment, where several schedulers take turns.
    pub fence: Option<Fence>,
    /// What is counted.
    pub metrics: Option<RestMetrics>,
}

/// Whether anything may be written at this moment. Asked before each try of each write.
pub type Fence = Arc<dyn Fn() -> bool + Send + Sync>;

impl<'a> Target<'a> {
    /// A pod.
    pub const fn pod(namespace: &'a str, name: &'a str) -> Self {
        Self { group: "", version: "v1", namespace, resource: "pods", name, subresource: "" }
    }

    /// The same object's subresource.
    #[must_use]
    pub const fn subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// `resource`, or `resource.group`.
    pub fn qualified_resource(&self) -> Cow<'a, str> {
        if self.group.is_empty() { self.resource.into() } else { format!("{}.{}", self.resource, self.group).into() }
    }

    /// The URL's path.
    pub fn path(&self) -> String {
        let capacity = 40 + self.group.len() + self.namespace.len() + self.name.len() + self.subresource.len();
        let mut path = String::with_capacity(capacity);
        path.push_str(if self.group.is_empty() { "/api" } else { "/apis" });
        let namespaces = if self.namespace.is_empty() { "" } else { "namespaces" };
        let segments =
            [self.group, self.version, namespaces, self.namespace, self.resource, self.name, self.subresource];
        for segment in segments.iter().filter(|segment| !segment.is_empty()) {
            path.push('/');
            path.push_str(segment);
        }
        path
    }
}

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
    /// A client whose own retries must be off (see [`Link::client`](super::client::Link::client)). No limiter means no limit.
    pub fn new(client: kube::Client, limiter: Option<RateLimiter>, clock: Clock) -> Self {
        Self { client, limiter, sending: Sending::default(), clock, timeout: None }
    }

    /// The same client, with more to its sending.
    #[must_use]
    pub fn sending(mut self, sending: Sending) -> Self {
        self.sending = sending;
        self
    }

    /// The same client, whose requests may take so long, waits and retries included. The server is told.
    /// Follows `client-go/rest/request.go#NewRequest`, `#Request.URL @v1.36.3`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The clock that retries and the limit wait by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Sends the request and answers with the body of a success, which most callers ignore.
    ///
    /// Every try passes the rate limit. A try that the server answers with `Retry-After`, and a read whose connection broke,
    /// are sent again after the wait; see [`retry`](super::retry). Dropping the future gives the request up, which may
    /// already have reached the server. Follows `client-go/rest/request.go#request @v1.36.3`.
    pub async fn send(&self, call: &Call, target: &Target<'_>) -> Result<Bytes, ApiError> {
        let (method, began) = (call.method(), self.clock.now().mono);
        let answered = Box::pin(self.send_until_answered(call, &method, target));
        let outcome = match self.timeout {
            Some(timeout) => self.until(began + timeout, call, target, answered).await,
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

    /// The same within a time, waits and retries included.
    pub async fn send_within(&self, limit: Duration, call: &Call, target: &Target<'_>) -> Result<Bytes, ApiError> {
        self.until(self.clock.mono() + limit, call, target, self.send(call, target)).await
    }

    async fn until(
        &self,
        deadline: Mono,
        call: &Call,
        target: &Target<'_>,
        sent: impl Future<Output = Result<Bytes, ApiError>>,
    ) -> Result<Bytes, ApiError> {
        let sent = self.clock.timeout_at(deadline, sent).await;
        sent.unwrap_or_else(|_| Err(ApiError::out_of_time(&call.method(), &target.path())))
    }

    async fn send_until_answered(&self, call: &Call, method: &Method, target: &Target<'_>) -> Result<Bytes, ApiError> {
        let mut path = target.path();
        if let Some(timeout) = self.timeout {
            path = format!("{path}?timeout={}", GoDuration::from(timeout));
        }
        let mut retries = 0;
        loop {
            self.wait_for_turn(method).await;
            if !matches!(call, Call::Get) && self.sending.fence.as_ref().is_some_and(|may_write| !may_write()) {
                return Err(ApiError::NotLeading);
            }
            let (wait, error) = match self.send_once(call, method, &path, target).await {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            match wait {
                Some(wait) if retries < MAX_RETRIES => {
                    retries += 1;
                    tracing::debug!(path, ?wait, attempt = retries, "Got a Retry-After response");
                    if let Some(metrics) = &self.sending.metrics {
                        metrics.sent_again(method.as_str(), error.status().map(|status| status.code));
                    }
                    if !wait.is_zero() {
                        self.clock.sleep(wait).await;
                    }
                }
                _ => return Err(error),
            }
        }
    }

    /// Waits until the rate limit lets a request pass.
    async fn wait_for_turn(&self, method: &Method) {
        let Some(limiter) = &self.limiter else { return };
        let began = self.clock.now().mono;
        limiter.acquire(&self.clock).await;
        if let Some(metrics) = &self.sending.metrics {
            metrics.waited(method.as_str(), self.clock.now().mono.seconds_since(began));
        }
    }

    /// One try; a failure comes with the wait after which it may be tried again.
    async fn send_once(
        &self,
        call: &Call,
        method: &Method,
        path: &str,
        target: &Target<'_>,
    ) -> Result<Bytes, (Option<Duration>, ApiError)> {
        let request = build(call, method, path).map_err(|error| (None, ApiError::Request(error.to_string())))?;
        if let Some(metrics) = &self.sending.metrics {
            metrics.sent(method.as_str(), call.body().0.len());
        }
        let unanswered = |error: kube::Error| {
            let error = ApiError::from_transport(method, path, &error);
            (wait_after_error(method, &error), error)
        };
        let response = self.client.send(request).await.map_err(unanswered)?;
        let (parts, body) = response.into_parts();
        // Also the body of a success is read to its end: only then is the connection free for the next request.
        let body = body.collect().await.map_err(unanswered)?.to_bytes();
        if (200..=206).contains(&parts.status.as_u16()) {
            return Ok(body);
        }
        let error = ApiError::from_response(method, target, parts.status, &parts.headers, &body);
        Err((wait_after_response(parts.status, &parts.headers), error))
    }
}

fn build(call: &Call, method: &Method, path: &str) -> Result<Request<Body>, http::Error> {
    let (body, content_type) = call.body();
    let mut builder = Request::builder().method(method.clone()).uri(path).header(ACCEPT, ACCEPTED);
    if let Some(content_type) = content_type {
        builder = builder.header(CONTENT_TYPE, content_type);
    }
    builder.extension(SentAgain).body(Body::from(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_the_object() {
        let check = |target: Target<'_>, path: &str, resource: &str| {
            assert_eq!(target.path(), path);
            assert_eq!(target.qualified_resource(), resource);
        };
        let pod = Target::pod("ns", "p").subresource("binding");
        check(pod, "/api/v1/namespaces/ns/pods/p/binding", "pods");
        let events =
            Target { group: "events.k8s.io", version: "v1", namespace: "ns", resource: "events", ..Target::default() };
        check(events, "/apis/events.k8s.io/v1/namespaces/ns/events", "events.events.k8s.io");
        let node = Target { version: "v1", resource: "nodes", name: "n", ..Target::default() };
        check(node, "/api/v1/nodes/n", "nodes");
    }
}
