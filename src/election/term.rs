//! The term: whether this process is the leader, and until when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Mono};

/// Time after the lease expired for which a leader is still reported healthy.
/// Follows `cmd/kube-scheduler/app/options/options.go#Config`, `client-go/tools/leaderelection/healthzadaptor.go @v1.36.3`.
const TOLERATED: Duration = Duration::from_secs(20);

/// This process's term as the leader. Clones share their state, and reading it takes no lock.
#[derive(Clone)]
pub struct Term(Arc<TermState>);

/// State that the clones of a term share.
struct TermState {
    clock: Clock,
    lease_duration: Duration,
    name: String,
    /// Time until which writes may be sent, in nanoseconds of the clock; 0 if no write may be sent.
    until: AtomicU64,
    /// Time at which this process last observed that it holds the lease, in nanoseconds of the clock; 0 if it does not.
    observed: AtomicU64,
}

impl Term {
    /// Creates a term that has not begun. `name` is the lease's name for health checks.
    pub fn new(clock: Clock, lease_duration: Duration, name: &str) -> Self {
        let (until, observed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(TermState { clock, lease_duration, name: name.to_owned(), until, observed }))
    }

    /// Returns whether the term lasts now. Only then may this process write.
    pub fn lasts(&self) -> bool {
        self.0.clock.now().mono.as_nanos() < self.0.until.load(Ordering::Acquire)
    }

    /// Returns whether this process holds the lease, as far as it has observed.
    pub fn leads(&self) -> bool {
        self.0.observed.load(Ordering::Acquire) > 0
    }

    /// Checks the leader's health. Fails if this process still counts as the leader but has not renewed its lease for too long.
    pub fn check(&self) -> Result<(), String> {
        let observed = self.0.observed.load(Ordering::Acquire);
        let since = self.0.clock.now().mono.since(Mono::from_nanos(observed));
        if observed > 0 && since > self.0.lease_duration + TOLERATED {
            return Err(format!("failed election to renew leadership on lease {}", self.0.name));
        }
        Ok(())
    }

    /// Extends the term after a renewal whose request was sent at `sent` and answered at `seen`.
    pub(super) fn renew(&self, sent: Mono, seen: Mono) {
        self.0.until.store((sent + self.0.lease_duration).as_nanos(), Ordering::Release);
        self.0.observed.store(seen.as_nanos().max(1), Ordering::Release);
    }

    /// Ends the term: from now on this process may not write.
    pub fn end(&self) {
        self.0.until.store(0, Ordering::Release);
    }

    /// Ends the term because this process does not hold the lease any more.
    pub(super) fn lose(&self) {
        self.end();
        self.0.observed.store(0, Ordering::Release);
    }
}
