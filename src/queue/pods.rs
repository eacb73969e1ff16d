//! Records of all queued pods, each in exactly one place.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::backoff::Backoff;
use super::heap::{Arena, Heap};
use super::plugin_set::{PluginId, PluginSet};
use super::{Place, QueuedPodInfo};
use crate::clock::Mono;
use crate::framework::QueueSortPlugin;

/// Index in the slab of records.
pub(super) type Slot = u32;

/// Timestamp and arrival number of a pod. Pods are in this order wherever upstream iterates over a map.
pub(super) type Arrival = (Mono, u64);

/// Class of pods in unschedulablePods. An event matters to all pods of a class or to none of them. If it matters,
/// pre-checks and hints decide about each pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventClass {
    /// Index of the pod's profile. `None` if no profile has its scheduler name.
    pub(super) profile: Option<usize>,
    /// The plugin that gates the pod.
    pub(super) gating: Option<PluginId>,
    /// The plugins that rejected the pod.
    pub(super) rejectors: PluginSet,
}

/// A queued pod, with data that is valid until the pod moves.
#[derive(Debug)]
pub(super) struct PodRecord {
    pub(super) info: QueuedPodInfo,
    pub(super) class: EventClass,
    place: Place,
    /// Position in the heap. Unused in unschedulablePods.
    position: usize,
    /// When the pod's backoff ends.
    expiration: Option<Mono>,
}

/// Order of the pods in the heaps.
pub(super) struct Sorting {
    pub(super) plugin: Arc<dyn QueueSortPlugin>,
    /// Whether pods of podBackoffQ that expire in the same window are ordered as in activeQ.
    pub(super) windows: bool,
}

/// The records of all queued pods, indexed by key and by place. A pod has one record, and a record is in one place.
pub(super) struct Pods {
    records: PodRecords,
    by_key: HashMap<Arc<str>, Slot>,
    active: Heap,
    backoff: Heap,
    error_backoff: Heap,
    unschedulable: Unschedulable,
    free: Vec<Slot>,
}

/// Slab of the queued pods, with the order of the heaps.
struct PodRecords {
    slots: Vec<Option<PodRecord>>,
    sorting: Sorting,
}

/// A heap's view of the records.
struct Ordered<'a>(&'a mut PodRecords, Place);

/// unschedulablePods, grouped by class so that an event touches only the classes that it could help.
#[derive(Default)]
struct Unschedulable {
    all: BTreeMap<Arrival, Slot>,
    classes: BTreeMap<EventClass, BTreeMap<Arrival, Slot>>,
}

impl Pods {
    pub(super) fn new(sorting: Sorting) -> Self {
        Self {
            records: PodRecords { slots: Vec::new(), sorting },
            by_key: HashMap::new(),
            active: Heap::default(),
            backoff: Heap::default(),
            error_backoff: Heap::default(),
            unschedulable: Unschedulable::default(),
            free: Vec::new(),
        }
    }

    /// Returns the slot of the pod `namespace/name`.
    pub(super) fn find(&self, key: &str) -> Option<Slot> {
        self.by_key.get(key).copied()
    }

    pub(super) fn get(&self, slot: Slot) -> &PodRecord {
        self.records.get(slot)
    }

    /// Returns the number of pods in `place`.
    pub(super) fn len(&self, place: Place) -> usize {
        match place {
            Place::Unschedulable => self.unschedulable.all.len(),
            heap => self.heap(heap).len(),
        }
    }

    /// Returns the first pod of activeQ or a backoff queue.
    pub(super) fn first(&self, place: Place) -> Option<Slot> {
        self.heap(place).peek()
    }

    /// Inserts a pod, which must not be queued yet, into `place`.
    pub(super) fn insert(&mut self, mut info: QueuedPodInfo, class: EventClass, place: Place, backoff: &Backoff) {
        let key = info.pod.key().clone();
        let expiration = backoff.expiration(&mut info);
        let arrival = info.arrival();
        let record = PodRecord { info, class, place, position: 0, expiration };
        let slot = self.allocate(record);
        let before = self.by_key.insert(key, slot);
        debug_assert!(before.is_none(), "a pod is in one place");
        match place {
            Place::Active => self.active.push(slot, &mut Ordered(&mut self.records, place)),
            Place::Backoff => self.backoff.push(slot, &mut Ordered(&mut self.records, place)),
            Place::ErrorBackoff => self.error_backoff.push(slot, &mut Ordered(&mut self.records, place)),
            Place::Unschedulable => self.unschedulable.insert(&self.records.get(slot).class, arrival, slot),
        }
        debug_assert!(self.every_pod_is_in_one_place(), "as many pods are in all places as are known by key");
    }

    /// Whether the places together hold as many pods as are known by key.
    fn every_pod_is_in_one_place(&self) -> bool {
        let places = [Place::Active, Place::Backoff, Place::ErrorBackoff, Place::Unschedulable];
        places.into_iter().map(|place| self.len(place)).sum::<usize>() == self.by_key.len()
    }

    /// Removes a pod from its place.
    pub(super) fn remove(&mut self, slot: Slot) -> PodRecord {
        let PodRecord { place, position, .. } = *self.get(slot);
        match place {
            Place::Active => self.active.remove(position, &mut Ordered(&mut self.records, place)),
            Place::Backoff => self.backoff.remove(position, &mut Ordered(&mut self.records, place)),
            Place::ErrorBackoff => self.error_backoff.remove(position, &mut Ordered(&mut self.records, place)),
            Place::Unschedulable => {
                let record = self.records.get(slot);
                self.unschedulable.remove(&record.class, record.info.arrival());
            }
        }
        let record = self.records.slots[slot as usize].take().expect("the slot is filled");
        self.by_key.remove(record.info.pod.key());
        self.free.push(slot);
        debug_assert!(self.every_pod_is_in_one_place(), "as many pods are in all places as are known by key");
        record
    }

    /// Changes a pod and restores the order of its heap. The pod's key, arrival and backoff must not change.
    pub(super) fn change(&mut self, slot: Slot, change: impl FnOnce(&mut QueuedPodInfo)) {
        let record = self.records.get_mut(slot);
        change(&mut record.info);
        let PodRecord { place, position, .. } = *record;
        match place {
            Place::Active => self.active.fix(position, &mut Ordered(&mut self.records, place)),
            Place::Backoff => self.backoff.fix(position, &mut Ordered(&mut self.records, place)),
            Place::ErrorBackoff => self.error_backoff.fix(position, &mut Ordered(&mut self.records, place)),
            Place::Unschedulable => {}
        }
    }

    /// Returns the pods in `place`. Those in unschedulablePods are in order of arrival, the others in no particular order.
    pub(super) fn slots(&self, place: Place) -> Vec<Slot> {
        match place {
            Place::Unschedulable => self.unschedulable.all.values().copied().collect(),
            heap => self.heap(heap).slots().to_vec(),
        }
    }

    /// Returns the pods in unschedulablePods whose class passes `could_help`, in order of arrival.
    pub(super) fn unschedulable_of(&self, mut could_help: impl FnMut(&EventClass) -> bool) -> Vec<Slot> {
        let mut found: Vec<(Arrival, Slot)> = Vec::new();
        let mut classes = 0;
        for (_, pods) in self.unschedulable.classes.iter().filter(|(class, _)| could_help(class)) {
            found.extend(pods.iter().map(|(arrival, slot)| (*arrival, *slot)));
            classes += 1;
        }
        if classes > 1 {
            found.sort_unstable();
        }
        found.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Returns the earliest timestamp of a pod in unschedulablePods whose class passes `counts`.
    pub(super) fn oldest_unschedulable(&self, mut counts: impl FnMut(&EventClass) -> bool) -> Option<Mono> {
        let classes = self.unschedulable.classes.iter().filter(|(class, _)| counts(class));
        classes.filter_map(|(_, pods)| pods.first_key_value()).map(|((timestamp, _), _)| *timestamp).min()
    }

    /// Returns the pods in unschedulablePods that arrived before `before`, in order of arrival.
    pub(super) fn unschedulable_since(&self, before: Mono) -> Vec<Slot> {
        self.unschedulable.all.range(..(before, 0)).map(|(_, slot)| *slot).collect()
    }

    fn heap(&self, place: Place) -> &Heap {
        match place {
            Place::Active => &self.active,
            Place::Backoff => &self.backoff,
            Place::ErrorBackoff => &self.error_backoff,
            Place::Unschedulable => unreachable!("unschedulablePods is no heap"),
        }
    }

    fn allocate(&mut self, record: PodRecord) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.records.slots[slot as usize] = Some(record);
            return slot;
        }
        let slot = Slot::try_from(self.records.slots.len()).expect("there are fewer than 2^32 pods");
        self.records.slots.push(Some(record));
        slot
    }
}

impl PodRecord {
    /// Returns the place of the pod.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Returns when the pod's backoff ends, if it has one.
    pub(super) fn expiration(&self) -> Option<Mono> {
        self.expiration
    }
}

impl QueuedPodInfo {
    fn arrival(&self) -> Arrival {
        (self.timestamp, self.order)
    }
}

impl PodRecords {
    fn get(&self, slot: Slot) -> &PodRecord {
        self.slots[slot as usize].as_ref().expect("the slot is filled")
    }

    fn get_mut(&mut self, slot: Slot) -> &mut PodRecord {
        self.slots[slot as usize].as_mut().expect("the slot is filled")
    }
}

impl Sorting {
    /// Whether `a` comes before `b` in activeQ. Pods that the plugin considers equal and that have the same timestamp are ordered
    /// by arrival. Upstream leaves their order to its heap.
    fn active(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        self.plugin.less(a.sort_key(), b.sort_key())
            || (a.timestamp == b.timestamp && a.order < b.order && !self.plugin.less(b.sort_key(), a.sort_key()))
    }

    /// Whether `a` comes before `b` in podBackoffQ.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.lessBackoffCompletedWithPriority @v1.36.3`.
    fn backoff(&self, a: &PodRecord, b: &PodRecord) -> bool {
        if a.expiration == b.expiration && self.windows {
            return self.active(&a.info, &b.info);
        }
        Self::error_backoff(a, b)
    }

    /// Whether `a` comes before `b` in podErrorBackoffQ.
    /// Follows `pkg/scheduler/backend/queue/backoff_queue.go#backoffQueue.lessBackoffCompleted @v1.36.3`.
    fn error_backoff(a: &PodRecord, b: &PodRecord) -> bool {
        (a.expiration, a.info.arrival()) < (b.expiration, b.info.arrival())
    }
}

impl Arena for Ordered<'_> {
    fn moved(&mut self, slot: Slot, position: usize) {
        self.0.get_mut(slot).position = position;
    }

    fn before(&self, a: Slot, b: Slot) -> bool {
        let (a, b) = (self.0.get(a), self.0.get(b));
        match self.1 {
            Place::Active => self.0.sorting.active(&a.info, &b.info),
            Place::Backoff => self.0.sorting.backoff(a, b),
            Place::ErrorBackoff => Sorting::error_backoff(a, b),
            Place::Unschedulable => unreachable!("unschedulablePods is no heap"),
        }
    }
}

impl Unschedulable {
    fn insert(&mut self, class: &EventClass, arrival: Arrival, slot: Slot) {
        self.all.insert(arrival, slot);
        match self.classes.get_mut(class) {
            Some(pods) => {
                pods.insert(arrival, slot);
            }
            None => {
                self.classes.insert(class.clone(), BTreeMap::from([(arrival, slot)]));
            }
        }
    }

    fn remove(&mut self, class: &EventClass, arrival: Arrival) {
        self.all.remove(&arrival);
        if let Some(pods) = self.classes.get_mut(class) {
            pods.remove(&arrival);
            if pods.is_empty() {
                self.classes.remove(class);
            }
        }
    }
}
