//! Results of `Filter` for single nodes that `Score` and `Reserve` read.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A plugin's own slot for one node in one cycle: what `Filter` found out and `Score` or `Reserve` needs later. Clones
/// share the value.
#[derive(Clone, Default)]
pub struct Scratch(Option<Arc<dyn Any + Send + Sync>>);

impl Scratch {
    /// The value in the slot, if it is of this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Puts a value into the slot.
    pub fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0 = Some(Arc::new(value));
    }

    /// Whether the slot holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Scratch(empty)" } else { "Scratch(filled)" })
    }
}

/// Scratch slots that the filters filled for the feasible nodes of a cycle: by plugin, then by node. Nearly always
/// empty.
#[derive(Debug, Default)]
pub(crate) struct ScratchBoard(Vec<(usize, Vec<(u32, Scratch)>)>);

impl ScratchBoard {
    /// Adds a slot; the nodes of one plugin have to come in order.
    pub(crate) fn push(&mut self, node: usize, plugin: usize, slot: Scratch) {
        let node = u32::try_from(node).expect("a cluster has fewer nodes");
        match self.0.iter_mut().find(|(owner, _)| *owner == plugin) {
            Some((_, slots)) => slots.push((node, slot)),
            None => self.0.push((plugin, vec![(node, slot)])),
        }
    }

    /// Whether no filter left anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The slots of one plugin, by node.
    pub(crate) fn slots(&self, plugin: usize) -> &[(u32, Scratch)] {
        self.0.iter().find(|(owner, _)| *owner == plugin).map_or(&[], |(_, slots)| slots)
    }

    /// The slots of one node, by plugin.
    pub(crate) fn into_node(self, node: usize) -> Vec<(usize, Scratch)> {
        let of_node = |(plugin, slots): (usize, Vec<(u32, Scratch)>)| {
            slots.into_iter().find(|(at, _)| *at as usize == node).map(|(_, slot)| (plugin, slot))
        };
        self.0.into_iter().filter_map(of_node).collect()
    }

    /// The slots of the nodes that are kept, under their new positions.
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
