//! The task that writes events.k8s.io/v1 events, and knows which repeat one another.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
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
    /// The first event of each series, and the series once it was repeated.
    cache: BTreeMap<Key, Option<Series>>,
    /// Ticks are counted from here.
    started: Mono,
    /// The next look for series that are over; none while the cache is empty, so that idle time needs no timer.
    tick: Option<(u64, Sleep)>,
}

/// An event, compared by what makes another one its repetition: all but the note.
/// Follows `client-go/tools/events/event_broadcaster.go#getKey @v1.36.3`.
#[derive(Clone)]
struct Key(Arc<Event>);

/// A write that ended.
enum Done {
    /// An event, or its series' first patch.
    Written,
    /// The last patch of a series, which has left the cache; `Again` if it must come back.
    Finished(Key, Series, Verdict),
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
        let now = self.sink.rest.clock().now().wall;
        let (key, series) = match self.cache.entry(Key(Arc::new(event))) {
            Entry::Vacant(entry) => {
                let key = entry.key().clone();
                entry.insert(None);
                (key, None)
            }
            Entry::Occupied(mut entry) => {
                if let Some(series) = entry.get_mut() {
                    series.count = series.count.saturating_add(1);
                    series.last_observed_time = now;
                    return;
                }
                let series = Series { count: 2, last_observed_time: now };
                entry.insert(Some(series));
                (entry.key().clone(), Some(series))
            }
        };
        writes.push(Box::pin(record(Arc::clone(&self.sink), key, series, ticket)));
    }

    /// Takes out of the cache what was not repeated for a while; a series is written a last time.
    /// Follows `client-go/tools/events/event_broadcaster.go#finishSeries @v1.36.3`.
    fn finish(&mut self, writes: &Writes) {
        let now = self.sink.rest.clock().now().wall;
        let over = now.checked_sub(FINISH).unwrap_or(Timestamp::MIN);
        let sink = &self.sink;
        self.cache.retain(|key, series| {
            let last = series.map_or(key.0.time, |series| series.last_observed_time);
            if last >= over {
                return true;
            }
            if let Some(series) = *series {
                let (sink, key, ticket) = (Arc::clone(sink), key.clone(), sink.ticket());
                writes.push(Box::pin(async move {
                    let verdict = write(&sink, &key, Some(series)).await;
                    drop(ticket);
                    Done::Finished(key, series, verdict)
                }));
            }
            false
        });
    }

    /// Writes every series, so that the server keeps it.
    /// Follows `client-go/tools/events/event_broadcaster.go#refreshExistingEventSeries @v1.36.3`.
    fn refresh(&mut self, writes: &Writes) {
        for (key, series) in &self.cache {
            if let Some(series) = *series {
                let (sink, key, ticket) = (Arc::clone(&self.sink), key.clone(), self.sink.ticket());
                writes.push(Box::pin(async move {
                    write(&sink, &key, Some(series)).await;
                    drop(ticket);
                    Done::Written
                }));
            }
        }
    }

    fn done(&mut self, done: Done) {
        if let Done::Finished(key, series, Verdict::Again) = done {
            // A later tick tries again, unless the event began anew.
            self.cache.entry(key).or_insert(Some(series));
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
async fn record(sink: Arc<Sink>, key: Key, series: Option<Series>, ticket: Ticket) -> Done {
    let mut tries = 0;
    while write(&sink, &key, series).await == Verdict::Again {
        tries += 1;
        if tries >= MAX_TRIES {
            tracing::error!(name = key.0.name, "Unable to write event (retry limit exceeded!)");
            break;
        }
        let wait = jitter(RETRY_WAIT, RETRY_JITTER, sink.split_rng().unit());
        sink.rest.clock().sleep(wait).await;
    }
    drop(ticket);
    Done::Written
}

async fn write(sink: &Sink, key: &Key, series: Option<Series>) -> Verdict {
    let event = &key.0;
    let patch = series.map(Series::patch_body);
    sink.write(event.regarding.event_namespace(), &event.name, patch, || event.create_body(series)).await
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let (this, that) = (&*self.0, &*other.0);
        this.regarding
            .cmp(&that.regarding)
            .then_with(|| this.said.kind.cmp(&that.said.kind))
            .then_with(|| this.said.reason.cmp(&that.said.reason))
            .then_with(|| this.said.action.cmp(&that.said.action))
            .then_with(|| this.controller.cmp(&that.controller))
            .then_with(|| this.instance.cmp(&that.instance))
            .then_with(|| this.related.cmp(&that.related))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}
