//! Leader election on a Lease: one of several schedulers leads, and the others stand by.
//!
//! ```text
//!  Elector ──get, create, update──▶ Lease        every retryPeriod, with jitter until the lease is held
//!     │ begins, renews, ends
//!     ▼
//!   Term ◀── read before each API write (is this process still the leader?) and by health checks
//! ```
//!
//! With coordinated leader election (feature gate `CoordinatedLeaderElection`) the control plane chooses the leader. Each
//! scheduler publishes a `LeaseCandidate` with the version that it emulates, and renews the lease only while the control plane
//! assigns the lease to it:
//!
//! ```text
//!  Candidacy ──create, update──▶ LeaseCandidate ◀──pings── kube-apiserver ──assigns──▶ Lease ◀──get, update── Elector
//! ```
//!
//! Another scheduler takes a lease over after it has observed no change of the lease for `leaseDuration`, by its own clock.
//! A term therefore ends `leaseDuration` after the last successful renewal request was sent. From then on this process writes
//! nothing, even if it was suspended in the meantime and resumes.
//!
//! Follows `client-go/tools/leaderelection/leaderelection.go`, `client-go/tools/leaderelection/leasecandidate.go`,
//! `client-go/tools/leaderelection/resourcelock/leaselock.go @v1.36.3`.

mod candidacy;
mod elector;
mod lease;
mod record;
mod term;
mod watch;

use std::time::Duration;

pub use candidacy::{Candidacy, Versions};
pub use elector::Elector;
pub use lease::LeaseLock;
pub use record::Record;
pub use term::Term;
pub use watch::{CandidateEvent, watch};

use crate::config::LeaderElection;

/// Jitter of acquire retries: a retry waits for `retryPeriod` and up to 1.2 times as much in addition.
/// Follows `client-go/tools/leaderelection/leaderelection.go#JitterFactor @v1.36.3`.
pub const JITTER_FACTOR: f64 = 1.2;

/// Durations of a leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Validity of a lease after its last renewal.
    pub lease_duration: Duration,
    /// Time during which the leader tries to renew the lease before it gives up.
    pub renew_deadline: Duration,
    /// Wait between two attempts.
    pub retry_period: Duration,
}

impl Times {
    /// Checks that the resource lock's kind is `leases`.
    /// Follows `client-go/tools/leaderelection/resourcelock/interface.go#New @v1.36.3`.
    pub fn check_lock(config: &LeaderElection) -> Result<(), String> {
        match config.resource_lock.as_str() {
            "leases" => Ok(()),
            removed @ ("endpoints" | "configmaps" | "endpointsleases" | "configmapsleases") => {
                Err(format!("couldn't create resource lock: {removed} lock is removed, migrate to leases"))
            }
            other => Err(format!("couldn't create resource lock: Invalid lock-type {other}")),
        }
    }

    /// Validates the configuration and reads the durations from it: first the lock's kind, then the durations.
    /// Follows `client-go/tools/leaderelection/leaderelection.go#NewLeaderElector @v1.36.3`.
    pub fn checked(config: &LeaderElection) -> Result<Self, String> {
        Self::check_lock(config)?;
        let elector = |why: &str| Err(format!("couldn't create leader elector: {why}"));
        let [lease, renew, retry] = [config.lease_duration, config.renew_deadline, config.retry_period]
            .map(super::go::duration::GoDuration::as_nanos);
        if lease <= renew {
            return elector("leaseDuration must be greater than renewDeadline");
        }
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as Go computes it")]
        if renew <= (JITTER_FACTOR * retry as f64) as i64 {
            return elector("renewDeadline must be greater than retryPeriod*JitterFactor");
        }
        for (name, nanos) in [("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry)] {
            if nanos < 1 {
                return elector(&format!("{name} must be greater than zero"));
            }
        }
        let [lease_duration, renew_deadline, retry_period] =
            [lease, renew, retry].map(|nanos| Duration::from_nanos(nanos.unsigned_abs()));
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// Returns the timeout of a lease request. Follows `cmd/kube-scheduler/app/options/options.go#makeLeaderElectionConfig`,
    /// `client-go/tools/leaderelection/resourcelock/interface.go#NewFromKubeconfig @v1.36.3`.
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}
