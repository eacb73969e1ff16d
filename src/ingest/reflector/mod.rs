//! Keeps the store of one kind up to date. It starts with a watch-list, or with a list followed by a watch. Then it resumes
//! from the last resource version for as long as the server has that version.
//!
//! ```text
//!  watch_list ──ended initial events──▶ follow ◀──ended── watch from the last version
//!      │ not possible                     │  ▲                  ▲
//!      ▼                                  ▼  └── ended ─────────┘
//!    list ───────────────────────▶ failed (410, …): wait, start over at no older version than the last
//! ```
//!
//! Follows `client-go/tools/cache/reflector.go @v1.36.3`. kube's watcher is not used for three reasons. It relists at any
//! version, which can be older if another API server responds. It asks for watches of at most 295 s. It uses tokio's clock.

mod backoff;
mod pages;
mod refusals;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;

use super::decode::{self, Line, Reading};
use super::deliver::{self, Sink};
use crate::cache::CacheError;
use crate::clock::{Clock, Mono, Rng};
use backoff::Backoff;
pub(super) use pages::{Listed, PAGE_SIZE, Pages};
pub(super) use refusals::Refusals;
pub(super) use request::{Chain, Source};
use request::{Lines, is_expired, is_retriable, is_too_large, is_too_many_requests};

/// Shortest watch timeout in requests. The longest is twice as long.
/// `client-go/tools/cache/reflector.go#defaultMinWatchTimeout @v1.36.3`.
const MIN_WATCH: Duration = Duration::from_mins(5);
/// Time after a watch's timeout until its connection counts as dead. With HTTP/2, pings detect a dead connection much sooner.
/// HTTP/1.1 has no pings.
const WATCH_GRACE: Duration = Duration::from_secs(15);
/// A watch that ends within this time without any event has failed.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Reasons why a list or watch ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The request failed, at the server or on the way to it.
    #[error("{}", request::Chain(.0))]
    Request(#[from] kube::Error),
    /// The response cannot be decoded as a list or as events.
    #[error("unable to decode the response of the server: {0}")]
    Nonsense(#[from] serde_json::Error),
    /// A watch ended at once without any event.
    #[error("very short watch: watch lasted less than a second and no items received")]
    VeryShort,
    /// The server accepted a request and did not respond in time.
    #[error("no response within {} s", .0.as_secs())]
    Silent(Duration),
    /// A handler reported an error for which the process must exit.
    #[error(transparent)]
    Fatal(#[from] CacheError),
}

/// The parts that a reflector needs.
pub(super) struct Parts<S: Sink> {
    pub(super) client: kube::Client,
    pub(super) source: Source,
    pub(super) reading: Reading<S::Object>,
    pub(super) sink: S,
    pub(super) clock: Clock,
    /// Spreads watch timeouts and backoffs.
    pub(super) rng: Rng,
    pub(super) refusals: Refusals,
    /// Called once, after all initial objects have been handled.
    pub(super) synced: Box<dyn Fn() + Send + Sync>,
}

/// The reflector of one kind.
pub(super) struct Reflector<S: Sink> {
    parts: Parts<S>,
    is_synced: bool,
    backoff: Backoff,
    /// The last resource version seen. Empty before the first.
    version: String,
    /// Whether the last request failed because the server did not have `version`.
    version_unavailable: bool,
    /// Whether a list at any version came in pages. If so, the server has no watch cache, and later lists ask for pages too.
    paginated: bool,
}

/// A watch that is open.
struct Watch {
    lines: Lines,
    opened: Mono,
    /// Time at which the connection counts as dead.
    deadline: Mono,
    /// Whether any line has been read.
    heard: bool,
}

impl<S: Sink> Reflector<S> {
    pub(super) fn new(parts: Parts<S>) -> Self {
        Self {
            backoff: Backoff::new(parts.clock.mono()),
            parts,
            is_synced: false,
            version: String::new(),
            version_unavailable: false,
            paginated: false,
        }
    }

    /// Runs until a handler reports an error for which the process must exit.
    pub(super) async fn run(mut self) -> CacheError {
        loop {
            match self.list_and_watch().await {
                Ok(()) => {}
                Err(Failure::Fatal(error)) => return error,
                Err(Failure::Request(error)) if is_expired(&error) => {
                    tracing::debug!(kind = self.parts.reading.kind, error = %Chain(&error), "Watch closed");
                }
                Err(error) => tracing::error!(kind = self.parts.reading.kind, %error, "Failed to watch"),
            }
            self.back_off().await;
        }
    }

    async fn back_off(&mut self) {
        let wait = self.backoff.next(self.parts.clock.mono(), &mut self.parts.rng);
        self.parts.clock.sleep(wait).await;
    }

    async fn list_and_watch(&mut self) -> Result<(), Failure> {
        let watch = match self.watch_list().await {
            Ok(watch) => Some(watch),
            Err(Failure::Fatal(error)) => return Err(Failure::Fatal(error)),
            Err(error) => {
                tracing::debug!(kind = self.parts.reading.kind, %error, "Falling back to a list");
                self.list().await?;
                None
            }
        };
        self.watch(watch).await
    }

    /// Opens a watch-list, delivers the initial objects, and returns the open watch for the events that follow.
    async fn watch_list(&mut self) -> Result<Watch, Failure> {
        loop {
            match self.try_watch_list().await {
                Ok(Some(watch)) => return Ok(watch),
                // The watch ended before all initial objects were sent.
                Ok(None) => {}
                Err(Failure::Request(error)) if is_retriable(&error) => {
                    tracing::debug!(kind = self.parts.reading.kind, error = %Chain(&error), "watch-list failed - backing off");
                    self.parts.refusals.tell(&error, &self.parts.clock);
                    self.back_off().await;
                }
                Err(Failure::Request(error)) if is_expired(&error) || is_too_large(&error) => {
                    self.version_unavailable = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_watch_list(&mut self) -> Result<Option<Watch>, Failure> {
        let timeout = self.watch_timeout();
        let version = if self.version_unavailable { "" } else { &self.version };
        let query = self.parts.source.watch_list(version, timeout);
        let mut watch = self.open(query, timeout).await?;
        let mut items = BTreeMap::new();
        while let Some(line) = self.next(&mut watch).await? {
            match line {
                Line::Applied(item) => deliver::collect(&mut items, item),
                Line::Deleted(item) => {
                    items.remove(&item.key());
                }
                Line::Bookmark { version, ends_initial_events: true } => {
                    self.version_unavailable = false;
                    self.replace(items, version)?;
                    return Ok(Some(watch));
                }
                Line::Bookmark { .. } | Line::Ignored => {}
                Line::Error(status) => return Err(kube::Error::Api(status).into()),
            }
        }
        self.check_length(&watch)?;
        Ok(None)
    }

    /// Lists all objects of the kind. The first list accepts any version. Later lists require at least the last version seen,
    /// or the newest version if the server does not have the last version seen.
    async fn list(&mut self) -> Result<(), Failure> {
        let version = match &*self.version {
            _ if self.version_unavailable => String::new(),
            "" => "0".to_owned(),
            version => version.to_owned(),
        };
        let listed = match self.list_pages(&version).await {
            Err(Failure::Request(error)) if is_expired(&error) || is_too_large(&error) => {
                self.version_unavailable = true;
                self.list_pages("").await?
            }
            outcome => outcome?,
        };
        self.version_unavailable = false;
        self.replace(listed.items, listed.version)
    }

    async fn list_pages(&mut self, version: &str) -> Result<Listed<S::Object>, Failure> {
        // A server does not answer from its watch cache if a list at a version has a limit.
        let limit = (self.paginated || matches!(version, "" | "0")).then_some(PAGE_SIZE);
        let Parts { client, source, reading, .. } = &self.parts;
        let listed = Pages { client, source, reading, patience: None }.all(version, limit, &|_| ()).await?;
        self.paginated |= version == "0" && listed.paginated;
        Ok(listed)
    }

    fn replace(&mut self, items: BTreeMap<String, decode::Item<S::Object>>, version: String) -> Result<(), Failure> {
        deliver::replace(&self.parts.sink, items, self.parts.clock.now())?;
        self.version = version;
        if !std::mem::replace(&mut self.is_synced, true) {
            (self.parts.synced)();
        }
        Ok(())
    }

    /// Follows a watch, and opens the next one at the last version when it ends. Returns when the objects must be listed again.
    async fn watch(&mut self, mut open: Option<Watch>) -> Result<(), Failure> {
        loop {
            let watch = match open.take() {
                Some(watch) => watch,
                None => match self.rewatch().await {
                    Ok(watch) => watch,
                    Err(error) if is_retriable(&error) => {
                        tracing::debug!(kind = self.parts.reading.kind, error = %Chain(&error), "Watch failed - backing off");
                        self.parts.refusals.tell(&error, &self.parts.clock);
                        self.back_off().await;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            match self.follow(watch).await {
                Ok(()) => {}
                Err(Failure::Fatal(error)) => return Err(Failure::Fatal(error)),
                Err(Failure::Request(error)) if is_too_many_requests(&error) => {
                    tracing::debug!(kind = self.parts.reading.kind, "Watch returned 429 - backing off");
                    self.back_off().await;
                }
                Err(Failure::Request(error)) if is_expired(&error) => {
                    tracing::debug!(kind = self.parts.reading.kind, error = %Chain(&error), "Watch closed");
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(kind = self.parts.reading.kind, %error, "watch ended with error");
                    return Ok(());
                }
            }
        }
    }

    async fn rewatch(&mut self) -> Result<Watch, kube::Error> {
        let timeout = self.watch_timeout();
        let query = self.parts.source.watch(&self.version, timeout);
        self.open(query, timeout).await
    }

    /// Delivers the events of a watch until it ends.
    async fn follow(&mut self, mut watch: Watch) -> Result<(), Failure> {
        while let Some(line) = self.next(&mut watch).await? {
            let now = self.parts.clock.now();
            match line {
                Line::Applied(item) => {
                    self.saw(item.version());
                    deliver::apply(&self.parts.sink, item, now)?;
                }
                Line::Deleted(item) => {
                    self.saw(item.version());
                    deliver::delete(&self.parts.sink, item, now)?;
                }
                Line::Bookmark { version, .. } => self.saw(&version),
                Line::Ignored => {}
                Line::Error(status) => return Err(kube::Error::Api(status).into()),
            }
        }
        self.check_length(&watch)
    }

    /// Stores the last version seen. An empty version, from an object that could not be decoded, is ignored.
    fn saw(&mut self, version: &str) {
        if !version.is_empty() {
            version.clone_into(&mut self.version);
        }
    }

    fn watch_timeout(&mut self) -> Duration {
        MIN_WATCH.mul_f64(1.0 + self.parts.rng.unit())
    }

    async fn open(&self, query: request::Query, timeout: Duration) -> Result<Watch, kube::Error> {
        let opened = self.parts.clock.mono();
        let lines = query.lines(&self.parts.client).await?;
        // Simulated connections never hang.
        let deadline = if self.parts.clock.is_simulated() { Mono::MAX } else { opened + timeout + WATCH_GRACE };
        Ok(Watch { lines, opened, deadline, heard: false })
    }

    /// Returns the next line of a watch. `None` if the watch ended in any way.
    async fn next(&self, watch: &mut Watch) -> Result<Option<Line<S::Object>>, Failure> {
        let next = watch.lines.next();
        let line = if watch.deadline == Mono::MAX {
            next.await
        } else {
            let Ok(line) = self.parts.clock.timeout_at(watch.deadline, next).await else {
                tracing::warn!(kind = self.parts.reading.kind, "Watch exceeded its timeout, reopening it");
                return Ok(None);
            };
            line
        };
        let text = match line {
            None => return Ok(None),
            Some(Ok(text)) => text,
            Some(Err(error)) => {
                tracing::debug!(kind = self.parts.reading.kind, %error, "Watch closed unexpectedly");
                return Ok(None);
            }
        };
        match decode::line(&text, &self.parts.reading) {
            Ok(line) => {
                watch.heard = true;
                Ok(Some(line))
            }
            // The connection broke in the middle of a line.
            Err(error) if error.is_eof() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn check_length(&self, watch: &Watch) -> Result<(), Failure> {
        if !watch.heard && self.parts.clock.mono() - watch.opened < SHORT_WATCH {
            return Err(Failure::VeryShort);
        }
        Ok(())
    }
}
