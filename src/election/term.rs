//! Whether this process leads, and until when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Clock, Mono};

/// How long after its lease has run out a leader is still called healthy.
/// Follows `cmd/kube-scheduler/app/options/options.go#Config`, `client-go/tools/leaderelection/healthzadaptor.go @v1.36.3`.
const TOLERATED: Duration = Duration::from_secs(20);

/// The term of office. Clones share it; reading it takes no lock.
#[derive(Clone)]
pub struct Term(Arc<TermState>);

/// State that the clones of a term share.
struct TermState {
    clock: Clock,
    lease_duration: Duration,
    name: String,
    /// Until when writes may be sent, in nanoseconds of the clock; 0 for not at all.
    until: AtomicU64,
    /// When the lease was last seen to be this process's, in nanoseconds of the clock; 0 for never, or not any more.
    observed: AtomicU64,
}

impl Term {
    /// One that has not begun, of the election of this name.
    pub fn new(clock: Clock, lease_duration: Duration, name: &str) -> Self {
        let (until, observed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(TermState { clock, lease_duration, name: name.to_owned(), until, observed }))
    }

    /// Whether it lasts at this moment: only then may anything be written.
    pub fn lasts(&self) -> bool {
        self.0.clock.now().mono.as_nanos() < self.0.until.load(Ordering::Acquire)
    }

    /// Whether this process holds the lease, as far as it knows.
    pub fn leads(&self) -> bool {
        self.0.observed.load(Ordering::Acquire) > 0
    }

    /// Why a leader is not healthy: it has not seen its lease renewed for too long, and has not noticed.
    pub fn check(&self) -> Result<(), String> {
        let observed = self.0.observed.load(Ordering::Acquire);
        let since = self.0.clock.now().mono.since(Mono::from_nanos(observed));
        if observed > 0 && since > self.0.lease_duration + TOLERATED {
            return Err(format!("failed election to renew leadership on lease {}", self.0.name));
        }
        Ok(())
    }

    /// The lease was renewed by a request that was sent at `sent` and answered at `seen`.
    pub(super) fn renew(&self, sent: Mono, seen: Mono) {
        self.0.until.store((sent + self.0.lease_duration).as_nanos(), Ordering::Release);
        self.0.observed.store(seen.as_nanos().max(1), Ordering::Release);
    }

    /// Nothing may be written any more.
    pub fn end(&self) {
        self.0.until.store(0, Ordering::Release);
    }

    /// Somebody else holds the lease, or nobody.
    pub(super) fn lose(&self) {
        self.end();
        self.0.observed.store(0, Ordering::Release);
    }
}
