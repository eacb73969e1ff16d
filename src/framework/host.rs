//! The choice of the host among the nodes with the best scores.

/// The values by which a feasible node is ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Weighted sum of the node's scores.
    pub(crate) total: i64,
    /// Random number that breaks ties if extenders scored the node. 0 otherwise, so that the order of the heap breaks ties.
    pub(crate) randomizer: u64,
}

/// Feasible nodes, best first. Nodes with equal ranks come out in the order of the heap, which may differ from the order of the
/// list. The heap is the same as in upstream, so ties are broken in the same way.
/// Follows `pkg/scheduler/schedule_one.go#sortedNodeScores @v1.36.3` and Go's `container/heap`.
#[derive(Debug)]
pub(crate) struct Ranking {
    ranks: Vec<Rank>,
    /// A heap of positions in `ranks`.
    heap: Vec<usize>,
}

impl Ranking {
    /// Builds the heap of all nodes. A node is identified by its position in `ranks`.
    pub(crate) fn new(ranks: Vec<Rank>) -> Self {
        let mut heap: Vec<usize> = (0..ranks.len()).collect();
        for start in (0..ranks.len() / 2).rev() {
            sift_down(&mut heap, start, &ranks);
        }
        Self { ranks, heap }
    }

    /// Removes and returns the best node.
    pub(crate) fn pop(&mut self) -> Option<usize> {
        if self.heap.is_empty() {
            return None;
        }
        let best = self.heap.swap_remove(0);
        sift_down(&mut self.heap, 0, &self.ranks);
        Some(best)
    }

    /// Whether no node is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// Whether node `a` ranks before node `b`.
fn better(ranks: &[Rank], a: usize, b: usize) -> bool {
    (ranks[a].total, ranks[a].randomizer) > (ranks[b].total, ranks[b].randomizer)
}

fn sift_down(heap: &mut [usize], start: usize, ranks: &[Rank]) {
    let mut parent = start;
    loop {
        let left = 2 * parent + 1;
        let right = left + 1;
        if left >= heap.len() {
            return;
        }
        let child = if right < heap.len() && better(ranks, heap[right], heap[left]) { right } else { left };
        if !better(ranks, heap[child], heap[parent]) {
            return;
        }
        heap.swap(parent, child);
        parent = child;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(totals: &[i64], expected: usize) {
        let ranks: Vec<Rank> = totals.iter().map(|&total| Rank { total, randomizer: 0 }).collect();
        assert_eq!(Ranking::new(ranks).pop(), Some(expected), "{totals:?}");
    }

    #[test]
    fn highest_score_wins() {
        check(&[1], 0);
        check(&[1, 3, 2], 1);
        check(&[5, 1, 9, 2, 7], 2);
    }

    #[test]
    fn first_of_equal_nodes_wins() {
        check(&[4, 4, 4, 4, 4, 4, 4], 0);
    }

    #[test]
    fn ties_follow_gos_heap_order() {
        // Go's heap sifts down from the last parent to the first: position 4 rises above 1 before 2 is compared with it.
        check(&[1, 2, 7, 2, 7], 4);
        check(&[1, 7, 7], 1);
    }

    #[test]
    fn randomizer_breaks_ties() {
        let ranks =
            [Rank { total: 4, randomizer: 1 }, Rank { total: 4, randomizer: 9 }, Rank { total: 3, randomizer: 99 }];
        assert_eq!(Ranking::new(ranks.into()).pop(), Some(1));
    }

    #[test]
    fn ranking_pops_by_score_then_heap_order() {
        let ranks = [1, 7, 3, 7, 7, 2].map(|total| Rank { total, randomizer: 0 });
        let mut ranking = Ranking::new(ranks.into());
        let order: Vec<usize> = std::iter::from_fn(|| ranking.pop()).collect();
        assert_eq!(order, [1, 3, 4, 2, 5, 0]);
        assert!(ranking.is_empty());
    }
}
