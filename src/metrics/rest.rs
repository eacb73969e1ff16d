//! What is counted of requests to the API server. Follows `component-base/metrics/prometheus/restclient/metrics.go @v1.36.3`.

use std::sync::Arc;

use prometheus::{Error, HistogramOpts, HistogramVec, IntCounterVec, Registry};

use super::register::Registrar;
use super::register::Stability::Alpha;

/// Seconds that a request takes.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Bytes of a body.
const BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

/// Handles, and the server that the requests go to. Cheap to clone: there is a clone for each request.
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
    /// Registers the families; `host` is the server's address with its port.
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
            requests: always.counters(Alpha, method, &code, "Requests that were answered, or not.")?,
            retries: always.counters(
                Alpha,
                "rest_client_request_retries_total",
                &verb,
                "Requests that were sent again, by what became of the one before.",
            )?,
            duration: histogram("rest_client_request_duration_seconds", &SECONDS, "Seconds that requests took.")?,
            limited: histogram(
                "rest_client_rate_limiter_duration_seconds",
                &SECONDS,
                "Seconds that requests waited for the client's own limit.",
            )?,
            request_size: histogram("rest_client_request_size_bytes", &BYTES, "Bytes of the bodies of requests.")?,
            response_size: histogram("rest_client_response_size_bytes", &BYTES, "Bytes of the bodies of answers.")?,
        })))
    }

    /// A request got this answer, or none.
    pub fn answered(&self, method: &str, code: Option<u16>) {
        self.0.requests.with_label_values(&[&*text(code), method, &self.0.host]).inc();
    }

    /// A request with this answer, or none, is sent again.
    pub fn sent_again(&self, method: &str, code: Option<u16>) {
        self.0.retries.with_label_values(&[&*text(code), method, &self.0.host]).inc();
    }

    /// A request took so long, retries included.
    pub fn took(&self, method: &str, seconds: f64) {
        self.0.duration.with_label_values(&[method, &self.0.host]).observe(seconds);
    }

    /// A request waited so long for the limit.
    pub fn waited(&self, method: &str, seconds: f64) {
        self.0.limited.with_label_values(&[method, &self.0.host]).observe(seconds);
    }

    /// A body of so many bytes was sent.
    #[expect(clippy::cast_precision_loss, reason = "bytes in a histogram")]
    pub fn sent(&self, method: &str, bytes: usize) {
        self.0.request_size.with_label_values(&[method, &self.0.host]).observe(bytes as f64);
    }

    /// A body of so many bytes was received.
    #[expect(clippy::cast_precision_loss, reason = "bytes in a histogram")]
    pub fn received(&self, method: &str, bytes: usize) {
        self.0.response_size.with_label_values(&[method, &self.0.host]).observe(bytes as f64);
    }
}

fn text(code: Option<u16>) -> String {
    code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
}
