//! Acquires a lease and renews it.

use std::pin::pin;
use std::time::Duration;

use tracing::{debug, error, info};

use super::lease::LeaseLock;
use super::record::Record;
use super::term::Term;
use super::{JITTER_FACTOR, Times};
use crate::client::ApiError;
use crate::clock::{Clock, Mono, Now, Rng};
use crate::events::{EventNote, EventRecorder, EventType};
use crate::metrics::ElectionMetrics;

/// Acquires and renews a lease on behalf of this process.
pub struct Elector {
    lock: LeaseLock,
    identity: String,
    times: Times,
    term: Term,
    clock: Clock,
    rng: Rng,
    recorder: EventRecorder,
    metrics: ElectionMetrics,
    /// Record of the lease at its last observed change.
    observed: Record,
    /// Time at which the last change was observed.
    observed_at: Mono,
    /// Record that was last read. A read that differs from it is a change.
    read: Option<Record>,
    /// Whether the control plane chooses the holder (coordinated leader election).
    is_coordinated: bool,
    /// Whether this process reported that it leads, and has not reported that it stopped.
    leads: bool,
}

impl Elector {
    /// Creates an elector with this identity. The requests of `lock` must be sent even when `term` is over.
    #[expect(clippy::too_many_arguments, reason = "each argument is a separate part of the process")]
    pub fn new(
        lock: LeaseLock,
        identity: String,
        times: Times,
        term: Term,
        clock: Clock,
        rng: Rng,
        recorder: EventRecorder,
        metrics: ElectionMetrics,
    ) -> Self {
        Self {
            lock,
            identity,
            times,
            term,
            clock,
            rng,
            recorder,
            metrics,
            observed: Record::default(),
            observed_at: Mono::ZERO,
            read: None,
            is_coordinated: false,
            leads: false,
        }
    }

    /// Switches to coordinated leader election: the elector never takes the lease by itself. It renews the lease that the control
    /// plane assigned to it, until the lease has a preferred holder. See [`Candidacy`](super::Candidacy).
    #[must_use]
    pub fn coordinated(mut self) -> Self {
        self.is_coordinated = true;
        self
    }

    /// Tries to acquire the lease until it succeeds or `stop` is ready; returns the output of `stop` as the error.
    ///
    /// If a write is in flight when `stop` is ready, its response is awaited. The write may make this process the leader: then
    /// [`Self::leads`] is true, and [`Self::release`] gives the lease up. Follows
    /// `client-go/tools/leaderelection/leaderelection.go#acquire @v1.36.3`, except that upstream abandons such a write, and may
    /// leave the lease acquired.
    pub async fn acquire<T>(&mut self, stop: impl Future<Output = T>) -> Result<(), T> {
        let lock = self.lock.described();
        let (clock, write_in_flight) = (self.clock.clone(), self.lock.write_in_flight());
        let mut stop = pin!(stop);
        info!(lock, "Attempting to acquire leader lease...");
        loop {
            let (has_won, end) = {
                let mut attempt = pin!(self.try_once());
                tokio::select! {
                    biased;
                    end = &mut stop => (write_in_flight.get() && attempt.await, Some(end)),
                    has_won = &mut attempt => (has_won, None),
                }
            };
            if has_won {
                self.leads = true;
                self.record("became leader");
                self.metrics.leads(true);
                info!(lock, "Successfully acquired lease");
            }
            match end {
                Some(end) => return Err(end),
                None if has_won => return Ok(()),
                None => debug!(lock, "Failed to acquire lease"),
            }
            let jitter = self.times.retry_period.mul_f64(self.rng.unit() * JITTER_FACTOR);
            tokio::select! {
                biased;
                end = &mut stop => return Err(end),
                () = clock.sleep(self.times.retry_period + jitter) => {}
            }
        }
    }

    /// Returns the identity of this process in the lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns whether this process acquired the lease and has neither lost nor released it.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// Renews the lease, and returns once renewals have failed for `renewDeadline`. This process may still hold the lease then,
    /// so the caller has to call [`Self::release`]. Follows `client-go/tools/leaderelection/leaderelection.go#renew @v1.36.3`.
    pub async fn renew(&mut self) {
        loop {
            let deadline = self.clock.now().mono + self.times.renew_deadline;
            let clock = self.clock.clone();
            if clock.timeout_at(deadline, self.renew_once()).await.is_err() {
                break;
            }
            clock.sleep(self.times.retry_period).await;
        }
        info!(lock = self.lock.described(), err = "context deadline exceeded", "Failed to renew lease");
        self.stop_leading();
    }

    /// Releases the lease if this process holds it, so that the next leader need not wait until it expires. Call this once this
    /// process writes nothing any more. Follows `client-go/tools/leaderelection/leaderelection.go#release @v1.36.3`, except
    /// that upstream does not check that the lease it has just read is its own.
    pub async fn release(&mut self) {
        self.term.end();
        let clock = self.clock.clone();
        let deadline = clock.now().mono + self.times.renew_deadline;
        match clock.timeout_at(deadline, Box::pin(self.try_release())).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) if why.is_not_found() => info!(lock = self.lock.described(), "lease lock not found"),
            Ok(Err(why)) => error!(lock = self.lock.described(), err = %why, "Failed to release lease"),
            Err(why) => error!(lock = self.lock.described(), err = %why, "Failed to release lease"),
        }
        self.stop_leading();
    }

    async fn try_release(&mut self) -> Result<(), ApiError> {
        loop {
            let old = self.lock.get().await?;
            if old.holder != self.identity {
                return Ok(());
            }
            let (now, transitions) = (Some(self.clock.now().wall), old.transitions);
            let record = Record { duration_seconds: 1, acquired: now, renewed: now, transitions, ..Record::default() };
            match self.lock.update(&record).await {
                // A renewal that had timed out here was applied in the meantime. Reads the lease again.
                Err(why) if why.is_conflict() => {}
                done => return done,
            }
        }
    }

    fn stop_leading(&mut self) {
        self.term.lose();
        if std::mem::take(&mut self.leads) {
            self.metrics.leads(false);
            self.record("stopped leading");
        }
    }

    async fn renew_once(&mut self) {
        while !self.try_once().await {
            self.clock.sleep(self.times.retry_period).await;
        }
    }

    /// Makes one attempt to acquire or renew the lease. Returns whether it succeeded.
    async fn try_once(&mut self) -> bool {
        let now = self.clock.now();
        let record = Record {
            holder: self.identity.clone(),
            duration_seconds: i32::try_from(self.times.lease_duration.as_secs()).unwrap_or(i32::MAX),
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            ..Record::default()
        };
        // Boxed, because these futures are large and would be stored inside each future that awaits an attempt.
        if self.is_coordinated {
            Box::pin(self.renew_assigned(now, record)).await
        } else {
            Box::pin(self.acquire_or_renew(now, record)).await
        }
    }

    /// Renews the lease if the control plane assigned it to this process and prefers no other holder.
    /// Follows `client-go/tools/leaderelection/leaderelection.go#tryCoordinatedRenew @v1.36.3`.
    async fn renew_assigned(&mut self, now: Now, mut record: Record) -> bool {
        let old = match self.lock.get().await {
            Ok(old) => old,
            Err(why) if why.is_not_found() => {
                info!(lock = self.lock.described(), err = %why, "Lease lock not found");
                return false;
            }
            Err(why) => return self.failed("Error retrieving lease lock", &why),
        };
        self.has_read(&old);
        if self.expires_at() < now.mono {
            info!(lock = self.lock.described(), "Lease has expired");
            return false;
        }
        if !self.is_mine() {
            debug!(lock = self.lock.described(), holder = old.holder, "Lease is held and has not yet expired");
            return false;
        }
        if old.preferred_holder.is_some() {
            debug!(lock = self.lock.described(), "Lease is marked as 'end of term'");
            return false;
        }
        (record.acquired, record.transitions, record.strategy) = (old.acquired, old.transitions, old.strategy);
        self.metrics.renewed_slowly();
        match self.lock.update(&record).await {
            // The control plane judges expiry by the renew time in the lease, so the term counts from that time.
            Ok(()) => self.won(record, now.mono),
            Err(why) => self.failed("Failed to update lock", &why),
        }
    }

    /// Renews the lease, or acquires it if it has no holder or has expired. Follows
    /// `client-go/tools/leaderelection/leaderelection.go#tryAcquireOrRenew @v1.36.3`.
    async fn acquire_or_renew(&mut self, now: Now, mut record: Record) -> bool {
        if self.is_mine() && self.is_valid(now.mono) {
            record.acquired = self.observed.acquired;
            record.transitions = self.observed.transitions;
            match self.lock.update(&record).await {
                Ok(()) => return self.won(record, now.mono),
                Err(why) => debug!(
                    lock = self.lock.described(), err = %why,
                    "Failed to update lease optimistically, falling back to slow path"
                ),
            }
        }
        let old = match self.lock.get().await {
            Ok(old) => old,
            Err(why) if why.is_not_found() => match self.lock.create(&record).await {
                Ok(()) => return self.won(record, now.mono),
                Err(why) => return self.failed("Error initially creating lease lock", &why),
            },
            Err(why) => return self.failed("Error retrieving lease lock", &why),
        };
        self.has_read(&old);
        if !old.holder.is_empty() && self.is_valid(now.mono) && !self.is_mine() {
            debug!(lock = self.lock.described(), holder = old.holder, "Lease is held by and has not yet expired");
            return false;
        }
        if self.is_mine() {
            record.acquired = old.acquired;
            record.transitions = old.transitions;
            self.metrics.renewed_slowly();
        } else {
            record.transitions = old.transitions + 1;
        }
        // The term counts from the update request, which is sent next, not from the read before it.
        let sent = self.clock.now().mono;
        match self.lock.update(&record).await {
            Ok(()) => self.won(record, sent),
            Err(why) => self.failed("Failed to update lease", &why),
        }
    }

    fn won(&mut self, record: Record, sent: Mono) -> bool {
        self.observe(record);
        self.term.renew(sent, self.observed_at);
        true
    }

    fn failed(&self, what: &str, why: &ApiError) -> bool {
        error!(lock = self.lock.described(), err = %why, "{what}");
        false
    }

    fn has_read(&mut self, record: &Record) {
        if self.read.as_ref() != Some(record) {
            self.observe(record.clone());
            self.read = Some(record.clone());
        }
    }

    fn observe(&mut self, record: Record) {
        if record.holder != self.observed.holder && !record.holder.is_empty() {
            info!(lock = self.lock.described(), leader = record.holder, "New leader observed");
        }
        self.observed = record;
        self.observed_at = self.clock.now().mono;
        if !self.is_mine() {
            self.term.lose();
        }
    }

    fn is_mine(&self) -> bool {
        self.observed.holder == self.identity
    }

    fn is_valid(&self, now: Mono) -> bool {
        self.expires_at() > now
    }

    /// Returns the time at which the lease expires by this process's clock, counted from its last observed change.
    fn expires_at(&self) -> Mono {
        let seconds = u64::try_from(self.observed.duration_seconds).unwrap_or(0);
        self.observed_at + Duration::from_secs(seconds)
    }

    fn record(&self, what: &str) {
        let note = EventNote {
            kind: EventType::Normal,
            reason: "LeaderElection".into(),
            action: "".into(),
            note: format!("{} {what}", self.identity),
        };
        self.recorder.record(self.lock.reference(), None, note);
    }
}
