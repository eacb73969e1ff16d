//! State behind the cache's lock, and all operations that change it.

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

/// A pod as a map key that is compared and hashed by UID.
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

/// Node and state of a cached pod. The node's entry lives at least as long as its pods, so the id stays valid.
#[derive(Clone, Copy, Debug)]
struct PodLocation {
    node: SlotId,
    assumed: bool,
}

/// All nodes and pods, and the counts over them.
#[derive(Debug, Default)]
pub(super) struct State {
    nodes: Nodes,
    tree: NodeTree,
    images: Images,
    /// Location of each pod. Iterated only where the result is sorted.
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

    /// Adds or replaces a node, and returns its entry.
    pub(super) fn set_node(&mut self, node: Arc<Node>) -> Arc<NodeInfo> {
        let id = self.nodes.find_or_insert(node.name());
        self.set_zone(id, &zone_key(&node));
        let info = &self.nodes.slot(id).info;
        let images = match info.try_node() {
            Some(old) => self.images.report(old, info.images(), &node),
            None => Some(self.images.add(&node)),
        };
        self.nodes.change(id, Change::SetNode(node, images));
        self.nodes.slot(id).info.clone()
    }

    /// Moves a node to the end of a zone. A node that is already in the zone keeps its position.
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

    /// Removes a node from the cache. Its entry stays as long as it has pods.
    pub(super) fn remove_node(&mut self, node: &Node) -> Result<(), CacheError> {
        let id = self.nodes.find(node.name()).ok_or_else(|| CacheError::NoSuchNode(Arc::from(node.name())))?;
        let zone = self.nodes.slot_mut(id).zone.take();
        self.images.remove(self.nodes.slot(id).info.images());
        if self.nodes.slot(id).info.pods().is_empty() {
            self.nodes.remove(id);
        } else {
            self.nodes.change(id, Change::RemoveNode);
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
        // If the deletion event was missed, `pod` is the last state that was observed, which may not have a node.
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

    /// Updates a snapshot: walks from the most recently changed entry to the first entry that the snapshot already has.
    /// Follows `pkg/scheduler/backend/cache/cache.go#cacheImpl.UpdateSnapshot @v1.36.3`. As upstream, the list of nodes is
    /// rebuilt only when a node was added or removed. A node that changed its zone keeps its position until then.
    pub(super) fn update_snapshot(&mut self, snapshot: &mut Snapshot) -> Result<(), CacheError> {
        let mut has_new_node = false;
        let mut next = self.nodes.newest();
        while let Some(id) = next.filter(|id| self.nodes.slot(*id).info.generation() > snapshot.generation()) {
            next = self.nodes.older(id);
            if self.nodes.slot(id).zone.is_none() {
                continue;
            }
            self.refresh_images(id);
            match snapshot.ordinal(self.nodes.slot(id).info.name()) {
                Some(ordinal) => bring_up_to_date(snapshot, ordinal, self.nodes.slot(id)),
                None => has_new_node = true,
            }
            self.nodes.restart_log(id);
        }
        if let Some(newest) = self.nodes.newest() {
            snapshot.set_generation(self.nodes.slot(newest).info.generation());
        }
        if has_new_node || snapshot.len() > self.tree.len() {
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

    /// Returns whether the snapshot has the generation of the node that changed last.
    fn is_current(&self, snapshot: &Snapshot) -> bool {
        self.nodes.newest().is_none_or(|newest| self.nodes.slot(newest).info.generation() == snapshot.generation())
    }

    fn in_order(&self, info: impl Fn(&Arc<NodeInfo>) -> Arc<NodeInfo>) -> Vec<Arc<NodeInfo>> {
        self.tree.order().into_iter().map(|id| info(&self.nodes.slot(id).info)).collect()
    }

    /// Updates the image counts of an entry that changed, before a snapshot copies it. As upstream, entries keep the counts
    /// from the time of their last change, so this update gives the entry no new generation.
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

    /// Adds a pod that is not in the cache to its node's entry, which is created if there is none.
    fn put(&mut self, pod: Arc<PodInfo>, assumed: bool) {
        let node = self.nodes.find_or_insert(pod.pod().node_name().unwrap_or_default());
        self.nodes.change(node, Change::AddPod(pod.clone()));
        self.assumed += usize::from(assumed);
        let before = self.pods.insert(ByUid(pod), PodLocation { node, assumed });
        debug_assert!(before.is_none(), "a pod is in the cache once");
    }

    /// Removes a pod from its node's entry. An entry without a node is removed with its last pod.
    fn take(&mut self, uid: &str) {
        let (pod, place) = self.pods.remove_entry(uid).expect("the caller looked the pod up");
        self.assumed -= usize::from(place.assumed);
        self.nodes.change(place.node, Change::RemovePod(pod.0));
        let slot = self.nodes.slot(place.node);
        if slot.info.pods().is_empty() && slot.info.try_node().is_none() {
            self.nodes.remove(place.node);
        }
        debug_assert!(self.assumed <= self.pods.len(), "assumed pods are in the cache");
    }
}

/// Updates one node of a snapshot. Applies the entry's logged changes to the snapshot's own copy. If the log is incomplete, or
/// something else holds a reference to the snapshot's copy, the snapshot shares the entry instead.
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
