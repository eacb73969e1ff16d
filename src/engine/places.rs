//! Where each pod is: in exactly one place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Engine;
use crate::queue::Place;

/// A pod that is nowhere, or in two places at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// `namespace/name`.
    pub pod: String,
    /// Where it is.
    pub places: Vec<&'static str>,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.places[..] {
            [] => write!(f, "pod {} is nowhere", self.pod),
            _ => write!(f, "pod {} is in {}", self.pod, self.places.join(" and ")),
        }
    }
}

impl Engine {
    /// Checks, between two steps, that each pod that the informers know and that is ours is in exactly one place: queued,
    /// in its cycle (popped and not yet back), assumed, or bound; and that nothing is in flight that is neither being
    /// scheduled nor bound. `cycling` are the UIDs of pods that the caller knows to be in a cycle.
    pub fn check_places(&self, cycling: &BTreeSet<String>) -> Vec<Lost> {
        let mut places: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
        for (pod, place) in self.shared.queue.places() {
            places.entry(pod.uid().to_owned()).or_default().push(match place {
                Place::Active => "activeQ",
                Place::Backoff => "podBackoffQ",
                Place::ErrorBackoff => "podErrorBackoffQ",
                Place::Unschedulable => "unschedulablePods",
            });
        }
        for cached in self.shared.cache.pods() {
            let place = if cached.assumed { "the cache, assumed" } else { "the cache, bound" };
            places.entry(cached.pod.uid().to_owned()).or_default().push(place);
        }
        let mut lost = Vec::new();
        for pod in self.shared.listers.pods.list() {
            let ours = self.profiles.iter().any(|profile| **profile.name() == *pod.scheduler_name());
            let found = places.remove(pod.uid()).unwrap_or_default();
            let cycles = cycling.contains(pod.uid());
            let expected = usize::from(pod.node_name().is_some() || (ours && !cycles));
            // An assumed pod is still unassigned for the informers, and one that is being deleted is let go.
            let may_be_gone = pod.is_terminating() && pod.node_name().is_none();
            if found.len() != expected && !(may_be_gone && found.len() <= 1) {
                lost.push(Lost { pod: pod.key(), places: found });
            }
        }
        lost
    }
}
