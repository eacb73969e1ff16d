//! Where nodes stand in a snapshot, asked for one after another.

use std::sync::Arc;

use super::{NodeInfo, Snapshot};

/// How many nodes ahead are compared before a name is looked up. A comparison of addresses is some fifty times as fast as
/// a look-up, so that this many cost no more than one.
const AHEAD: usize = 32;

/// Says where nodes stand that come in the order of the snapshot, with gaps, from any node on and around the end, as a
/// search hands them out. Nodes in another order are found too, only more slowly.
#[derive(Debug)]
pub struct Walk<'s> {
    snapshot: &'s Snapshot,
    /// The position after the last one that was found.
    next: usize,
}

impl Snapshot {
    /// Begins a walk.
    pub fn walk(&self) -> Walk<'_> {
        Walk { snapshot: self, next: 0 }
    }
}

impl Walk<'_> {
    /// The position of this node: of itself, or of the snapshot's state of the same node object, from which a what-if differs
    /// in its pods. None if the snapshot has another object under the name, or none.
    pub fn position(&mut self, node: &NodeInfo) -> Option<usize> {
        let at = self.position_of_name(node)?;
        let known = &self.snapshot.nodes()[at];
        let is_same = std::ptr::eq(&raw const **known, node)
            || node.try_node().is_some_and(|object| Arc::ptr_eq(object, known.node()));
        is_same.then_some(at)
    }

    /// The position of the node of this name, be it another object.
    pub fn position_of_name(&mut self, node: &NodeInfo) -> Option<usize> {
        let nodes = self.snapshot.nodes();
        let mut at = self.next;
        for _ in 0..AHEAD.min(nodes.len()) {
            if at >= nodes.len() {
                at = 0;
            }
            if std::ptr::eq(&raw const *nodes[at], node) {
                self.next = at + 1;
                return Some(at);
            }
            at += 1;
        }
        let at = self.snapshot.position(node.name())?;
        self.next = at + 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{node, pod};

    fn snapshot(nodes: usize) -> Snapshot {
        Snapshot::from_nodes((0..nodes).map(|at| Arc::new(node(&format!("n{at}")).info())).collect())
    }

    #[test]
    fn nodes_are_found_in_any_order() {
        let check = |nodes: usize, asked: &[usize]| {
            let snapshot = snapshot(nodes);
            let mut walk = snapshot.walk();
            let found: Vec<usize> =
                asked.iter().map(|at| walk.position(&snapshot.nodes()[*at]).expect("a node of the snapshot")).collect();
            assert_eq!(found, asked);
        };
        check(3, &[0, 1, 2]);
        check(3, &[1, 2, 0, 1]);
        check(3, &[2, 1, 0]);
        check(100, &[98, 99, 1, 70, 71, 3]);
        check(1, &[0, 0, 0]);
    }

    #[test]
    fn what_ifs_are_found_and_strangers_are_not() {
        let snapshot = snapshot(2);
        let mut crowded = (*snapshot.nodes()[1]).clone();
        crowded.add_pod(pod("p").info());
        assert_eq!(snapshot.walk().position(&crowded), Some(1));
        assert_eq!(snapshot.walk().position(&node("n1").info()), None);
        assert_eq!(snapshot.walk().position(&node("n2").info()), None);
        assert_eq!(Snapshot::default().walk().position(&crowded), None);
    }
}
