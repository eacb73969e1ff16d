//! Pods in their scheduling cycle, and the events that arrived since each of them was popped.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::hints::EventPlan;
use crate::k8s::Pod;
use crate::metrics::{EVENT_POD_POPPED, Metrics};
use crate::model::{EventObjects, PodInfo};

/// An event that arrived while a pod was in flight.
pub(super) struct MissedEvent {
    pub(super) plan: Arc<EventPlan>,
    pub(super) objects: EventObjects,
}

/// An entry of the list: the marker of a pod, after which its events begin, or an event.
enum Entry {
    Marker,
    /// Marker of a pod that is done. It is removed once all entries before it are.
    Done,
    Event(Box<MissedEvent>),
}

/// A pod that is hashed and compared by its UID.
struct ByUid(Arc<PodInfo>);

/// List of markers and events in order of arrival. An event is kept while any pod that was popped before it is in flight.
/// Follows `pkg/scheduler/backend/queue/active_queue.go#activeQueue @v1.36.3` (`inFlightPods` and `inFlightEvents`).
pub(super) struct InFlight {
    entries: VecDeque<Entry>,
    /// Number of the first entry. Entries are numbered consecutively.
    first: u64,
    /// Number of each pod's marker.
    markers: HashMap<ByUid, u64>,
    /// Pods in flight by `namespace/name`. If several share a name, the last popped one.
    by_key: HashMap<Arc<str>, Arc<PodInfo>>,
    popped: std::sync::OnceLock<prometheus::IntGauge>,
    metrics: Arc<Metrics>,
}

impl Borrow<str> for ByUid {
    fn borrow(&self) -> &str {
        self.0.uid()
    }
}

impl Hash for ByUid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid().hash(state);
    }
}

impl PartialEq for ByUid {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid() == other.0.uid()
    }
}

impl Eq for ByUid {}

impl InFlight {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            markers: HashMap::new(),
            by_key: HashMap::new(),
            popped: std::sync::OnceLock::new(),
            metrics,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.markers.is_empty()
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.markers.contains_key(uid)
    }

    /// Returns the pod in flight with the key `namespace/name`.
    pub(super) fn find(&self, key: &str) -> Option<&Arc<PodInfo>> {
        self.by_key.get(key)
    }

    /// Returns all pods in flight, in the order in which they were popped.
    #[expect(clippy::disallowed_methods, reason = "sorted right after")]
    pub(super) fn pods(&self) -> Vec<Arc<PodInfo>> {
        let mut pods: Vec<(u64, &Arc<PodInfo>)> = self.markers.iter().map(|(pod, number)| (*number, &pod.0)).collect();
        pods.sort_unstable_by_key(|(number, _)| *number);
        pods.into_iter().map(|(_, pod)| pod.clone()).collect()
    }

    /// Marks a pod as in flight. Returns false if a pod with its UID is in flight already.
    pub(super) fn insert(&mut self, pod: &Arc<PodInfo>) -> bool {
        if self.contains(pod.uid()) {
            return false;
        }
        self.markers.insert(ByUid(pod.clone()), self.next());
        self.by_key.insert(pod.key().clone(), pod.clone());
        self.entries.push_back(Entry::Marker);
        self.popped_gauge().inc();
        true
    }

    /// Keeps an event for the pods in flight, or drops it if there are none.
    pub(super) fn push(&mut self, plan: &Arc<EventPlan>, objects: EventObjects) {
        if self.is_empty() {
            return;
        }
        plan.in_flight(&self.metrics).inc();
        self.entries.push_back(Entry::Event(Box::new(MissedEvent { plan: plan.clone(), objects })));
    }

    /// Returns the events since the pod was popped, in order, or `None` if the pod is not in flight.
    pub(super) fn missed(&self, uid: &str) -> Option<impl Iterator<Item = &MissedEvent>> {
        let number = *self.markers.get(uid)?;
        let after = usize::try_from(number - self.first).expect("the list fits into memory") + 1;
        Some(self.entries.range(after..).filter_map(|entry| match entry {
            Entry::Event(event) => Some(&**event),
            Entry::Marker | Entry::Done => None,
        }))
    }

    /// Removes a pod and the events that no other pod needs. Does nothing if the pod is not in flight.
    /// Follows `pkg/scheduler/backend/queue/active_queue.go#activeQueue.unlockedDone @v1.36.3`.
    pub(super) fn done(&mut self, uid: &str) {
        let Some((ByUid(pod), number)) = self.markers.remove_entry(uid) else { return };
        if self.by_key.get(pod.key()).is_some_and(|latest| latest.uid() == uid) {
            self.by_key.remove(pod.key());
        }
        let at = usize::try_from(number - self.first).expect("the list fits into memory");
        self.entries[at] = Entry::Done;
        while let Some(Entry::Done | Entry::Event(_)) = self.entries.front() {
            if let Some(Entry::Event(event)) = self.entries.pop_front() {
                event.plan.in_flight(&self.metrics).dec();
            }
            self.first += 1;
        }
        self.popped_gauge().dec();
        debug_assert!(self.every_event_is_needed(), "events are kept for pods in flight alone");
    }

    /// Whether the list begins with the marker of a pod in flight, so that each event after it is needed.
    fn every_event_is_needed(&self) -> bool {
        matches!(self.entries.front(), None | Some(Entry::Marker))
    }

    /// Removes all pods in flight and their events.
    pub(super) fn clear(&mut self) {
        for pod in self.pods() {
            self.done(pod.uid());
        }
    }

    /// Returns the number of kept events.
    pub(super) fn events(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, Entry::Event(_))).count()
    }

    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn popped_gauge(&self) -> &prometheus::IntGauge {
        self.popped.get_or_init(|| self.metrics.inflight_events(EVENT_POD_POPPED))
    }
}

/// Creates the objects of an event that concerns only this pod.
pub(super) fn meant_for(pod: &Arc<Pod>) -> EventObjects {
    EventObjects::of_pods(None, Some(pod))
}
