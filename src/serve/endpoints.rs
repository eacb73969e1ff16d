//! What is served, as its owner hands it in.

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

/// Where `/metrics` comes from.
pub trait MetricsSource: Send + Sync {
    /// All families.
    fn gather(&self) -> Vec<MetricFamily>;
    /// Forgets what was counted, as `DELETE` asks for.
    fn reset(&self);
}

/// Sets how much is logged, for as long as the process runs.
pub type SetVerbosity = Arc<dyn Fn(u32) + Send + Sync>;

/// Whether this process leads, and so may say what all pods ask for.
pub type IsLeader = Arc<dyn Fn() -> bool + Send + Sync>;

/// What is served.
pub struct Endpoints {
    /// `/metrics`.
    pub metrics: Arc<dyn MetricsSource>,
    /// Where the server's own metrics go, which count who asks and how long it takes to find out.
    pub registry: Registry,
    /// `/metrics/resources`: the pods.
    pub pods: Lister<Pod>,
    /// `/metrics/resources`, which only a leader has.
    pub is_leader: IsLeader,
    /// `/configz`: what is under `componentconfig`.
    pub config: Value,
    /// `/flagz`: names and values; none if the gate `ComponentFlagz` is off.
    pub flags: Option<BTreeMap<String, String>>,
    /// `/statusz`; none if the gate `ComponentStatusz` is off.
    pub status: Option<Versions>,
    /// Checks of `/healthz`; without any, `ping` is the only one.
    pub healthz: Vec<Arc<dyn HealthCheck>>,
    /// Checks of `/readyz`; without any, `ping` is the only one.
    pub readyz: Vec<Arc<dyn HealthCheck>>,
    /// `/debug/pprof` and `/debug/flags`; neither is served without.
    pub profiling: Option<Profiling>,
    /// When the process was started.
    pub started: Timestamp,
}

/// What `/statusz` says of versions.
#[derive(Clone, Debug)]
pub struct Versions {
    /// What it was built with, where upstream names its Go version.
    pub toolchain: String,
    /// `1.36.3`.
    pub binary: String,
    /// `1.36`.
    pub emulation: String,
}

/// What `enableProfiling` serves.
#[derive(Clone)]
pub struct Profiling {
    /// `/debug/flags/v`.
    pub set_verbosity: SetVerbosity,
}

/// The scheduler's own families and whatever else is in their registry, with what recorders still hold. Nothing is forgotten:
/// whoever counts holds on to series, and would go on counting where nobody looks.
impl MetricsSource for Metrics {
    fn gather(&self) -> Vec<MetricFamily> {
        self.flush();
        self.registry().gather()
    }

    fn reset(&self) {}
}

/// A registry whose counts are never forgotten.
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
    fn what_recorders_hold_is_gathered() {
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
