//! The contents of all endpoints, which the server's owner provides.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus::Registry;
use prometheus::proto::MetricFamily;
use serde_json::Value;

use super::health::HealthCheck;
use crate::k8s::Pod;
use crate::listers::Lister;
use crate::metrics::Metrics;

/// Source of the families of `/metrics`.
pub trait MetricsSource: Send + Sync {
    /// Gathers all metric families.
    fn gather(&self) -> Vec<MetricFamily>;
    /// Resets the metrics, as a `DELETE` request asks for.
    fn reset(&self);
}

/// Sets the log verbosity until the process ends.
pub type SetVerbosity = Arc<dyn Fn(u32) + Send + Sync>;

/// Whether this process is the leader. Only a leader serves the resources of all pods.
pub type IsLeader = Arc<dyn Fn() -> bool + Send + Sync>;

/// Contents of all endpoints.
pub struct Endpoints {
    /// Metrics served at `/metrics`.
    pub metrics: Arc<dyn MetricsSource>,
    /// Registry for the server's own metrics about authentication and authorization.
    pub registry: Registry,
    /// Pods for the metrics at `/metrics/resources`.
    pub pods: Lister<Pod>,
    /// Whether this process is the leader. Only a leader serves `/metrics/resources`.
    pub is_leader: IsLeader,
    /// Value of `componentconfig` at `/configz`.
    pub config: Value,
    /// Flag names and values at `/flagz`. `None` if the gate `ComponentFlagz` is off.
    pub flags: Option<BTreeMap<String, String>>,
    /// Versions shown at `/statusz`. `None` if the gate `ComponentStatusz` is off.
    pub status: Option<Versions>,
    /// Checks of `/healthz`, by default only `ping`.
    pub healthz: Vec<Arc<dyn HealthCheck>>,
    /// Checks of `/readyz`, by default only `ping`.
    pub readyz: Vec<Arc<dyn HealthCheck>>,
    /// Profiling at `/debug/pprof` and `/debug/flags`. `None` turns both off.
    pub profiling: Option<Profiling>,
    /// When the process was started.
    pub started: Timestamp,
}

/// Versions shown at `/statusz`.
#[derive(Clone, Debug)]
pub struct Versions {
    /// Version of the compiler. Upstream shows its Go version here.
    pub toolchain: String,
    /// Version of the binary, such as `1.36.3`.
    pub binary: String,
    /// Emulated version, such as `1.36`.
    pub emulation: String,
}

/// Functions behind the endpoints that `enableProfiling` turns on.
#[derive(Clone)]
pub struct Profiling {
    /// Sets the verbosity for `/debug/flags/v`.
    pub set_verbosity: SetVerbosity,
}

/// Gathers the registry of the scheduler's metrics, after the recorders are flushed. `reset` does nothing, because the recorders
/// keep references to their series. After a reset they would go on counting in series that are no longer exported.
impl MetricsSource for Metrics {
    fn gather(&self) -> Vec<MetricFamily> {
        self.flush();
        self.registry().gather()
    }

    fn reset(&self) {}
}

/// A registry whose counts are never reset.
impl MetricsSource for Registry {
    fn gather(&self) -> Vec<MetricFamily> {
        Self::gather(self)
    }

    fn reset(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Point, StatusCode};

    #[test]
    fn buffered_observations_are_gathered() {
        let metrics = Metrics::detached();
        let recorder = metrics.recorder();
        let durations = metrics.plugin_durations("NodeName", Point::Filter);
        recorder.observe(durations.series(StatusCode::Success), 0.1);
        let families = MetricsSource::gather(&*metrics);
        let name = "scheduler_plugin_execution_duration_seconds";
        let family = families.iter().find(|family| family.name() == name).expect("it was observed");
        assert_eq!(family.get_metric()[0].get_histogram().get_sample_count(), 1);
    }
}
