//! What a lease says.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Who holds a lease, since when and for how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who; empty for nobody.
    pub holder: String,
    /// How many seconds it holds without being renewed.
    pub duration_seconds: i32,
    /// Since when, by the holder's clock.
    pub acquired: Option<Timestamp>,
    /// When it was renewed last, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// How often it went to somebody else.
    pub transitions: i32,
    /// Who should hold it instead, where leaders are chosen together.
    pub preferred_holder: Option<String>,
    /// How they are chosen.
    pub strategy: Option<String>,
}

impl Record {
    /// Reads it from a lease.
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

    /// As it is written into a lease.
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
