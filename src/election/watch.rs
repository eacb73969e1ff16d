//! A watch of this process's `LeaseCandidate`.

use std::time::Duration;

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use kube::runtime::watcher::{self, Event};
use tracing::error;

use super::candidacy::NAMESPACE;
use crate::clock::Clock;

/// Backoff between two attempts to watch: the first wait, and the longest.
/// Follows `client-go/tools/cache/reflector.go#NewReflectorWithOptions @v1.36.3`.
const WAITS: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));

/// A watch event of the candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum CandidateEvent {
    /// Result of a list, at the beginning or after the watch was interrupted: the candidate if it exists.
    Listed(Option<Box<LeaseCandidate>>),
    /// The candidate was created or updated.
    Applied(Box<LeaseCandidate>),
    /// The candidate was deleted.
    Deleted,
}

struct CandidateWatch {
    events: BoxStream<'static, watcher::Result<Event<LeaseCandidate>>>,
    clock: Clock,
    wait: Duration,
    /// The candidate as listed so far, during a list.
    listed: Option<Box<LeaseCandidate>>,
}

/// Watches the candidate of this name. The stream never ends.
pub fn watch(client: kube::Client, name: &str, clock: Clock) -> impl Stream<Item = CandidateEvent> + Send + use<> {
    let api = kube::Api::<LeaseCandidate>::namespaced(client, NAMESPACE);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher::watcher(api, config).boxed();
    let watch = CandidateWatch { events, clock, wait: WAITS.0, listed: None };
    stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

impl CandidateWatch {
    async fn next(&mut self) -> Option<CandidateEvent> {
        loop {
            match self.events.next().await? {
                Ok(event) => {
                    if let Some(event) = self.take(event) {
                        self.wait = WAITS.0;
                        return Some(event);
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

    fn take(&mut self, event: Event<LeaseCandidate>) -> Option<CandidateEvent> {
        match event {
            Event::Init => self.listed = None,
            Event::InitApply(candidate) => self.listed = Some(Box::new(candidate)),
            Event::InitDone => return Some(CandidateEvent::Listed(self.listed.take())),
            Event::Apply(candidate) => return Some(CandidateEvent::Applied(Box::new(candidate))),
            Event::Delete(_) => return Some(CandidateEvent::Deleted),
        }
        None
    }
}
