//! Views of the queue's contents, for checks, debugging and tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pods::Slot;
use super::state::State;
use super::{Place, Queue};
use crate::clock::Mono;
use crate::model::PodInfo;

/// Contents of the queue at one moment.
#[derive(Clone, Debug)]
pub struct QueueDump {
    /// The number of pods in each place, in upstream's format.
    pub summary: String,
    /// The queued pods, by place, then by `namespace/name`.
    pub pods: Vec<DumpedPod>,
    /// The pods in flight, in the order in which they were popped.
    pub in_flight: Vec<Arc<PodInfo>>,
    /// Number of events kept for the pods in flight.
    pub in_flight_events: usize,
}

/// A queued pod in a [`QueueDump`].
#[derive(Clone, Debug)]
pub struct DumpedPod {
    /// The pod with its parsed data.
    pub pod: Arc<PodInfo>,
    /// The place that holds the pod.
    pub place: Place,
    /// Number of times the pod was popped.
    pub attempts: usize,
    /// When the pod was added, or when its last attempt failed.
    pub timestamp: Mono,
    /// When the pod's backoff ends, if it has one.
    pub backoff_expiration: Option<Mono>,
    /// The plugins that rejected the pod, sorted by name.
    pub rejectors: Vec<Arc<str>>,
    /// The plugin that gates the pod.
    pub gating_plugin: Option<Arc<str>>,
}

impl Queue {
    /// Returns the place of the pod with this UID, or `None` if it is not queued. Searches the whole queue.
    pub fn locate(&self, uid: &str) -> Option<Place> {
        self.places().into_iter().find(|(pod, _)| pod.uid() == uid).map(|(_, place)| place)
    }

    /// Returns all queued pods with their places, by place, then by `namespace/name`. Pods in flight are not included.
    pub fn places(&self) -> Vec<(Arc<PodInfo>, Place)> {
        let state = self.lock();
        let slots = state.slots_in_order();
        slots
            .into_iter()
            .map(|slot| state.pods.get(slot))
            .map(|record| (record.info.pod.clone(), record.place()))
            .collect()
    }

    /// Returns the number of pods in `place`.
    pub fn len(&self, place: Place) -> usize {
        self.lock().pods.len(place)
    }

    /// Whether no pod is queued. Pods may be in flight.
    pub fn is_empty(&self) -> bool {
        Place::ALL.iter().all(|place| self.len(*place) == 0)
    }

    /// Returns the pods in flight, in the order in which they were popped. Empty with `SchedulerQueueingHints` off.
    pub fn in_flight_pods(&self) -> Vec<Arc<PodInfo>> {
        self.lock().in_flight.pods()
    }

    /// Returns all queued pods and a summary with the number of pods in each place.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.PendingPods @v1.36.3`.
    pub fn pending_pods(&self) -> (Vec<Arc<PodInfo>>, String) {
        let state = self.lock();
        let pods = state.slots_in_order().into_iter().map(|slot| state.pods.get(slot).info.pod.clone()).collect();
        (pods, state.summary())
    }

    /// Returns everything that the queue holds at this moment.
    pub fn dump(&self) -> QueueDump {
        let state = self.lock();
        QueueDump {
            summary: state.summary(),
            pods: state.slots_in_order().into_iter().map(|slot| state.dump(slot)).collect(),
            in_flight: state.in_flight.pods(),
            in_flight_events: state.in_flight.events(),
        }
    }
}

impl State {
    /// Returns the queued pods by place, then by key.
    fn slots_in_order(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for place in Place::ALL {
            let by_key: BTreeMap<Arc<str>, Slot> = self
                .pods
                .slots(place)
                .into_iter()
                .map(|slot| (self.pods.get(slot).info.pod.key().clone(), slot))
                .collect();
            slots.extend(by_key.into_values());
        }
        slots
    }

    /// Formats the number of pods in each place.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#pendingPodsSummary @v1.36.3`.
    fn summary(&self) -> String {
        format!(
            "activeQ:{}; backoffQ:{}; unschedulablePods:{}",
            self.pods.len(Place::Active),
            self.pods.len(Place::Backoff) + self.pods.len(Place::ErrorBackoff),
            self.pods.len(Place::Unschedulable)
        )
    }

    fn dump(&self, slot: Slot) -> DumpedPod {
        let record = self.pods.get(slot);
        DumpedPod {
            pod: record.info.pod.clone(),
            place: record.place(),
            attempts: record.info.attempts,
            timestamp: record.info.timestamp,
            backoff_expiration: record.expiration(),
            rejectors: record.info.rejector_plugins().cloned().collect(),
            gating_plugin: record.info.gating_plugin.clone(),
        }
    }
}
