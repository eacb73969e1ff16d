//! Sends a client's requests: adds credentials, retries reads, counts responses.

use std::sync::Arc;

use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use kube::client::Body;
use tower::BoxError;

use super::super::error::Unanswered;
use super::super::retry::{RetriedByCaller, Unsettled, as_server_asks, retry, wait_after_response};
use super::config::TransportConfig;
use super::connector::Connector;
use super::headers::InvalidHeader;
use crate::metrics::RestMetrics;

/// Sends the requests of one client.
pub(super) struct Sender {
    pub(super) config: Arc<TransportConfig>,
    pub(super) http: legacy::Client<Connector, Body>,
    /// Default headers: each is added to a request that does not set the same header. An error fails every request.
    pub(super) headers: Result<HeaderMap, InvalidHeader>,
    pub(super) metrics: Option<RestMetrics>,
}

/// The response to one attempt, or the error of its connection.
type Outcome = Result<Response<Incoming>, legacy::Error>;

impl Sender {
    /// Sends a request, and closes connections whose credentials are outdated.
    pub(super) async fn send(self: Arc<Self>, request: Request<Body>) -> Result<Response<Incoming>, Unanswered> {
        let url = request.uri().clone();
        self.send_with_credentials(request).await.map_err(|source| Unanswered { url, source })
    }

    async fn send_with_credentials(&self, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let headers = request.headers_mut();
        let defaults = self.headers.as_ref().map_err(Clone::clone)?;
        for name in defaults.keys() {
            if !headers.contains_key(name) {
                for value in defaults.get_all(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        let credentials = &self.config.credentials;
        let authorization = credentials.authorize().await?;
        if let Some(value) = &authorization.header {
            headers.insert(http::header::AUTHORIZATION, value.clone());
        }
        self.config.close_outdated();
        let answer = self.send_until_answered(request).await;
        if answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED) {
            credentials.refused(&authorization).await;
        }
        Ok(answer?)
    }

    /// Sends a request until it is answered. Retries a read if the server asks for it, unless the caller does its own retries.
    async fn send_until_answered(&self, request: Request<Body>) -> Outcome {
        let method = request.method().clone();
        if method != Method::GET || request.extensions().get::<RetriedByCaller>().is_some() {
            return self.send_once(request).await;
        }
        let (parts, _) = request.into_parts();
        let policy = as_server_asks(|outcome: &Outcome, wait, attempt| {
            tracing::debug!(path = parts.uri.path(), ?wait, attempt, "Got a Retry-After response");
            if let Some(metrics) = &self.metrics {
                metrics.sent_again(method.as_str(), outcome.as_ref().ok().map(|answer| answer.status().as_u16()));
            }
        });
        let attempt = || async {
            let outcome = self.send_once(Request::from_parts(parts.clone(), Body::empty())).await;
            let answer = outcome.as_ref().ok();
            match answer.and_then(|answer| wait_after_response(answer.status(), answer.headers())) {
                None => Ok(outcome),
                wait => Err(Unsettled { wait, outcome }),
            }
        };
        retry(&self.config.clock, policy, attempt).await.unwrap_or_else(|unsettled| unsettled.outcome)
    }

    async fn send_once(&self, request: Request<Body>) -> Outcome {
        let method = request.method().clone();
        let answer = self.http.request(request).await;
        if let Some(metrics) = &self.metrics {
            metrics.answered(method.as_str(), answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        }
        answer
    }
}
