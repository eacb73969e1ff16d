//! The task that writes events.k8s.io/v1 events, and knows which repeat one another.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;

use super::event::{Event, Series};
use super::once::{First, Once};
use super::sink::{MAX_TRIES, NotWritten, RETRY_WAIT, Sink, Ticket, Verdict};
use crate::client::retry;
use crate::client::retry::Backoff;
use crate::clock::{Mono, Sleep};

/// A series that was not repeated for this long is over. Follows `client-go/tools/events/event_broadcaster.go#finishTime @v1.36.3`.
const FINISH: Duration = Duration::from_mins(6);

/// How often a series is written again so that it does not expire: every fifth time that ends are looked for, which is every
/// 30 minutes. Follows `client-go/tools/events/event_broadcaster.go#refreshTime @v1.36.3`.
const FINISHES_PER_REFRESH: u64 = 5;

/// Attempts to write an event, and the waits in between, of which up to a quarter is added.
const BACKOFF: Backoff = Backoff { steps: MAX_TRIES, duration: RETRY_WAIT, factor: 1.0, jitter: 0.25 };

/// What the recorders put into the queue.
pub(super) type Queued = (Event, Ticket);

/// Owns the events of the last minutes, and writes. See [`SeriesTask::run`].
pub(super) struct SeriesTask {
    sink: Arc<Sink>,
    queue: mpsc::Receiver<Queued>,
    /// What was recorded once in the last minutes.
    once: Once,
    /// What was recorded again, by what makes another one its repetition.
    series: BTreeMap<Identity, Repeated>,
    /// Ticks are counted from here.
    started: Mono,
    /// The next look for series that are over; none while nothing is remembered, so that idle time needs no timer.
    tick: Option<(u64, Sleep)>,
}

/// What makes an event another one's repetition, which is all but the name, the time and the note, as 128 bits of hashes.
/// Follows `client-go/tools/events/event_broadcaster.go#getKey @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(pub(super) [u64; 2]);

/// A series of events.
struct Repeated {
    /// When it was seen last, by the clock that does not step.
    last: Mono,
    first: Arc<Event>,
    series: Series,
}

/// A write that ended.
enum Done {
    /// An event, or its series' first patch.
    Written,
    /// The last patch of a series, which is remembered no more; `Again` if it must come back.
    Finished(Identity, Repeated, Verdict),
}

type Writes = FuturesUnordered<BoxFuture<'static, Done>>;

impl SeriesTask {
    pub(super) fn new(sink: Arc<Sink>, queue: mpsc::Receiver<Queued>) -> Self {
        let started = sink.rest.clock().mono();
        Self { sink, queue, once: Once::default(), series: BTreeMap::new(), started, tick: None }
    }

    /// Writes events until every recorder is gone and the last event has been settled.
    ///
    /// Each event is written by itself, as many at a time as the rate limit lets through.
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

    /// Sets the timer for the next tick, if there is anything to look at.
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

    /// How many ticks there have been.
    fn round(&self, now: Mono) -> u64 {
        now.since(self.started).as_secs() / FINISH.as_secs()
    }

    /// A new event is written; its first repetition makes it a series, which is written; further ones are counted.
    /// Follows `client-go/tools/events/event_broadcaster.go#recordToSink @v1.36.3`.
    fn observe(&mut self, (event, ticket): Queued, writes: &Writes) {
        let now = self.sink.rest.clock().now();
        let identity = Identity::of(&event);
        if let Some(Repeated { last, series, .. }) = self.series.get_mut(&identity) {
            *last = now.mono;
            series.count = series.count.saturating_add(1);
            series.last_observed_time = now.wall;
            return;
        }
        let known = self.once.take(identity, |first| (first.name.to_owned(), first.note.to_owned(), first.time));
        let (event, series) = if let Some((name, note, time)) = known {
            let first = Arc::new(event.into_first(name, note, time));
            let series = Series { count: 2, last_observed_time: now.wall };
            self.series.insert(identity, Repeated { last: now.mono, first: Arc::clone(&first), series });
            (first, Some(series))
        } else {
            let first = First { name: &event.name, note: &event.said.note, time: event.time };
            self.once.insert(self.round(now.mono), identity, &first);
            (Arc::new(event), None)
        };
        writes.push(Box::pin(record(Arc::clone(&self.sink), event, series, ticket)));
    }

    /// Forgets what was not repeated for a while; a series is written a last time.
    /// Follows `client-go/tools/events/event_broadcaster.go#finishSeries @v1.36.3`, but for a clock that steps: upstream's then
    /// forgets all at once, or nothing for as long as the clock went back.
    fn finish(&mut self, writes: &Writes) {
        let now = self.sink.rest.clock().mono();
        // What came in the round before this tick is not old enough.
        self.once.forget_below(self.round(now).saturating_sub(1));
        let over = now - FINISH;
        for (identity, event) in self.series.extract_if(.., |_, event| event.last < over) {
            let (sink, ticket) = (Arc::clone(&self.sink), self.sink.ticket());
            writes.push(Box::pin(async move {
                let verdict = write(&sink, &event.first, Some(event.series)).await;
                drop(ticket);
                Done::Finished(identity, event, verdict)
            }));
        }
    }

    /// Writes every series, so that the server keeps it.
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
        // A later tick tries again, unless the event began anew.
        if let Done::Finished(identity, event, Verdict::Again) = done
            && !self.once.contains(identity)
        {
            self.series.entry(identity).or_insert(event);
        }
    }
}

/// The number of the tick that the timer was set for, when it comes.
async fn next_tick(tick: &mut Option<(u64, Sleep)>) -> u64 {
    match tick {
        Some((number, sleep)) => {
            std::pin::Pin::new(sleep).await;
            *number
        }
        None => std::future::pending().await,
    }
}

/// Writes an event, up to twelve times. Follows `client-go/tools/events/event_broadcaster.go#attemptRecording @v1.36.3`.
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

impl Identity {
    fn of(event: &Event) -> Self {
        Self([0_u64, 1].map(|salt| {
            // Its keys are fixed.
            let mut hasher = DefaultHasher::new();
            salt.hash(&mut hasher);
            (&event.regarding, &event.related, event.said.kind).hash(&mut hasher);
            (&event.said.reason, &event.said.action, &event.controller, &event.instance).hash(&mut hasher);
            hasher.finish()
        }))
    }
}
