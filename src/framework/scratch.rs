//! Per-node results of `Filter` that `Score` and `Reserve` read.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A plugin's own slot for one node in one cycle, with data that `Filter` computes and `Score` or `Reserve` needs. Clones share
/// the value.
#[derive(Clone, Default)]
pub struct Scratch(Option<Arc<dyn Any + Send + Sync>>);

impl Scratch {
    /// Returns the value in the slot, if it has this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Stores a value in the slot.
    pub fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0 = Some(Arc::new(value));
    }

    /// Whether the slot is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Scratch(empty)" } else { "Scratch(filled)" })
    }
}

/// Scratch slots that the filters filled for the feasible nodes of a cycle, by plugin and then by node. Nearly always empty.
#[derive(Debug, Default)]
pub(crate) struct ScratchBoard(Vec<(usize, Vec<(u32, Scratch)>)>);

impl ScratchBoard {
    /// Adds a filled slot. The nodes of each plugin must be added in ascending order.
    pub(crate) fn push(&mut self, node: usize, plugin: usize, slot: Scratch) {
        let node = u32::try_from(node).expect("a cluster has fewer nodes");
        match self.0.iter_mut().find(|(owner, _)| *owner == plugin) {
            Some((_, slots)) => slots.push((node, slot)),
            None => self.0.push((plugin, vec![(node, slot)])),
        }
    }

    /// Whether no filter filled a slot.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the slots of one plugin, by node.
    pub(crate) fn slots(&self, plugin: usize) -> &[(u32, Scratch)] {
        self.0.iter().find(|(owner, _)| *owner == plugin).map_or(&[], |(_, slots)| slots)
    }

    /// Returns the slots of one node, by plugin.
    pub(crate) fn into_node(self, node: usize) -> Vec<(usize, Scratch)> {
        let of_node = |(plugin, slots): (usize, Vec<(u32, Scratch)>)| {
            slots.into_iter().find(|(at, _)| *at as usize == node).map(|(_, slot)| (plugin, slot))
        };
        self.0.into_iter().filter_map(of_node).collect()
    }

    /// Keeps only the slots of the nodes in `kept`, and renumbers these nodes by their position in `kept`.
    pub(crate) fn keep(self, kept: &[usize]) -> Self {
        let mut board = Self::default();
        for (plugin, slots) in self.0 {
            let mut slots: Vec<(u32, Scratch)> = slots
                .into_iter()
                .filter_map(|(node, slot)| {
                    let at = kept.iter().position(|&old| old == node as usize)?;
                    Some((u32::try_from(at).ok()?, slot))
                })
                .collect();
            slots.sort_unstable_by_key(|(node, _)| *node);
            board.0.push((plugin, slots));
        }
        board
    }
}
