//! What is served, as its owner hands it in.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus::Registry;
use prometheus::proto::MetricFamily;
use serde_json::Value;

use super::health::HealthCheck;
use crate::listers::Listers;

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
    pub listers: Arc<Listers>,
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

/// A registry whose counts are never forgotten.
impl MetricsSource for Registry {
    fn gather(&self) -> Vec<MetricFamily> {
        Self::gather(self)
    }

    fn reset(&self) {}
}
