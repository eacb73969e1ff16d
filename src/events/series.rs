//! The task that writes events.k8s.io/v1 events, and merges repeated events into series.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::event::{Event, Series};
use super::once::{SingleEvent, SingleEvents};
use super::sink::{MAX_TRIES, NotWritten, RETRY_WAIT, Sink, Ticket, Verdict};
use crate::client::retry;
use crate::client::retry::Backoff;
use crate::clock::{Mono, Sleep};

/// A series ends after this time without a repetition.
/// Follows `client-go/tools/events/event_broadcaster.go#finishTime @v1.36.3`.
const FINISH: Duration = Duration::from_mins(6);

/// Every series is written again on each fifth tick, which is every 30 minutes, so that the server does not expire it.
/// Follows `client-go/tools/events/event_broadcaster.go#refreshTime @v1.36.3`.
const FINISHES_PER_REFRESH: u64 = 5;

/// Backoff between the attempts to write an event. Each wait is lengthened at random by up to a quarter.
const BACKOFF: Backoff = Backoff { steps: MAX_TRIES, duration: RETRY_WAIT, factor: 1.0, jitter: 0.25 };

/// An entry of the queue between the recorders and the task.
pub(super) type Queued = (Event, Ticket);

/// Writes events, and remembers those of the last minutes. See [`SeriesTask::run`].
pub(super) struct SeriesTask {
    sink: Arc<Sink>,
    queue: mpsc::Receiver<Queued>,
    /// Events that were recorded once in the last minutes.
    once: SingleEvents,
    /// Events that were repeated.
    series: BTreeMap<EventKey, RepeatedEvent>,
    /// Start of the task, from which ticks are counted.
    started: Mono,
    /// Number and timer of the next tick, which looks for ended series. `None` while no event is remembered, so that an idle
    /// task needs no timer.
    tick: Option<(u64, Sleep)>,
}

/// Key of an event, which its repetitions share: 128 bits of hashes over all fields except the name, the time and the note.
/// Follows `client-go/tools/events/event_broadcaster.go#getKey @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventKey(pub(super) [u64; 2]);

/// An event that was repeated, with its series.
struct RepeatedEvent {
    /// Monotonic time of the last repetition.
    last: Mono,
    first: Arc<Event>,
    series: Series,
}

/// Result of a completed write.
enum Done {
    /// An event was written, or a patch of a series that continues.
    Written,
    /// The last patch of a series, which was removed from the task's memory. The series is added again if the result is
    /// [`Verdict::Again`].
    Finished(EventKey, RepeatedEvent, Verdict),
}

type Writes = FuturesUnordered<BoxFuture<'static, Done>>;

impl SeriesTask {
    pub(super) fn new(sink: Arc<Sink>, queue: mpsc::Receiver<Queued>) -> Self {
        let started = sink.rest.clock().mono();
        Self { sink, queue, once: SingleEvents::default(), series: BTreeMap::new(), started, tick: None }
    }

    /// Writes events until every recorder is dropped and the last event is written or given up.
    ///
    /// Events are written concurrently, as fast as the rate limit allows.
    /// Follows `client-go/tools/events/event_broadcaster.go#StartRecordingToSinkWithContext @v1.36.3`.
    pub(super) async fn run(mut self) {
        let mut writes = Writes::new();
        loop {
            self.arm();
            tokio::select! {
                biased;
                Some(done) = writes.next() => self.done(done),
                queued = self.queue.recv() => match queued {
                    Some(queued) => self.observe(queued, &writes),
                    None => break,
                },
                number = next_tick(&mut self.tick) => {
                    self.tick = None;
                    self.finish(&writes);
                    if number % FINISHES_PER_REFRESH == 0 {
                        self.refresh(&writes);
                    }
                }
            }
        }
        while writes.next().await.is_some() {}
    }

    /// Sets the timer for the next tick if any event is remembered.
    fn arm(&mut self) {
        if self.once.is_empty() && self.series.is_empty() {
            self.tick = None;
        } else if self.tick.is_none() {
            let clock = self.sink.rest.clock();
            let number = self.round(clock.mono()) + 1;
            let at = self.started + Duration::from_secs(number.saturating_mul(FINISH.as_secs()));
            self.tick = Some((number, clock.sleep_until(at)));
        }
    }

    /// Returns the number of ticks since the start of the task.
    fn round(&self, now: Mono) -> u64 {
        now.since(self.started).as_secs() / FINISH.as_secs()
    }

    /// Handles a recorded event. A new event is written. Its first repetition starts a series, which is written. Further
    /// repetitions are only counted.
    /// Follows `client-go/tools/events/event_broadcaster.go#recordToSink @v1.36.3`.
    fn observe(&mut self, (event, ticket): Queued, writes: &Writes) {
        let now = self.sink.rest.clock().now();
        let key = EventKey::of(&event);
        if let Some(RepeatedEvent { last, series, .. }) = self.series.get_mut(&key) {
            *last = now.mono;
            series.count = series.count.saturating_add(1);
            series.last_observed_time = now.wall;
            return;
        }
        let known = self.once.take(key, |first| (first.name.to_owned(), first.note.to_owned(), first.time));
        let (event, series) = if let Some((name, note, time)) = known {
            let first = Arc::new(event.into_first(name, note, time));
            let series = Series { count: 2, last_observed_time: now.wall };
            self.series.insert(key, RepeatedEvent { last: now.mono, first: Arc::clone(&first), series });
            (first, Some(series))
        } else {
            let first = SingleEvent { name: &event.name, note: &event.note.note, time: event.time };
            self.once.insert(self.round(now.mono), key, &first);
            (Arc::new(event), None)
        };
        writes.push(Box::pin(record(Arc::clone(&self.sink), event, series, ticket)));
    }

    /// Forgets events without a recent repetition, and writes ended series a last time.
    /// Follows `client-go/tools/events/event_broadcaster.go#finishSeries @v1.36.3`, except that steps of the wall clock have no
    /// effect. Upstream forgets everything when the clock steps forward, and nothing for a while when it steps back.
    fn finish(&mut self, writes: &Writes) {
        let now = self.sink.rest.clock().mono();
        // Events of the round before this tick are not old enough.
        self.once.forget_below(self.round(now).saturating_sub(1));
        let over = now - FINISH;
        for (key, event) in self.series.extract_if(.., |_, event| event.last < over) {
            let (sink, ticket) = (Arc::clone(&self.sink), self.sink.ticket());
            writes.push(Box::pin(async move {
                let result = write(&sink, &event.first, Some(event.series)).await;
                drop(ticket);
                Done::Finished(key, event, result)
            }));
        }
    }

    /// Writes every series again, so that the server does not expire it.
    /// Follows `client-go/tools/events/event_broadcaster.go#refreshExistingEventSeries @v1.36.3`.
    fn refresh(&mut self, writes: &Writes) {
        for event in self.series.values() {
            let (sink, first, ticket) = (Arc::clone(&self.sink), Arc::clone(&event.first), self.sink.ticket());
            let series = event.series;
            writes.push(Box::pin(async move {
                write(&sink, &first, Some(series)).await;
                drop(ticket);
                Done::Written
            }));
        }
    }

    fn done(&mut self, done: Done) {
        // A later tick retries, unless the event was recorded again in the meantime.
        if let Done::Finished(key, event, Verdict::Again) = done
            && !self.once.contains(key)
        {
            self.series.entry(key).or_insert(event);
        }
    }
}

/// Waits for the next tick and returns its number. Never returns if no timer is set.
async fn next_tick(tick: &mut Option<(u64, Sleep)>) -> u64 {
    match tick {
        Some((number, sleep)) => {
            std::pin::Pin::new(sleep).await;
            *number
        }
        None => std::future::pending().await,
    }
}

/// Writes an event, with up to twelve attempts.
/// Follows `client-go/tools/events/event_broadcaster.go#attemptRecording @v1.36.3`.
async fn record(sink: Arc<Sink>, event: Arc<Event>, series: Option<Series>, ticket: Ticket) -> Done {
    let policy = BACKOFF.policy(|| sink.split_rng().unit(), |_: &NotWritten| true);
    let written = retry(sink.rest.clock(), policy, || async { write(&sink, &event, series).await.settled() }).await;
    if written.is_err() {
        tracing::error!(name = event.name, "Unable to write event (retry limit exceeded!)");
    }
    drop(ticket);
    Done::Written
}

async fn write(sink: &Sink, event: &Event, series: Option<Series>) -> Verdict {
    let patch = series.map(Series::patch_body);
    sink.write(event.regarding.event_namespace(), &event.name, patch, || event.create_body(series)).await
}

impl EventKey {
    fn of(event: &Event) -> Self {
        Self([0_u64, 1].map(|salt| {
            // DefaultHasher::new has fixed keys, so the hash is the same in every run.
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            (&event.regarding, &event.related, event.note.kind).hash(&mut hasher);
            (&event.note.reason, &event.note.action, &event.controller, &event.instance).hash(&mut hasher);
            hasher.finish()
        }))
    }
}
