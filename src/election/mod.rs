//! Leader election on a Lease: of several schedulers one schedules, and the others wait.
//!
//! ```text
//!  Elector ──get, create, update──▶ Lease        every retryPeriod, with jitter until it is held
//!     │ tells
//!     ▼
//!   Term ◀── asked before each write (may it be sent?), by health checks, by who serves metrics of the leader
//! ```
//!
//! Where leaders are chosen by the control plane (feature gate `CoordinatedLeaderElection`), each scheduler says in a
//! `LeaseCandidate` that it is there and which version it emulates, and keeps the lease only while it is given it:
//!
//! ```text
//!  Candidacy ──create, update──▶ LeaseCandidate ◀──pings── kube-apiserver ──gives──▶ Lease ◀──get, update── Elector
//! ```
//!
//! Others take a lease over when they have not seen it change for its duration, by their own clock. So a term is over
//! `leaseDuration` after the request was sent that renewed it last: from then on nothing is written any more, also by a process
//! that was stopped in the meantime and goes on.
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
pub use watch::{CandidateChange, watch};

use crate::config::LeaderElection;

/// Retries wait for up to 1 + 1.2 times their period. Follows `client-go/tools/leaderelection/leaderelection.go#JitterFactor
/// @v1.36.3`.
pub const JITTER_FACTOR: f64 = 1.2;

/// The times of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a lease holds that is not renewed.
    pub lease_duration: Duration,
    /// How long its holder tries to renew it.
    pub renew_deadline: Duration,
    /// Between two tries.
    pub retry_period: Duration,
}

impl Times {
    /// Checks the lock's kind. Follows `client-go/tools/leaderelection/resourcelock/interface.go#New @v1.36.3`.
    pub fn check_lock(config: &LeaderElection) -> Result<(), String> {
        match config.resource_lock.as_str() {
            "leases" => Ok(()),
            removed @ ("endpoints" | "configmaps" | "endpointsleases" | "configmapsleases") => {
                Err(format!("couldn't create resource lock: {removed} lock is removed, migrate to leases"))
            }
            other => Err(format!("couldn't create resource lock: Invalid lock-type {other}")),
        }
    }

    /// Checks what is configured: the lock's kind, then the times.
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

    /// How long a request may take. Follows `cmd/kube-scheduler/app/options/options.go#makeLeaderElectionConfig`,
    /// `client-go/tools/leaderelection/resourcelock/interface.go#NewFromKubeconfig @v1.36.3`.
    pub fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }
}
