//! Metrics of the health checks at `/metrics/slis`.
//! Follows `component-base/metrics/prometheus/slis/metrics.go @v1.36.3`.

use std::sync::Arc;

use jiff::Timestamp;
use prometheus::proto::MetricFamily;
use prometheus::{Error, GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::endpoints::MetricsSource;

/// Results of the health checks, in a registry of their own.
pub(super) struct Slis {
    registry: Registry,
    last: IntGaugeVec,
    total: IntCounterVec,
    /// Start time of the process. This is a vector of one series, because a vector can be reset, as upstream does.
    start: GaugeVec,
}

impl Slis {
    /// Creates the metrics before any check has run.
    pub(super) fn new(started: Timestamp) -> Result<Arc<Self>, Error> {
        let registry = Registry::new();
        let last = "[STABLE] This metric records the result of a single healthcheck.";
        let last = IntGaugeVec::new(Opts::new("kubernetes_healthcheck", last), &["name", "type"])?;
        let total = "[STABLE] This metric records the results of all healthcheck.";
        let total = IntCounterVec::new(Opts::new("kubernetes_healthchecks_total", total), &["name", "type", "status"])?;
        let start = "[ALPHA] Start time of the process since unix epoch in seconds.";
        let start = GaugeVec::new(Opts::new("process_start_time_seconds", start), &[])?;
        start.with_label_values::<&str>(&[]).set(started.as_duration().as_secs_f64());
        registry.register(Box::new(last.clone()))?;
        registry.register(Box::new(total.clone()))?;
        registry.register(Box::new(start.clone()))?;
        Ok(Arc::new(Self { registry, last, total, start }))
    }

    /// Counts one check of a health endpoint.
    pub(super) fn observe(&self, name: &str, root: &str, is_well: bool) {
        self.last.with_label_values(&[name, root]).set(i64::from(is_well));
        let status = if is_well { "success" } else { "error" };
        self.total.with_label_values(&[name, root, status]).inc();
    }
}

impl MetricsSource for Slis {
    fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    fn reset(&self) {
        self.last.reset();
        self.total.reset();
        self.start.reset();
    }
}
