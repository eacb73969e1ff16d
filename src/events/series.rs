//! The task that writes events.k8s.io/v1 events, and knows which repeat one another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::event::{Event, Series};
use super::sink::{MAX_TRIES, RETRY_WAIT, Sink, Ticket, Verdict};
use crate::clock::{Mono, Sleep};
use crate::dispatcher::retry::jitter;

/// A series that was not repeated for this long is over. Follows `client-go/tools/events/event_broadcaster.go#finishTime @v1.36.3`.
const FINISH: Duration = Duration::from_mins(6);

/// How often a series is written again so that it does not expire: every fifth time that ends are looked for, which is every
/// 30 minutes. Follows `client-go/tools/events/event_broadcaster.go#refreshTime @v1.36.3`.
const FINISHES_PER_REFRESH: u64 = 5;

/// At most this share of the wait is added to it.
const RETRY_JITTER: f64 = 0.25;

/// What the recorders put into the queue.
pub(super) type Queued = (Event, Ticket);

/// Owns the events of the last minutes, and writes. See [`SeriesTask::run`].
pub(super) struct SeriesTask {
    sink: Arc<Sink>,
    queue: mpsc::Receiver<Queued>,
    /// The events of the last minutes by what makes another one their repetition.
    cache: BTreeMap<Identity, Remembered>,
    /// Ticks are counted from here.
    started: Mono,
    /// The next look for series that are over; none while the cache is empty, so that idle time needs no timer.
    tick: Option<(u64, Sleep)>,
}

/// What makes an event another one's repetition, which is all but the name, the time and the note, as 128 bits of hashes.
/// Follows `client-go/tools/events/event_broadcaster.go#getKey @v1.36.3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity([u64; 2]);

/// An event of the last minutes. There is one for every pod that was bound, so it is small.
struct Remembered {
    /// When it was seen last, by the clock that does not step.
    last: Mono,
    what: What,
}

enum What {
    /// It came once: what its repetition would not say, too, which are its name, up to the first line break, and its note.
    Once { text: Box<str>, time: Timestamp },
    /// The first event of a series.
    Series(Arc<Event>, Series),
}

/// A write that ended.
enum Done {
    /// An event, or its series' first patch.
    Written,
    /// The last patch of a series, which has left the cache; `Again` if it must come back.
    Finished(Identity, Remembered, Verdict),
}

type Writes = FuturesUnordered<BoxFuture<'static, Done>>;

impl SeriesTask {
    pub(super) fn new(sink: Arc<Sink>, queue: mpsc::Receiver<Queued>) -> Self {
        let started = sink.rest.clock().mono();
        Self { sink, queue, cache: BTreeMap::new(), started, tick: None }
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
        if self.cache.is_empty() {
            self.tick = None;
        } else if self.tick.is_none() {
            let clock = self.sink.rest.clock();
            let number = clock.mono().since(self.started).as_secs() / FINISH.as_secs() + 1;
            let at = self.started + Duration::from_secs(number.saturating_mul(FINISH.as_secs()));
            self.tick = Some((number, clock.sleep_until(at)));
        }
    }

    /// A new event is written; its first repetition makes it a series, which is written; further ones are counted.
    /// Follows `client-go/tools/events/event_broadcaster.go#recordToSink @v1.36.3`.
    fn observe(&mut self, (event, ticket): Queued, writes: &Writes) {
        let now = self.sink.rest.clock().now();
        let (event, series) = match self.cache.entry(Identity::of(&event)) {
            Entry::Vacant(entry) => {
                let text = format!("{}\n{}", event.name, event.said.note).into_boxed_str();
                let what = What::Once { text, time: event.time };
                entry.insert(Remembered { last: now.mono, what });
                (Arc::new(event), None)
            }
            Entry::Occupied(mut entry) => {
                let Remembered { last, what } = entry.get_mut();
                *last = now.mono;
                match what {
                    What::Series(_, series) => {
                        series.count = series.count.saturating_add(1);
                        series.last_observed_time = now.wall;
                        return;
                    }
                    What::Once { text, time } => {
                        let (name, note) = text.split_once('\n').unwrap_or_default();
                        let first = Arc::new(event.into_first(name, note, *time));
                        let series = Series { count: 2, last_observed_time: now.wall };
                        *what = What::Series(Arc::clone(&first), series);
                        (first, Some(series))
                    }
                }
            }
        };
        writes.push(Box::pin(record(Arc::clone(&self.sink), event, series, ticket)));
    }

    /// Takes out of the cache what was not repeated for a while; a series is written a last time.
    /// Follows `client-go/tools/events/event_broadcaster.go#finishSeries @v1.36.3`, but for a clock that steps: upstream's then
    /// forgets all at once, or nothing for as long as the clock went back.
    fn finish(&mut self, writes: &Writes) {
        let over = self.sink.rest.clock().mono() - FINISH;
        let ended = self.cache.extract_if(.., |_, event| event.last < over);
        for (identity, event) in ended {
            let Remembered { last, what: What::Series(first, series) } = event else { continue };
            let (sink, ticket) = (Arc::clone(&self.sink), self.sink.ticket());
            writes.push(Box::pin(async move {
                let verdict = write(&sink, &first, Some(series)).await;
                drop(ticket);
                Done::Finished(identity, Remembered { last, what: What::Series(first, series) }, verdict)
            }));
        }
    }

    /// Writes every series, so that the server keeps it.
    /// Follows `client-go/tools/events/event_broadcaster.go#refreshExistingEventSeries @v1.36.3`.
    fn refresh(&mut self, writes: &Writes) {
        for event in self.cache.values() {
            if let What::Series(first, series) = &event.what {
                let (sink, first, ticket) = (Arc::clone(&self.sink), Arc::clone(first), self.sink.ticket());
                let series = *series;
                writes.push(Box::pin(async move {
                    write(&sink, &first, Some(series)).await;
                    drop(ticket);
                    Done::Written
                }));
            }
        }
    }

    fn done(&mut self, done: Done) {
        if let Done::Finished(identity, event, Verdict::Again) = done {
            // A later tick tries again, unless the event began anew.
            self.cache.entry(identity).or_insert(event);
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
    let mut tries = 0;
    while write(&sink, &event, series).await == Verdict::Again {
        tries += 1;
        if tries >= MAX_TRIES {
            tracing::error!(name = event.name, "Unable to write event (retry limit exceeded!)");
            break;
        }
        let wait = jitter(RETRY_WAIT, RETRY_JITTER, sink.split_rng().unit());
        sink.rest.clock().sleep(wait).await;
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
