//! What is counted of an election. Follows `component-base/metrics/prometheus/clientgo/leaderelection/metrics.go @v1.36.3`.

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
    /// Registers the families. Fails if the registry has one of their names already.
    pub fn new(registry: &Registry, name: &str) -> Result<Self, Error> {
        let always = Registrar { registry, enabled: true };
        let help = "Whether this process holds the lease: 1 if it leads, 0 if it stands by.";
        let leads = always.gauges(Alpha, "leader_election_master_status", &["name"], help)?;
        let help = "Renewals of the lease that had to read it first.";
        let slow = always.counters(Alpha, "leader_election_slowpath_total", &["name"], help)?;
        let leads = leads.with_label_values(&[name]);
        leads.set(0);
        Ok(Self { leads, slow: slow.with_label_values(&[name]) })
    }

    /// This process leads, or does not any more.
    pub fn leads(&self, leads: bool) {
        self.leads.set(leads.into());
    }

    /// The lease was renewed, but had to be read first.
    pub fn renewed_slowly(&self) {
        self.slow.inc();
    }
}
