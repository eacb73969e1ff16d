//! Gets a lease, and keeps it.

use std::time::Duration;

use tracing::{debug, error, info};

use super::lease::LeaseLock;
use super::record::Record;
use super::term::Term;
use super::{JITTER_FACTOR, Times};
use crate::clock::{Clock, Mono, Rng};
use crate::dispatcher::ApiError;
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
        let (observed, observed_at) = (Record::default(), Mono::ZERO);
        Self { lock, identity, times, term, clock, rng, recorder, metrics, observed, observed_at, read: None }
    }

    /// Tries until the lease is this candidate's. Dropping the future gives up; nothing has to be undone then.
    /// Follows `leaderelection.go#acquire @v1.36.3`.
    pub async fn acquire(&mut self) {
        let lock = self.lock.described();
        info!(lock, "Attempting to acquire leader lease...");
        while !self.try_once().await {
            debug!(lock, "Failed to acquire lease");
            let jitter = self.times.retry_period.mul_f64(self.rng.unit() * JITTER_FACTOR);
            self.clock.sleep(self.times.retry_period + jitter).await;
        }
        self.record("became leader");
        self.metrics.leads(true);
        info!(lock, "Successfully acquired lease");
    }

    /// Renews the lease; returns once that has failed for the time that there is. Follows `leaderelection.go#renew @v1.36.3`.
    pub async fn renew(&mut self) {
        loop {
            let deadline = self.clock.now().mono + self.times.renew_deadline;
            let clock = self.clock.clone();
            if clock.timeout_at(deadline, self.renew_once()).await.is_err() {
                break;
            }
            clock.sleep(self.times.retry_period).await;
        }
        self.term.lose();
        self.metrics.leads(false);
        info!(lock = self.lock.described(), err = "context deadline exceeded", "Failed to renew lease");
        self.record("stopped leading");
    }

    /// Gives the lease up, so that the next one need not wait for it to run out.
    /// Follows `leaderelection.go#release @v1.36.3`.
    pub async fn release(&mut self) {
        self.term.end();
        let clock = self.clock.clone();
        let deadline = clock.now().mono + self.times.renew_deadline;
        let released: Result<Result<(), ApiError>, _> = clock
            .timeout_at(deadline, async {
                let old = self.lock.get().await?;
                if self.observed.holder != self.identity {
                    return Ok(());
                }
                let now = Some(clock.now().wall);
                let transitions = old.transitions;
                let record =
                    Record { duration_seconds: 1, acquired: now, renewed: now, transitions, ..Record::default() };
                self.lock.update(&record).await
            })
            .await;
        match released {
            Ok(Ok(())) => {}
            Ok(Err(why)) => error!(lock = self.lock.described(), err = %why, "Failed to release lease"),
            Err(why) => error!(lock = self.lock.described(), err = %why, "Failed to release lease"),
        }
        self.term.lose();
        self.metrics.leads(false);
        self.record("stopped leading");
    }

    async fn renew_once(&mut self) {
        while !self.try_once().await {
            self.clock.sleep(self.times.retry_period).await;
        }
    }

    /// One attempt to get the lease or to keep it. Follows `leaderelection.go#tryAcquireOrRenew @v1.36.3`.
    async fn try_once(&mut self) -> bool {
        let now = self.clock.now();
        let mut record = Record {
            holder: self.identity.clone(),
            duration_seconds: i32::try_from(self.times.lease_duration.as_secs()).unwrap_or(i32::MAX),
            acquired: Some(now.wall),
            renewed: Some(now.wall),
            ..Record::default()
        };
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
        if self.read.as_ref() != Some(&old) {
            self.observe(old.clone());
            self.read = Some(old.clone());
        }
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

    /// Whether the lease still holds: by this clock, from when it was last seen to change.
    fn is_valid(&self, now: Mono) -> bool {
        let seconds = u64::try_from(self.observed.duration_seconds).unwrap_or(0);
        self.observed_at + Duration::from_secs(seconds) > now
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
