//! A watch of this process's `LeaseCandidate`.

use std::pin::Pin;

use futures::stream::{self, Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use kube::runtime::watcher::{self, Event};
use tracing::error;

use super::candidacy::NAMESPACE;
use crate::client::watch_object;
use crate::clock::Clock;

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

struct CandidateWatch<S> {
    events: Pin<Box<S>>,
    /// The candidate as listed so far, during a list.
    listed: Option<Box<LeaseCandidate>>,
}

/// Watches the candidate of this name. The stream never ends.
pub fn watch(client: kube::Client, name: &str, clock: Clock) -> impl Stream<Item = CandidateEvent> + Send + use<> {
    let events = Box::pin(watch_object::<LeaseCandidate>(client, NAMESPACE, name, clock));
    stream::unfold(CandidateWatch { events, listed: None }, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

impl<S: Stream<Item = watcher::Result<Event<LeaseCandidate>>>> CandidateWatch<S> {
    async fn next(&mut self) -> Option<CandidateEvent> {
        loop {
            match self.events.next().await? {
                Ok(event) => {
                    if let Some(event) = self.take(event) {
                        return Some(event);
                    }
                }
                Err(error) => error!(err = %error, kind = "leasecandidates", "Failed to watch"),
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
