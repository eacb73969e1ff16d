//! A kind on its way into the scheduler: where its objects come from and where they go, to be watched or read once.

use std::sync::Arc;
use std::time::Duration;

use super::Starter;
use super::decode::{Read, Reading};
use super::deliver::{self, Sink};
use super::reflector::{Chain, Failure, PAGE_SIZE, Pages, Parts, Reflector, Source};
use crate::cache::CacheError;
use crate::clock::{Now, Rng};
use crate::framework::BoxFuture;

/// How long a page may take when a kind is read once. The API server gives up on a request after a minute.
/// `apiserver/pkg/server/config.go#NewConfig @v1.36.3`, `RequestTimeout`.
const PATIENCE: Duration = Duration::from_mins(1);

/// Hands what has been read to its handlers. Fails only when the process has to end.
pub(super) type Deliver = Box<dyn FnOnce(Now) -> Result<(), CacheError> + Send>;

/// A kind on its way into the scheduler.
pub(super) trait Feed: Send {
    /// Keeps the kind as the API server has it. Ends only when the process has to.
    fn watch(self: Box<Self>, starter: &Starter) -> BoxFuture<'static, ()>;

    /// Reads all objects that there are now. `counted` is told how many came with each page.
    fn read(
        self: Box<Self>,
        starter: &Starter,
        counted: Arc<dyn Fn(usize) + Send + Sync>,
    ) -> BoxFuture<'static, Result<Deliver, Failure>>;
}

/// A kind that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The kind, by its plural.
    pub kind: String,
    /// The HTTP code of the answer, if there was one.
    pub code: Option<u16>,
    /// What the server says, or what is wrong with the way to it.
    pub message: String,
}

impl Unread {
    pub(super) fn new(kind: &str, failure: &Failure) -> Self {
        let (code, message) = match failure {
            Failure::Request(kube::Error::Api(status)) if !status.message.is_empty() => {
                (Some(status.code), status.message.clone())
            }
            Failure::Request(error @ kube::Error::Api(status)) => (Some(status.code), Chain(error).to_string()),
            other => (None, other.to_string()),
        };
        Self { kind: kind.to_owned(), code, message }
    }
}

struct FeedOf<S: Sink> {
    kind: String,
    source: Source,
    sink: S,
    read: Read<S::Object>,
}

/// The feed of one kind.
pub(super) fn feed<S: Sink>(kind: &str, source: Source, sink: S, read: Read<S::Object>) -> Box<dyn Feed> {
    Box::new(FeedOf { kind: kind.to_owned(), source, sink, read })
}

impl<S: Sink> Feed for FeedOf<S> {
    fn watch(self: Box<Self>, starter: &Starter) -> BoxFuture<'static, ()> {
        let Self { kind, source, sink, read } = *self;
        let (pending, name) = (starter.pending.clone(), kind.clone());
        let reflector = Reflector::new(Parts {
            client: starter.client.clone(),
            source,
            rng: Rng::from_seed(starter.seed ^ seed_of(&kind)),
            reading: Reading { kind, unreadable: starter.unreadable.clone(), read },
            sink,
            clock: starter.clock.clone(),
            refusals: starter.refusals.clone(),
            synced: Box::new(move || pending.done(&name)),
        });
        Box::pin(async move {
            let error = reflector.run().await;
            tracing::error!(%error, "The scheduler has to end");
        })
    }

    fn read(
        self: Box<Self>,
        starter: &Starter,
        counted: Arc<dyn Fn(usize) + Send + Sync>,
    ) -> BoxFuture<'static, Result<Deliver, Failure>> {
        let Self { kind, source, sink, read } = *self;
        let (client, clock) = (starter.client.clone(), starter.clock.clone());
        let reading = Reading { kind, unreadable: starter.unreadable.clone(), read };
        Box::pin(async move {
            let patience = Some((&clock, PATIENCE));
            let pages = Pages { client: &client, source: &source, reading: &reading, patience };
            let listed = pages.all("", Some(PAGE_SIZE), &*counted).await?;
            let deliver: Deliver = Box::new(move |now| deliver::replace(&sink, listed.items, now));
            Ok(deliver)
        })
    }
}

/// A seed for each kind, so that their waits differ. FNV-1a.
fn seed_of(kind: &str) -> u64 {
    kind.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
