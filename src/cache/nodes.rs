//! Entries of the cache, one for each node, linked with the most recently changed first.

use std::collections::HashMap;
use std::sync::Arc;

use crate::k8s::Node;
use crate::model::{ImageState, NodeInfo, PodInfo};

/// Changes of an entry that are logged for the snapshot. Beyond this number, copying the entry costs no more than applying
/// the changes.
const LOG_LIMIT: usize = 8;

/// Index of an entry in the slab. Reused after the entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotId(u32);

impl SlotId {
    pub(super) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 nodes"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A change of an entry.
#[derive(Debug)]
pub(super) enum Change {
    /// A pod was added.
    AddPod(Arc<PodInfo>),
    /// A pod was removed.
    RemovePod(Arc<PodInfo>),
    /// The node was added or replaced. Has the node's images if they changed.
    SetNode(Arc<Node>, Option<Arc<[ImageState]>>),
    /// The node was removed, and the entry has only pods.
    RemoveNode,
}

impl Change {
    pub(super) fn apply(&self, info: &mut NodeInfo) {
        match self {
            Self::AddPod(pod) => info.add_pod(pod.clone()),
            Self::RemovePod(pod) => {
                let taken = info.take_pod(pod);
                debug_assert!(taken, "a pod in the cache is on its node");
            }
            Self::SetNode(node, images) => {
                info.set_node(node.clone());
                if let Some(images) = images {
                    info.set_images(images.clone());
                }
            }
            Self::RemoveNode => {
                info.remove_node();
                info.set_images(Arc::default());
            }
        }
    }
}

/// An entry of the cache: a node with its pods, or the pods of a node that is not in the cache.
#[derive(Debug)]
pub(super) struct Slot {
    /// The node and its pods. Copied on change while a snapshot shares it.
    pub(super) info: Arc<NodeInfo>,
    /// Changes since the generation `logged_from`. A snapshot that has the entry of this generation applies the changes to its
    /// own copy instead of sharing the new one. Otherwise each added pod would copy the entry with its references to all pods.
    pub(super) log: Vec<Change>,
    /// Generation of the entry before the first logged change. `None` if the log is incomplete.
    pub(super) logged_from: Option<u64>,
    /// Zone of the node in the node tree. `None` while the entry has no node.
    pub(super) zone: Option<Arc<str>>,
    /// Version of the image counts in `info`.
    pub(super) images_version: u64,
    newer: Option<SlotId>,
    older: Option<SlotId>,
}

/// All entries: a slab, an index by name, and a linked list from the most recently changed entry to the least. Each change
/// gives the entry a new generation and moves it to the head, so generations decrease along the list. A snapshot that is
/// up to date with some generation therefore stops at the first entry of that generation or an older one.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<Option<Slot>>,
    free: Vec<SlotId>,
    /// Index by node name, which is never iterated.
    by_name: HashMap<Arc<str>, SlotId>,
    newest: Option<SlotId>,
    generation: u64,
}

impl Nodes {
    /// Counts the entries, including those without a node.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Finds the entry of node `name`.
    pub(super) fn find(&self, name: &str) -> Option<SlotId> {
        self.by_name.get(name).copied()
    }

    /// Finds or creates the entry of node `name`. A new entry has generation 0 and is not in the list until [`Self::change`]
    /// is called for it.
    pub(super) fn find_or_insert(&mut self, name: &str) -> SlotId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let name: Arc<str> = Arc::from(name);
        let slot = Slot {
            info: Arc::new(NodeInfo::imaginary(name.clone())),
            log: Vec::new(),
            logged_from: None,
            zone: None,
            images_version: 0,
            newer: None,
            older: None,
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            SlotId::from_index(self.slots.len() - 1)
        });
        self.slots[id.index()] = Some(slot);
        self.by_name.insert(name, id);
        id
    }

    pub(super) fn slot(&self, id: SlotId) -> &Slot {
        self.slots[id.index()].as_ref().expect("ids of entries that are gone are not kept")
    }

    pub(super) fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        self.slots[id.index()].as_mut().expect("ids of entries that are gone are not kept")
    }

    /// Changes an entry, gives it a new generation and moves it to the head of the list.
    pub(super) fn change(&mut self, id: SlotId, change: Change) {
        self.generation += 1;
        let generation = self.generation;
        let slot = self.slot_mut(id);
        let info = Arc::make_mut(&mut slot.info);
        change.apply(info);
        info.set_generation(generation);
        if slot.logged_from.is_some() && slot.log.len() < LOG_LIMIT {
            slot.log.push(change);
        } else {
            slot.log.clear();
            slot.logged_from = None;
        }
        self.move_to_head(id);
    }

    /// Empties the log of an entry, after a snapshot was updated to the entry's current state.
    pub(super) fn restart_log(&mut self, id: SlotId) {
        let slot = self.slot_mut(id);
        slot.log.clear();
        slot.logged_from = Some(slot.info.generation());
    }

    /// Removes an entry, and returns it.
    pub(super) fn remove(&mut self, id: SlotId) -> Arc<NodeInfo> {
        self.unlink(id);
        let slot = self.slots[id.index()].take().expect("ids of entries that are gone are not kept");
        self.by_name.remove(slot.info.name());
        self.free.push(id);
        slot.info
    }

    /// Returns the most recently changed entry.
    pub(super) fn newest(&self) -> Option<SlotId> {
        self.newest
    }

    /// Returns the next entry of the list, which was changed before this one.
    pub(super) fn older(&self, id: SlotId) -> Option<SlotId> {
        self.slot(id).older
    }

    /// Iterates over all entries, the most recently changed first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        std::iter::successors(self.newest, |id| self.older(*id)).map(|id| self.slot(id))
    }

    fn move_to_head(&mut self, id: SlotId) {
        if self.newest == Some(id) {
            return;
        }
        self.unlink(id);
        let head = self.newest.replace(id);
        if let Some(head) = head {
            self.slot_mut(head).newer = Some(id);
        }
        let slot = self.slot_mut(id);
        slot.newer = None;
        slot.older = head;
    }

    /// Unlinks an entry from the list. Does nothing if the entry is not in the list.
    fn unlink(&mut self, id: SlotId) {
        let slot = self.slot_mut(id);
        let (newer, older) = (slot.newer.take(), slot.older.take());
        if let Some(newer) = newer {
            self.slot_mut(newer).older = older;
        } else if self.newest == Some(id) {
            self.newest = older;
        }
        if let Some(older) = older {
            self.slot_mut(older).newer = newer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs steps (`a` changes entry a, `-a` removes it) and compares the order of the list.
    fn check(steps: &str, expected: &str) {
        let mut nodes = Nodes::default();
        for step in steps.split_whitespace() {
            if let Some(name) = step.strip_prefix('-') {
                let id = nodes.find(name).expect("it is there");
                assert_eq!(nodes.remove(id).name(), name);
            } else {
                let id = nodes.find_or_insert(step);
                nodes.change(id, Change::RemoveNode);
            }
            let generations: Vec<u64> = nodes.iter().map(|slot| slot.info.generation()).collect();
            assert!(generations.is_sorted_by(|a, b| a > b), "{steps}: {generations:?}");
            assert_eq!(generations.len(), nodes.len());
        }
        let order: Vec<&str> = nodes.iter().map(|slot| slot.info.name()).collect();
        assert_eq!(order.join(" "), expected, "{steps}");
    }

    #[test]
    fn list_has_the_most_recently_changed_entry_first() {
        check("", "");
        check("a b c", "c b a");
        check("a b c a", "a c b");
        check("a b c b", "b c a");
        check("a b c c", "c b a");
    }

    #[test]
    fn removal_keeps_the_order_of_the_list() {
        check("a -a", "");
        check("a b c -a", "c b");
        check("a b c -b", "c a");
        check("a b c -c", "b a");
        check("a b c -c d -a e b", "b e d");
    }

    #[test]
    fn a_shared_entry_is_copied_before_it_changes() {
        let mut nodes = Nodes::default();
        let id = nodes.find_or_insert("a");
        nodes.change(id, Change::RemoveNode);
        let before = nodes.slot(id).info.clone();
        nodes.change(id, Change::RemoveNode);
        assert_eq!((before.generation(), nodes.slot(id).info.generation()), (1, 2));
    }
}
