//! Keeps one kind as the API server has it: a watch that begins with all objects, or a list and then a watch, and so on from
//! the last version seen for as long as the server remembers it.
//!
//! ```text
//!  watch_list ──ended initial events──▶ follow ◀──ended── watch from the last version
//!      │ not possible                     │  ▲                  ▲
//!      ▼                                  ▼  └── ended ─────────┘
//!    list ───────────────────────▶ failed (410, …): wait, start over at no older version than the last
//! ```
//!
//! Follows `client-go/tools/cache/reflector.go @v1.36.3`. It is not kube's watcher, because that starts over at any version
//! (an older one too, if another API server answers), asks for at most 295 s of watch, and waits by tokio's clock.

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

/// The shortest time for which a watch is asked for; the longest is twice that.
/// `client-go/tools/cache/reflector.go#defaultMinWatchTimeout @v1.36.3`.
const MIN_WATCH: Duration = Duration::from_mins(5);
/// How much longer than asked for a watch may stay open before its connection counts as dead. Over HTTP/2 pings find that out
/// much sooner; HTTP/1.1 has none.
const WATCH_GRACE: Duration = Duration::from_secs(15);
/// A watch that ends within this time without a word has failed.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Why a list or watch ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The server or the way to it failed.
    #[error("{}", request::Chain(.0))]
    Request(#[from] kube::Error),
    /// The server said something that is no list and no event.
    #[error("unable to decode what the server sent: {0}")]
    Nonsense(#[from] serde_json::Error),
    /// A watch ended at once.
    #[error("very short watch: watch lasted less than a second and no items received")]
    VeryShort,
    /// The server took a request and did not answer in time.
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// A handler found that the process has to end.
    #[error(transparent)]
    Fatal(#[from] CacheError),
}

/// What a reflector needs.
pub(super) struct Parts<S: Sink> {
    pub(super) client: kube::Client,
    pub(super) source: Source,
    pub(super) reading: Reading<S::Object>,
    pub(super) sink: S,
    pub(super) clock: Clock,
    /// Spreads watch timeouts and waits.
    pub(super) rng: Rng,
    pub(super) refusals: Refusals,
    /// Told once, when all objects that there were at first have been handled.
    pub(super) synced: Box<dyn Fn() + Send + Sync>,
}

/// The reflector of one kind.
pub(super) struct Reflector<S: Sink> {
    parts: Parts<S>,
    is_synced: bool,
    backoff: Backoff,
    /// The last version seen; empty before the first.
    version: String,
    /// Whether the server did not have that version when it was last asked.
    version_unavailable: bool,
    /// Whether even a list at any version came in pages: then the server has no cache that would answer in one.
    paginated: bool,
}

/// An open watch.
struct Watch {
    lines: Lines,
    opened: Mono,
    /// When its connection counts as dead.
    deadline: Mono,
    /// Whether anything has been read from it.
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

    /// Runs until a handler finds that the process has to end.
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

    /// Opens a watch that begins with all objects, takes those in, and leaves it open for what follows.
    async fn watch_list(&mut self) -> Result<Watch, Failure> {
        loop {
            match self.try_watch_list().await {
                Ok(Some(watch)) => return Ok(watch),
                // It ended before all objects were told.
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

    /// Lists all objects: at first as of any version that the server has, later of none older than the last seen, and of the
    /// newest if the server does not have that.
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
        // A limit would keep a server that has the version in its cache from answering out of that.
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

    /// Follows a watch and, when it ends, watches on from where it did. Returns when the objects have to be listed again.
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

    /// Hands on what a watch tells until it ends.
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

    /// Remembers a version; an object whose version is unreadable says nothing of it.
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
        // Only real connections go silent.
        let deadline = if self.parts.clock.is_simulated() { Mono::MAX } else { opened + timeout + WATCH_GRACE };
        Ok(Watch { lines, opened, deadline, heard: false })
    }

    /// The next line of a watch; none when it has ended, however that came.
    async fn next(&self, watch: &mut Watch) -> Result<Option<Line<S::Object>>, Failure> {
        let next = watch.lines.next();
        let line = if watch.deadline == Mono::MAX {
            next.await
        } else {
            let Ok(line) = self.parts.clock.timeout_at(watch.deadline, next).await else {
                tracing::warn!(kind = self.parts.reading.kind, "Watch stayed open for too long without a word");
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
