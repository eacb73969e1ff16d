//! Metrics of leader election. Follows `component-base/metrics/prometheus/clientgo/leaderelection/metrics.go @v1.36.3`.

use prometheus::{Error, IntCounter, IntGauge, Registry};

use super::register::Registrar;
use super::register::Stability::Alpha;

/// Handles of one lease's series.
#[derive(Clone, Debug)]
pub struct ElectionMetrics {
    leads: IntGauge,
    slow: IntCounter,
}

impl ElectionMetrics {
    /// Registers the two families. `name` is the lease's name. Fails if the registry already has one of the families.
    pub fn new(registry: &Registry, name: &str) -> Result<Self, Error> {
        let always = Registrar { registry, enabled: true };
        let help = "Whether this process holds the lease: 1 for the leader, 0 for a standby.";
        let leads = always.gauges(Alpha, "leader_election_master_status", &["name"], help)?;
        let help = "Renewals of the lease that had to read the lease first.";
        let slow = always.counters(Alpha, "leader_election_slowpath_total", &["name"], help)?;
        let leads = leads.with_label_values(&[name]);
        leads.set(0);
        Ok(Self { leads, slow: slow.with_label_values(&[name]) })
    }

    /// Sets whether this process is the leader.
    pub fn leads(&self, leads: bool) {
        self.leads.set(leads.into());
    }

    /// Counts a renewal that had to read the lease first.
    pub fn renewed_slowly(&self) {
        self.slow.inc();
    }
}
