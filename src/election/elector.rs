//! Gets a lease, and keeps it.

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

/// A candidate.
pub struct Elector {
    lock: LeaseLock,
    identity: String,
    times: Times,
    term: Term,
    clock: Clock,
    rng: Rng,
    recorder: EventRecorder,
    metrics: ElectionMetrics,
    /// What the lease said when it was last seen to change, and when that was.
    observed: Record,
    observed_at: Mono,
    /// What it said when it was last read, which is compared to tell whether it has changed.
    read: Option<Record>,
    /// Whether somebody else chooses who holds it.
    is_coordinated: bool,
    /// Whether it was said that this one leads, and not yet that it does no more.
    leads: bool,
}

impl Elector {
    /// A candidate of this name. Its requests must not depend on `term`.
    #[expect(clippy::too_many_arguments, reason = "each is another part of the process")]
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

    /// The same candidate where the control plane chooses who holds the lease: it takes none, and keeps what it is given
    /// until somebody else is preferred. See [`Candidacy`](super::Candidacy).
    #[must_use]
    pub fn coordinated(mut self) -> Self {
        self.is_coordinated = true;
        self
    }

    /// Tries until the lease is this candidate's, or until it is `told` to stop. A write that is on its way then is waited
    /// for: it may make this one the leader, which [`Self::leads`] tells, and [`Self::release`] undoes. Follows
    /// `client-go/tools/leaderelection/leaderelection.go#acquire @v1.36.3`, which gives such a write up and leaves the lease
    /// as it may be.
    pub async fn acquire<T>(&mut self, told: impl Future<Output = T>) -> Result<(), T> {
        let lock = self.lock.described();
        let (clock, writes) = (self.clock.clone(), self.lock.writes());
        let mut told = pin!(told);
        info!(lock, "Attempting to acquire leader lease...");
        loop {
            let (has_won, end) = {
                let mut attempt = pin!(self.try_once());
                tokio::select! {
                    biased;
                    end = &mut told => (writes.is_on_its_way() && attempt.await, Some(end)),
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
                end = &mut told => return Err(end),
                () = clock.sleep(self.times.retry_period + jitter) => {}
            }
        }
    }

    /// What it is called in the lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether it has the lease, and has not lost it nor given it up.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// Renews the lease; returns once that has failed for the time that there is. The lease may be this candidate's still:
    /// [`Self::release`] is next. Follows `client-go/tools/leaderelection/leaderelection.go#renew @v1.36.3`.
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

    /// Gives the lease up if it is this candidate's, so that the next one need not wait for it to run out. For when nobody
    /// writes any more. Follows `client-go/tools/leaderelection/leaderelection.go#release @v1.36.3`, which does not look
    /// whose lease it has just read.
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
                // A renewal that was given up has come through in between.
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

    /// One attempt to get the lease or to keep it.
    async fn try_once(&mut self) -> bool {
        let now = self.clock.now();
        let record = Record {
            holder: self.identity.clone(),
            duration_seconds: i32::try_from(self.times.lease_duration.as_secs()).unwrap_or(i32::MAX),
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            ..Record::default()
        };
        // Boxed, since their requests are large and an attempt is part of whatever waits for it.
        if self.is_coordinated {
            Box::pin(self.keep(now, record)).await
        } else {
            Box::pin(self.take_or_keep(now, record)).await
        }
    }

    /// Renews the lease if it was given to this candidate, and nobody else should have it.
    /// Follows `client-go/tools/leaderelection/leaderelection.go#tryCoordinatedRenew @v1.36.3`.
    async fn keep(&mut self, now: Now, mut record: Record) -> bool {
        let old = match self.lock.get().await {
            Ok(old) => old,
            Err(why) if why.is_not_found() => {
                info!(lock = self.lock.described(), err = %why, "Lease lock not found");
                return false;
            }
            Err(why) => return self.failed("Error retrieving lease lock", &why),
        };
        self.has_read(&old);
        if self.runs_out() < now.mono {
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
            // Who chooses goes by the time that stands in the lease.
            Ok(()) => self.won(record, now.mono),
            Err(why) => self.failed("Failed to update lock", &why),
        }
    }

    /// Renews the lease, or takes it if nobody holds it. Follows
    /// `client-go/tools/leaderelection/leaderelection.go#tryAcquireOrRenew @v1.36.3`.
    async fn take_or_keep(&mut self, now: Now, mut record: Record) -> bool {
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
        // The term counts from the request that makes it last, not from the one that has looked.
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
        self.runs_out() > now
    }

    /// Until when the lease holds: by this clock, from when it was last seen to change.
    fn runs_out(&self) -> Mono {
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
