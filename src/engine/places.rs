//! Consistency checks: each pod is in exactly one place, and the resource sums of the nodes are right.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::Engine;
use crate::config::Gate;
use crate::k8s::Pod;
use crate::model::{NodeInfo, PodInfo};
use crate::queue::Place;
use crate::scheduler::SchedulerContext;

/// An inconsistency: a pod that is not in exactly one place, or a wrong sum. Pods are given as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// The informers have the pod, but it is in no place, in several places, or in the wrong place.
    Pod {
        /// Key of the pod.
        pod: String,
        /// Names of its places.
        places: Vec<&'static str>,
    },
    /// The informers do not have the pod any more, but it is still in a place.
    Leftover {
        /// Key of the pod.
        pod: String,
        /// Name of its place.
        place: &'static str,
    },
    /// The queue lists the pod as in flight, but it is neither in its scheduling cycle nor in its binding cycle.
    InFlight {
        /// Key of the pod.
        pod: String,
    },
    /// The pod is in its scheduling cycle or waits at `Permit`, but the queue does not list it as in flight.
    NotInFlight {
        /// Key of the pod, or its UID if the pod is unknown.
        pod: String,
    },
    /// A node's sums differ from the sums over its pods.
    Sums {
        /// Name of the node.
        node: String,
    },
}

/// UIDs of the pods in unfinished cycles, which only the caller of a check knows.
#[derive(Clone, Debug, Default)]
pub struct UnfinishedCycles {
    /// The pod in its scheduling cycle, from the pop until the end of the cycle, assumed or not.
    pub cycle: Option<String>,
    /// The pods whose binding cycle has started and has not ended.
    pub binding: BTreeSet<String>,
    /// Whether tasks are still running, so that a binding cycle may not have processed the decision at `Permit` yet.
    pub unsettled: bool,
}

/// Checks the places of all pods. Cheap to clone. Simulations and tests call it after every event.
#[derive(Clone)]
pub struct PlaceCheck {
    shared: Arc<SchedulerContext>,
    profiles: BTreeSet<Arc<str>>,
    /// Whether the queue lists pods in flight, which it does only with `SchedulerQueueingHints`.
    markers: bool,
}

const ASSUMED: &str = "the cache, assumed";
const BOUND: &str = "the cache, bound";

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod { pod, places } if places.is_empty() => write!(f, "pod {pod} is neither queued nor in the cache"),
            Self::Pod { pod, places } => write!(f, "pod {pod} is in {}", places.join(" and ")),
            Self::Leftover { pod, place } => write!(f, "pod {pod} was deleted and is still in {place}"),
            Self::InFlight { pod } => write!(f, "pod {pod} is marked as in flight but is not"),
            Self::NotInFlight { pod } => write!(f, "pod {pod} is in flight but not marked as such"),
            Self::Sums { node } => write!(f, "the resource sums of node {node} differ from those of its pods"),
        }
    }
}

impl Engine {
    /// Returns a check that is independent of the engine, so that it can run in the middle of a cycle.
    pub fn place_check(&self) -> PlaceCheck {
        PlaceCheck {
            shared: self.shared.clone(),
            profiles: self.profiles.iter().map(|profile| profile.name().clone()).collect(),
            markers: self.gates.enabled(Gate::SchedulerQueueingHints),
        }
    }

    /// Runs [`PlaceCheck::check`] at this moment.
    pub fn check_places(&self, underway: &UnfinishedCycles) -> Vec<Misplaced> {
        self.place_check().check(underway)
    }
}

impl PlaceCheck {
    /// Returns everything that is inconsistent. The checks are:
    ///
    /// - Each pod of the informers is in exactly one place: queued, in its cycle, assumed or bound. Unassigned pods of other
    ///   schedulers are in no place, and unassigned pods that are terminating may be in none. No other pod is in any place.
    /// - The queue lists exactly those pods as in flight that are in their cycle or wait at `Permit`.
    /// - No deleted or bound pod has a nominated node.
    /// - Each node's sums are the sums over its pods.
    ///
    /// The checks require `SchedulerQueueingHints`. Without that gate, as in upstream, a pod that changes during its cycle is
    /// queued at once, so it can be in two places until its next attempt.
    pub fn check(&self, underway: &UnfinishedCycles) -> Vec<Misplaced> {
        let mut found = Vec::new();
        self.places(underway, &mut found);
        if self.markers {
            self.in_flight(underway, &mut found);
        }
        self.sums(&mut found);
        found
    }

    fn places(&self, underway: &UnfinishedCycles, found: &mut Vec<Misplaced>) {
        let mut places: BTreeMap<String, (Arc<PodInfo>, Vec<&'static str>)> = BTreeMap::new();
        let mut put = |pod: &Arc<PodInfo>, place| {
            places.entry(pod.uid().to_owned()).or_insert_with(|| (pod.clone(), Vec::new())).1.push(place);
        };
        for (pod, place) in self.shared.queue.places() {
            put(&pod, name(place));
        }
        for cached in self.shared.cache.pods() {
            put(&cached.pod, if cached.assumed { ASSUMED } else { BOUND });
        }
        for pod in self.shared.pods.list() {
            let at = places.remove(pod.uid()).map(|(_, at)| at).unwrap_or_default();
            if !self.is_well_placed(&pod, &at, underway) {
                found.push(Misplaced::Pod { pod: pod.key(), places: at });
            }
        }
        for (uid, (pod, at)) in places {
            for place in at {
                // The pod cannot be bound any more, and its unfinished cycle is going to notice.
                let on_its_way = underway.binding.contains(&uid) || underway.cycle.as_ref() == Some(&uid);
                if place != ASSUMED || !on_its_way {
                    found.push(Misplaced::Leftover { pod: pod.key().to_string(), place });
                }
            }
        }
        for pod in self.shared.queue.nominator().pods() {
            let known = self.shared.pods.get(pod.key());
            if !known.is_some_and(|known| known.uid() == pod.uid() && known.node_name().is_none()) {
                found.push(Misplaced::Leftover { pod: pod.key().to_string(), place: "the nominator" });
            }
        }
    }

    fn is_well_placed(&self, pod: &Pod, at: &[&'static str], underway: &UnfinishedCycles) -> bool {
        let ours = self.profiles.contains(pod.scheduler_name());
        let cycles = underway.cycle.as_deref() == Some(pod.uid());
        match at {
            // The pod is in its cycle, or it is terminating and need not be anywhere.
            [] => pod.node_name().is_none() && (!ours || cycles || pod.is_terminating()),
            [BOUND] => pod.node_name().is_some(),
            [ASSUMED] => pod.node_name().is_none() && ours,
            [_] => pod.node_name().is_none() && ours && !cycles,
            _ => false,
        }
    }

    fn in_flight(&self, underway: &UnfinishedCycles, found: &mut Vec<Misplaced>) {
        let waiting: BTreeMap<String, String> = self
            .shared
            .waiting_pods
            .all()
            .into_iter()
            .map(|waiting| (waiting.pod().uid().to_owned(), waiting.pod().key().to_string()))
            .collect();
        let mut marked = BTreeSet::new();
        for pod in self.shared.queue.in_flight_pods() {
            let uid = pod.uid();
            let binds = underway.unsettled && underway.binding.contains(uid);
            if underway.cycle.as_deref() != Some(uid) && !waiting.contains_key(uid) && !binds {
                found.push(Misplaced::InFlight { pod: pod.key().to_string() });
            }
            marked.insert(uid.to_owned());
        }
        let cycle = underway.cycle.iter().map(|uid| (uid, uid));
        for (uid, pod) in waiting.iter().chain(cycle) {
            if !marked.contains(uid) {
                found.push(Misplaced::NotInFlight { pod: pod.clone() });
            }
        }
    }

    fn sums(&self, found: &mut Vec<Misplaced>) {
        for node in self.shared.cache.nodes() {
            let mut counted = NodeInfo::imaginary(node.name_arc().clone());
            node.pods().iter().for_each(|pod| counted.add_pod(pod.clone()));
            let claims = |info: &NodeInfo| -> Vec<(String, usize)> {
                info.claims().map(|claim| (claim.to_owned(), info.claim_users(claim))).collect()
            };
            let classes = |info: &NodeInfo| -> Vec<_> {
                info.classes().iter().map(|count| (count.class().id(), count.pods(), count.staying())).collect()
            };
            let terms = |info: &NodeInfo| -> Vec<_> {
                info.affinity_terms().iter().map(|count| (count.terms().number(), count.pods())).collect()
            };
            let same = node.requested() == counted.requested()
                && node.non_zero_requested() == counted.non_zero_requested()
                && node.used_ports() == counted.used_ports()
                && claims(&node) == claims(&counted)
                && classes(&node) == classes(&counted)
                && terms(&node) == terms(&counted);
            if !same {
                found.push(Misplaced::Sums { node: node.name().to_owned() });
            }
        }
    }
}

fn name(place: Place) -> &'static str {
    match place {
        Place::Active => "activeQ",
        Place::Backoff => "podBackoffQ",
        Place::ErrorBackoff => "podErrorBackoffQ",
        Place::Unschedulable => "unschedulablePods",
    }
}
