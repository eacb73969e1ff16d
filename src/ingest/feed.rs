//! Feeds of the kinds. A feed passes the objects of one kind from the API server to the kind's sink. A kind is watched, or read
//! once.

use std::sync::Arc;
use std::time::Duration;

use super::Starter;
use super::decode::{Read, Reading};
use super::deliver::{self, Sink};
use super::reflector::{Chain, Failure, PAGE_SIZE, Pages, Parts, Reflector, Source};
use crate::cache::CacheError;
use crate::clock::{Now, Rng};
use crate::framework::BoxFuture;

/// Timeout of a page when a kind is read once. The API server ends a request after one minute.
/// `apiserver/pkg/server/config.go#NewConfig @v1.36.3`, `RequestTimeout`.
const PATIENCE: Duration = Duration::from_mins(1);

/// Delivers the objects that were read to their handlers. Fails only if the process must exit.
pub(super) type Deliver = Box<dyn FnOnce(Now) -> Result<(), CacheError> + Send>;

/// The source and the sink of one kind.
pub(super) trait Feed: Send {
    /// Watches the kind and keeps its store up to date. Ends only if the process must exit.
    fn watch(self: Box<Self>, starter: &Starter) -> BoxFuture<'static, ()>;

    /// Lists all objects once. `counted` is called with the number of objects on each page.
    fn read(
        self: Box<Self>,
        starter: &Starter,
        counted: Arc<dyn Fn(usize) + Send + Sync>,
    ) -> BoxFuture<'static, Result<Deliver, Failure>>;
}

/// Error of a kind that could not be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Name of the kind: its plural.
    pub kind: String,
    /// The HTTP status code, if the server responded.
    pub code: Option<u16>,
    /// The server's message, or the error of the connection.
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

/// Creates the feed of one kind.
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
            tracing::error!(%error, "Fatal error while handling a watch event, exiting");
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

/// Returns the FNV-1a hash of the kind's name, as part of the seed. So the backoffs of the kinds differ.
fn seed_of(kind: &str) -> u64 {
    kind.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
