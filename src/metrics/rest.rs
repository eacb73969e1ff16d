//! Metrics of requests to the API server. Follows `component-base/metrics/prometheus/restclient/metrics.go @v1.36.3`.

use std::sync::Arc;

use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, Registry};

use super::register::Registrar;
use super::register::Stability::Alpha;

/// Buckets of request durations, in seconds.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Buckets of body sizes, in bytes.
const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

/// Handles of the request metrics, with the server's address. Cheap to clone: each request has a clone.
#[derive(Clone, Debug)]
pub struct RestMetrics(Arc<Handles>);

#[derive(Debug)]
struct Handles {
    host: String,
    requests: IntCounterVec,
    retries: IntCounterVec,
    duration: HistogramVec,
    limited: HistogramVec,
    request_size: HistogramVec,
    response_size: HistogramVec,
}

impl RestMetrics {
    /// Registers the families of requests. `host` is the server's address with its port.
    pub fn new(registry: &Registry, host: &str) -> Result<Self, Error> {
        let always = Registrar { registry, enabled: true };
        let histogram = |name: &str, buckets: &[f64], help: &str| {
            let options = HistogramOpts::new(name, format!("[ALPHA] {help}")).buckets(buckets.to_vec());
            let histogram = HistogramVec::new(options, &["verb", "host"])?;
            registry.register(Box::new(histogram.clone()))?;
            Ok::<_, Error>(histogram)
        };
        let (code, method, verb) = (["code", "method", "host"], "rest_client_requests_total", ["code", "verb", "host"]);
        Ok(Self(Arc::new(Handles {
            host: host.to_owned(),
            requests: always.counters(Alpha, method, &code, "Requests, by status code or error, method and host.")?,
            retries: always.counters(
                Alpha,
                "rest_client_request_retries_total",
                &verb,
                "Retried requests, by status code or error of the previous attempt, verb and host.",
            )?,
            duration: histogram(
                "rest_client_request_duration_seconds",
                &SECONDS,
                "Request duration in seconds, by verb and host.",
            )?,
            limited: histogram(
                "rest_client_rate_limiter_duration_seconds",
                &SECONDS,
                "Seconds that requests waited for the client-side rate limiter, by verb and host.",
            )?,
            request_size: histogram(
                "rest_client_request_size_bytes",
                &BYTES,
                "Request body size in bytes, by verb and host.",
            )?,
            response_size: histogram(
                "rest_client_response_size_bytes",
                &BYTES,
                "Response body size in bytes, by verb and host.",
            )?,
        })))
    }

    /// Counts a request and its response's status code, or `None` if it has no response.
    pub fn answered(&self, method: &str, code: Option<u16>) {
        self.0.requests.with_label_values(&[&*text(code), method, &self.0.host]).inc();
    }

    /// Counts a retry of a request that got this status code, or no response.
    pub fn sent_again(&self, method: &str, code: Option<u16>) {
        self.0.retries.with_label_values(&[&*text(code), method, &self.0.host]).inc();
    }

    /// Observes the duration of a request, including its retries.
    pub fn took(&self, method: &str, seconds: f64) {
        self.0.duration.with_label_values(&[method, &self.0.host]).observe(seconds);
    }

    /// Observes the time that a request waited for the client-side rate limiter.
    pub fn waited(&self, method: &str, seconds: f64) {
        self.0.limited.with_label_values(&[method, &self.0.host]).observe(seconds);
    }

    /// Observes the size of a request's body.
    #[expect(clippy::cast_precision_loss, reason = "bytes in a histogram")]
    pub fn sent(&self, method: &str, bytes: usize) {
        self.0.request_size.with_label_values(&[method, &self.0.host]).observe(bytes as f64);
    }

    /// Observes the size of a response's body.
    #[expect(clippy::cast_precision_loss, reason = "bytes in a histogram")]
    pub fn received(&self, method: &str, bytes: usize) {
        self.0.response_size.with_label_values(&[method, &self.0.host]).observe(bytes as f64);
    }
}

fn text(code: Option<u16>) -> String {
    code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
}
