//! The entries of the cache, most recently changed first.

use std::collections::HashMap;
use std::sync::Arc;

use crate::k8s::Node;
use crate::model::{ImageState, NodeInfo, PodInfo};

/// Changes of an entry that are kept for its snapshot; with more, copying the entry is no dearer than repeating them.
const LOG_LIMIT: usize = 8;

/// Where an entry is; reused once it is gone.
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

/// What can happen to an entry.
#[derive(Debug)]
pub(super) enum Change {
    /// A pod came.
    Put(Arc<PodInfo>),
    /// A pod went.
    Take(Arc<PodInfo>),
    /// The node was added or replaced; with its images, if they differ from before.
    Set(Arc<Node>, Option<Arc<[ImageState]>>),
    /// The node went, and only its pods are left.
    Unset,
}

impl Change {
    pub(super) fn apply(&self, info: &mut NodeInfo) {
        match self {
            Self::Put(pod) => info.add_pod(pod.clone()),
            Self::Take(pod) => {
                let taken = info.take_pod(pod);
                debug_assert!(taken, "a pod in the cache is on its node");
            }
            Self::Set(node, images) => {
                info.set_node(node.clone());
                if let Some(images) = images {
                    info.set_images(images.clone());
                }
            }
            Self::Unset => {
                info.remove_node();
                info.set_images(Arc::default());
            }
        }
    }
}

/// An entry: a node with its pods, or the pods of a node that is not known.
#[derive(Debug)]
pub(super) struct Slot {
    /// Copied when it changes while a snapshot shares it.
    pub(super) info: Arc<NodeInfo>,
    /// What leads from the state of generation `logged_from` to the one of now. A snapshot with that state repeats it
    /// instead of sharing the new one, so that neither side has to copy the entry, with a reference to each pod, for each
    /// pod that comes.
    pub(super) log: Vec<Change>,
    /// None if more has happened than was logged.
    pub(super) logged_from: Option<u64>,
    /// The zone under which the node is in the tree; none while the node is not known.
    pub(super) zone: Option<Arc<str>>,
    /// The version of the image counts that `info` holds.
    pub(super) images_version: u64,
    newer: Option<SlotId>,
    older: Option<SlotId>,
}

/// All entries: a slab, an index by name, and a list that runs through the slab from the most recently changed entry to
/// the least. Each change gives the entry a new generation and puts it at the head, so generations fall along the list and
/// whoever knows all entries up to some generation has to walk only as far as the first of those.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    slots: Vec<Option<Slot>>,
    free: Vec<SlotId>,
    /// Looked up only, never iterated.
    by_name: HashMap<Arc<str>, SlotId>,
    newest: Option<SlotId>,
    generation: u64,
}

impl Nodes {
    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The entry of node `name`.
    pub(super) fn find(&self, name: &str) -> Option<SlotId> {
        self.by_name.get(name).copied()
    }

    /// The entry of node `name`, made if there is none. A new one has generation 0 and is no part of the list until
    /// [`Self::change`] has been called.
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

    /// Changes an entry: new generation, head of the list.
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

    /// A snapshot has the entry as it is now.
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

    /// The most recently changed entry.
    pub(super) fn newest(&self) -> Option<SlotId> {
        self.newest
    }

    /// The entry that was changed last before this one.
    pub(super) fn older(&self, id: SlotId) -> Option<SlotId> {
        self.slot(id).older
    }

    /// All entries, most recently changed first.
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

    /// Takes an entry out of the list; does nothing to one that is not in it.
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

    /// `a` changes entry a, `-a` removes it.
    fn check(steps: &str, expected: &str) {
        let mut nodes = Nodes::default();
        for step in steps.split_whitespace() {
            if let Some(name) = step.strip_prefix('-') {
                let id = nodes.find(name).expect("it is there");
                assert_eq!(nodes.remove(id).name(), name);
            } else {
                let id = nodes.find_or_insert(step);
                nodes.change(id, Change::Unset);
            }
            let generations: Vec<u64> = nodes.iter().map(|slot| slot.info.generation()).collect();
            assert!(generations.is_sorted_by(|a, b| a > b), "{steps}: {generations:?}");
            assert_eq!(generations.len(), nodes.len());
        }
        let order: Vec<&str> = nodes.iter().map(|slot| slot.info.name()).collect();
        assert_eq!(order.join(" "), expected, "{steps}");
    }

    #[test]
    fn most_recently_changed_first() {
        check("", "");
        check("a b c", "c b a");
        check("a b c a", "a c b");
        check("a b c b", "b c a");
        check("a b c c", "c b a");
    }

    #[test]
    fn removal_at_every_place() {
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
        nodes.change(id, Change::Unset);
        let before = nodes.slot(id).info.clone();
        nodes.change(id, Change::Unset);
        assert_eq!((before.generation(), nodes.slot(id).info.generation()), (1, 2));
    }
}
