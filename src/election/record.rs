//! The election record in a lease's spec.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Election record of a lease: the holder and the times of its term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Identity of the holder; empty if the lease is released.
    pub holder: String,
    /// Seconds for which the lease is valid after its last renewal.
    pub duration_seconds: i32,
    /// Time at which the holder acquired the lease, by the holder's clock.
    pub acquired: Option<Timestamp>,
    /// Time of the last renewal, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// Number of changes of the holder.
    pub transitions: i32,
    /// Identity that should hold the lease instead. Set by coordinated leader election only.
    pub preferred_holder: Option<String>,
    /// Strategy of coordinated leader election.
    pub strategy: Option<String>,
}

impl Record {
    /// Reads the record from a lease's spec.
    pub fn of(spec: &LeaseSpec) -> Self {
        Self {
            holder: spec.holder_identity.clone().unwrap_or_default(),
            duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquired: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
            preferred_holder: spec.preferred_holder.clone().filter(|holder| !holder.is_empty()),
            strategy: spec.strategy.clone().filter(|strategy| !strategy.is_empty()),
        }
    }

    /// Returns the lease spec that holds the record.
    pub fn spec(&self) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(self.duration_seconds),
            acquire_time: self.acquired.map(MicroTime),
            renew_time: self.renewed.map(MicroTime),
            lease_transitions: Some(self.transitions),
            preferred_holder: self.preferred_holder.clone(),
            strategy: self.strategy.clone(),
        }
    }
}
