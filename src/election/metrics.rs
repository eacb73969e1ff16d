//! What is counted of an election. Follows `component-base/metrics/prometheus/clientgo/leaderelection/metrics.go @v1.36.3`.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// Handles of one lease's series.
#[derive(Clone, Debug)]
pub struct ElectionMetrics {
    pub(super) leads: IntGauge,
    pub(super) slow: IntCounter,
}

impl ElectionMetrics {
    /// Registers the families. Fails if the registry has one of their names already.
    pub fn new(registry: &Registry, name: &str) -> Result<Self, prometheus::Error> {
        let leads = Opts::new(
            "leader_election_master_status",
            "[ALPHA] Whether this process holds the lease: 1 if it leads, 0 if it stands by.",
        );
        let leads = IntGaugeVec::new(leads, &["name"])?;
        let slow =
            Opts::new("leader_election_slowpath_total", "[ALPHA] Renewals of the lease that had to read it first.");
        let slow = IntCounterVec::new(slow, &["name"])?;
        registry.register(Box::new(leads.clone()))?;
        registry.register(Box::new(slow.clone()))?;
        let leads = leads.with_label_values(&[name]);
        leads.set(0);
        Ok(Self { leads, slow: slow.with_label_values(&[name]) })
    }
}
