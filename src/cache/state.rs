//! What the cache's lock guards, and every change of it.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::images::Images;
use super::node_tree::{NodeTree, zone_key};
use super::nodes::{Change, Nodes, Slot, SlotId};
use super::{CacheError, CachedPod, Counts, PodAdded, PodRef};
use crate::k8s::{Node, Pod};
use crate::model::{NodeInfo, NodeOrdinal, PodInfo, Snapshot};

/// A pod, as the key under which its UID finds it.
#[derive(Debug)]
struct ByUid(Arc<PodInfo>);

impl Borrow<str> for ByUid {
    fn borrow(&self) -> &str {
        self.0.uid()
    }
}

impl PartialEq for ByUid {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid() == other.0.uid()
    }
}

impl Eq for ByUid {}

impl Hash for ByUid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid().hash(state);
    }
}

/// Location of a pod. The node's slot stays valid as long as the pod is in the cache.
#[derive(Clone, Copy, Debug)]
struct PodLocation {
    node: SlotId,
    assumed: bool,
}

/// Nodes, pods and what is counted over all of them.
#[derive(Debug, Default)]
pub(super) struct State {
    nodes: Nodes,
    tree: NodeTree,
    images: Images,
    /// Looked up only; iterated only to be sorted.
    pods: HashMap<ByUid, PodLocation>,
    assumed: usize,
}

impl State {
    pub(super) fn counts(&self) -> Counts {
        Counts { nodes: self.nodes.len(), pods: self.pods.len(), assumed_pods: self.assumed }
    }

    #[expect(clippy::disallowed_methods, reason = "sorted right after")]
    pub(super) fn pods(&self) -> Vec<CachedPod> {
        let pods = self.pods.iter().map(|(pod, place)| CachedPod {
            pod: pod.0.clone(),
            node: self.nodes.slot(place.node).info.name_arc().clone(),
            assumed: place.assumed,
        });
        let mut pods: Vec<CachedPod> = pods.collect();
        pods.sort_by(|a, b| a.pod.uid().cmp(b.pod.uid()));
        pods
    }

    pub(super) fn nodes(&self) -> Vec<Arc<NodeInfo>> {
        let mut nodes: Vec<Arc<NodeInfo>> = self.nodes.iter().map(|slot| slot.info.clone()).collect();
        nodes.sort_by(|a, b| a.name().cmp(b.name()));
        nodes
    }

    pub(super) fn node(&self, name: &str) -> Option<Arc<NodeInfo>> {
        self.nodes.find(name).map(|id| self.nodes.slot(id).info.clone())
    }

    /// Adds a node or replaces it.
    pub(super) fn set_node(&mut self, node: Arc<Node>) -> Arc<NodeInfo> {
        let id = self.nodes.find_or_insert(node.name());
        self.set_zone(id, &zone_key(&node));
        let info = &self.nodes.slot(id).info;
        let images = match info.try_node() {
            Some(old) => self.images.report(old, info.images(), &node),
            None => Some(self.images.add(&node)),
        };
        self.nodes.change(id, Change::Set(node, images));
        self.nodes.slot(id).info.clone()
    }

    /// Puts a node under a zone, at its end; one that is there already keeps its place.
    fn set_zone(&mut self, id: SlotId, zone: &str) {
        if let Some(old) = self.nodes.slot_mut(id).zone.take() {
            if *old == *zone {
                self.nodes.slot_mut(id).zone = Some(old);
                return;
            }
            self.tree.remove(&old, id);
        }
        self.nodes.slot_mut(id).zone = Some(self.tree.add(zone, id));
    }

    /// Removes a node; its entry stays as long as there are pods on it.
    pub(super) fn remove_node(&mut self, node: &Node) -> Result<(), CacheError> {
        let id = self.nodes.find(node.name()).ok_or_else(|| CacheError::NoSuchNode(Arc::from(node.name())))?;
        let zone = self.nodes.slot_mut(id).zone.take();
        self.images.remove(self.nodes.slot(id).info.images());
        if self.nodes.slot(id).info.pods().is_empty() {
            self.nodes.remove(id);
        } else {
            self.nodes.change(id, Change::Unset);
        }
        let Some(zone) = zone else {
            return Err(CacheError::NotInTree { name: Arc::from(node.name()), zone: zone_key(node).into() });
        };
        self.tree.remove(&zone, id);
        Ok(())
    }

    pub(super) fn assume(&mut self, pod: Arc<PodInfo>) -> Result<(), CacheError> {
        if self.place(pod.pod())?.is_some() {
            return Err(CacheError::AlreadyCached(PodRef::of(pod.pod())));
        }
        self.put(pod, true);
        Ok(())
    }

    pub(super) fn forget(&mut self, pod: &Pod) -> Result<(), CacheError> {
        let Some(place) = self.place(pod)? else { return Ok(()) };
        let cached = self.nodes.slot(place.node).info.name_arc();
        let claimed = pod.node_name().unwrap_or_default();
        if **cached != *claimed {
            return Err(CacheError::ForgottenElsewhere {
                pod: PodRef::of(pod),
                claimed: Arc::from(claimed),
                cached: cached.clone(),
            });
        }
        if !place.assumed {
            return Err(CacheError::NotAssumed(PodRef::of(pod)));
        }
        self.take(pod.uid());
        Ok(())
    }

    pub(super) fn add(&mut self, pod: Arc<PodInfo>) -> Result<PodAdded, CacheError> {
        let Some(place) = self.place(pod.pod())? else {
            self.put(pod, false);
            return Ok(PodAdded::New);
        };
        if !place.assumed {
            return Err(CacheError::AlreadyAdded(PodRef::of(pod.pod())));
        }
        let assumed = self.nodes.slot(place.node).info.name_arc().clone();
        let confirmed = *assumed == *pod.pod().node_name().unwrap_or_default();
        self.take(pod.uid());
        self.put(pod, false);
        Ok(if confirmed { PodAdded::Confirmed } else { PodAdded::Moved { assumed } })
    }

    pub(super) fn update(&mut self, old: &Pod, new: Arc<PodInfo>) -> Result<(), CacheError> {
        let place = self.place(old)?.ok_or_else(|| CacheError::UnknownUpdated(PodRef::of(old)))?;
        if place.assumed {
            return Err(CacheError::AssumedUpdated(PodRef::of(old)));
        }
        let cached = self.nodes.slot(place.node).info.name_arc();
        let claimed = new.pod().node_name().unwrap_or_default();
        if **cached != *claimed {
            return Err(CacheError::Corrupted {
                doing: "Pod updated on a different node than previously added to",
                pod: PodRef::of(old),
                cached: cached.clone(),
                claimed: Arc::from(claimed),
            });
        }
        if new.uid() != old.uid() && self.place(new.pod())?.is_some() {
            return Err(CacheError::AlreadyAdded(PodRef::of(new.pod())));
        }
        self.take(old.uid());
        self.put(new, false);
        Ok(())
    }

    pub(super) fn remove(&mut self, pod: &Pod) -> Result<(), CacheError> {
        let place = self.place(pod)?.ok_or_else(|| CacheError::UnknownRemoved(PodRef::of(pod)))?;
        let cached = self.nodes.slot(place.node).info.name_arc();
        // A pod whose deletion was missed is known from its last state, in which it may not have had a node yet.
        if let Some(claimed) = pod.node_name().filter(|claimed| **cached != **claimed) {
            return Err(CacheError::Corrupted {
                doing: "Pod was added to a different node than it was assumed",
                pod: PodRef::of(pod),
                cached: cached.clone(),
                claimed: Arc::from(claimed),
            });
        }
        self.take(pod.uid());
        Ok(())
    }

    pub(super) fn is_assumed(&self, pod: &Pod) -> Result<bool, CacheError> {
        Ok(self.place(pod)?.is_some_and(|place| place.assumed))
    }

    pub(super) fn get(&self, pod: &Pod) -> Result<Arc<PodInfo>, CacheError> {
        self.place(pod)?;
        let found = self.pods.get_key_value(pod.uid());
        found.map(|(pod, _)| pod.0.clone()).ok_or_else(|| CacheError::NoSuchPod(PodRef::of(pod)))
    }

    /// Brings a snapshot up to date: walks from the most recently changed entry to the first that the snapshot has. Follows
    /// `pkg/scheduler/backend/cache/cache.go#cacheImpl.UpdateSnapshot @v1.36.3`, also in that the list is made anew only
    /// when a node came or went: one that changed its zone keeps its place until then.
    pub(super) fn update_snapshot(&mut self, snapshot: &mut Snapshot) -> Result<(), CacheError> {
        let mut came = false;
        let mut next = self.nodes.newest();
        while let Some(id) = next.filter(|id| self.nodes.slot(*id).info.generation() > snapshot.generation()) {
            next = self.nodes.older(id);
            if self.nodes.slot(id).zone.is_none() {
                continue;
            }
            self.refresh_images(id);
            match snapshot.ordinal(self.nodes.slot(id).info.name()) {
                Some(ordinal) => bring_up_to_date(snapshot, ordinal, self.nodes.slot(id)),
                None => came = true,
            }
            self.nodes.restart_log(id);
        }
        if let Some(newest) = self.nodes.newest() {
            snapshot.set_generation(self.nodes.slot(newest).info.generation());
        }
        if came || snapshot.len() > self.tree.len() {
            let nodes = self.in_order(|info| snapshot.get(info.name()).unwrap_or(info).clone());
            snapshot.set_nodes(nodes);
        }
        debug_assert!(self.is_current(snapshot), "the snapshot has the newest generation");
        if snapshot.len() == self.tree.len() {
            return Ok(());
        }
        let error = CacheError::InconsistentSnapshot {
            listed: snapshot.len(),
            in_tree: self.tree.len(),
            mapped: snapshot.len(),
            cached: self.nodes.len(),
        };
        snapshot.set_nodes(self.in_order(Arc::clone));
        Err(error)
    }

    /// Whether the snapshot has the generation of the node that changed last.
    fn is_current(&self, snapshot: &Snapshot) -> bool {
        self.nodes.newest().is_none_or(|newest| self.nodes.slot(newest).info.generation() == snapshot.generation())
    }

    fn in_order(&self, info: impl Fn(&Arc<NodeInfo>) -> Arc<NodeInfo>) -> Vec<Arc<NodeInfo>> {
        self.tree.order().into_iter().map(|id| info(&self.nodes.slot(id).info)).collect()
    }

    /// Fixes the image counts that a snapshot sees of a changed entry. Entries that did not change keep the counts of when
    /// they did, as upstream has it; so this is no change of the entry by itself.
    fn refresh_images(&mut self, id: SlotId) {
        let version = self.images.version();
        let slot = self.nodes.slot_mut(id);
        if slot.images_version == version {
            return;
        }
        slot.images_version = version;
        if let Some(images) = self.images.refresh(slot.info.images()) {
            Arc::make_mut(&mut slot.info).set_images(images);
        }
    }

    fn place(&self, pod: &Pod) -> Result<Option<PodLocation>, CacheError> {
        if pod.uid().is_empty() {
            return Err(CacheError::EmptyUid);
        }
        Ok(self.pods.get(pod.uid()).copied())
    }

    /// Puts a pod that is not in the cache onto its node, known or not.
    fn put(&mut self, pod: Arc<PodInfo>, assumed: bool) {
        let node = self.nodes.find_or_insert(pod.pod().node_name().unwrap_or_default());
        self.nodes.change(node, Change::Put(pod.clone()));
        self.assumed += usize::from(assumed);
        let before = self.pods.insert(ByUid(pod), PodLocation { node, assumed });
        debug_assert!(before.is_none(), "a pod is in the cache once");
    }

    /// Takes a pod off its node; the entry of a node that is not known goes with its last pod.
    fn take(&mut self, uid: &str) {
        let (pod, place) = self.pods.remove_entry(uid).expect("the caller looked the pod up");
        self.assumed -= usize::from(place.assumed);
        self.nodes.change(place.node, Change::Take(pod.0));
        let slot = self.nodes.slot(place.node);
        if slot.info.pods().is_empty() && slot.info.try_node().is_none() {
            self.nodes.remove(place.node);
        }
        debug_assert!(self.assumed <= self.pods.len(), "assumed pods are in the cache");
    }
}

/// Repeats on a snapshot's node what has happened to the entry since, or shares the entry if not all of that is known or
/// somebody else holds the snapshot's node.
fn bring_up_to_date(snapshot: &mut Snapshot, ordinal: NodeOrdinal, slot: &Slot) {
    let known = slot.logged_from == Some(snapshot.node(ordinal).generation());
    let repeated = known
        && snapshot.change(ordinal, |node| {
            slot.log.iter().for_each(|change| change.apply(node));
            node.set_images(slot.info.images_arc().clone());
            node.set_generation(slot.info.generation());
        });
    if !repeated {
        snapshot.replace(ordinal, slot.info.clone());
    }
}
