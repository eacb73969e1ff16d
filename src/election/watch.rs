//! What the API server has of a candidate, as it changes.

use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use kube::runtime::watcher::{self, Event};
use tracing::error;

use super::candidacy::NAMESPACE;
use crate::clock::Clock;

/// Waits between two attempts to watch: the first, and the longest.
/// Follows `client-go/tools/cache/reflector.go#NewReflectorWithOptions @v1.36.3`.
const WAITS: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));

/// Change of a `LeaseCandidate`.
#[derive(Clone, Debug, PartialEq)]
pub enum CandidateChange {
    /// The state at the start of the watch, or after a gap.
    All(Option<Box<LeaseCandidate>>),
    /// The candidate was added or updated.
    Now(Box<LeaseCandidate>),
    /// The candidate was deleted.
    Gone,
}

struct Watching {
    events: BoxStream<'static, watcher::Result<Event<LeaseCandidate>>>,
    clock: Clock,
    wait: Duration,
    /// What there is, while that is being listed.
    listed: Option<Box<LeaseCandidate>>,
}

/// Watches the candidate of this name. It does not end.
pub fn watch(client: kube::Client, name: &str, clock: Clock) -> impl Stream<Item = CandidateChange> + Send + use<> {
    let api = kube::Api::<LeaseCandidate>::namespaced(client, NAMESPACE);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher::watcher(api, config).boxed();
    let watching = Watching { events, clock, wait: WAITS.0, listed: None };
    stream::unfold(watching, |mut watching| async move {
        let seen = watching.next().await?;
        Some((seen, watching))
    })
}

impl Watching {
    async fn next(&mut self) -> Option<CandidateChange> {
        loop {
            match self.events.next().await? {
                Ok(event) => {
                    if let Some(seen) = self.take(event) {
                        self.wait = WAITS.0;
                        return Some(seen);
                    }
                }
                Err(error) => {
                    error!(err = %error, kind = "leasecandidates", "Failed to watch");
                    self.clock.sleep(self.wait).await;
                    self.wait = (self.wait * 2).min(WAITS.1);
                }
            }
        }
    }

    fn take(&mut self, event: Event<LeaseCandidate>) -> Option<CandidateChange> {
        match event {
            Event::Init => self.listed = None,
            Event::InitApply(candidate) => self.listed = Some(Box::new(candidate)),
            Event::InitDone => return Some(CandidateChange::All(self.listed.take())),
            Event::Apply(candidate) => return Some(CandidateChange::Now(Box::new(candidate))),
            Event::Delete(_) => return Some(CandidateChange::Gone),
        }
        None
    }
}
