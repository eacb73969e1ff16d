//! A binary heap of arena slots. The arena stores the heap position of each slot.

/// An arena of values. Heaps hold the slots of the values, and the arena stores the position of each slot in its heap.
pub(super) trait Arena {
    /// Records that `slot` is at `position` of its heap.
    fn moved(&mut self, slot: u32, position: usize);
    /// Whether the value in slot `a` comes before that in slot `b`: a strict, total order.
    fn before(&self, a: u32, b: u32) -> bool;
}

/// A binary heap that supports removing and fixing entries at any position. Push, removal and fix take a logarithmic number
/// of comparisons. Finding an entry takes none, because the arena knows its position.
#[derive(Debug, Default)]
pub(super) struct Heap(Vec<u32>);

impl Heap {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn peek(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// Returns the slots in heap order, which is not sorted.
    pub(super) fn slots(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn push(&mut self, slot: u32, arena: &mut impl Arena) {
        self.0.push(slot);
        self.up(self.0.len() - 1, arena);
    }

    /// Removes the slot at `position`.
    pub(super) fn remove(&mut self, position: usize, arena: &mut impl Arena) {
        self.0.swap_remove(position);
        if position < self.0.len() {
            self.fix(position, arena);
        }
    }

    /// Restores the order after the value at `position` changed.
    pub(super) fn fix(&mut self, position: usize, arena: &mut impl Arena) {
        let slot = self.0[position];
        self.up(position, arena);
        if self.0[position] == slot {
            self.down(position, arena);
        }
    }

    fn up(&mut self, mut position: usize, arena: &mut impl Arena) {
        let slot = self.0[position];
        while position > 0 {
            let parent = (position - 1) / 2;
            if !arena.before(slot, self.0[parent]) {
                break;
            }
            self.set(position, self.0[parent], arena);
            position = parent;
        }
        self.set(position, slot, arena);
    }

    fn down(&mut self, mut position: usize, arena: &mut impl Arena) {
        let slot = self.0[position];
        loop {
            let left = 2 * position + 1;
            let Some(&left_slot) = self.0.get(left) else { break };
            let (child, child_slot) = match self.0.get(left + 1) {
                Some(&right_slot) if arena.before(right_slot, left_slot) => (left + 1, right_slot),
                _ => (left, left_slot),
            };
            if !arena.before(child_slot, slot) {
                break;
            }
            self.set(position, child_slot, arena);
            position = child;
        }
        self.set(position, slot, arena);
    }

    fn set(&mut self, position: usize, slot: u32, arena: &mut impl Arena) {
        self.0[position] = slot;
        arena.moved(slot, position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Rng;

    #[derive(Default)]
    struct Numbers {
        values: Vec<u64>,
        positions: Vec<usize>,
    }

    impl Arena for Numbers {
        fn moved(&mut self, slot: u32, position: usize) {
            self.positions[slot as usize] = position;
        }

        fn before(&self, a: u32, b: u32) -> bool {
            (self.values[a as usize], a) < (self.values[b as usize], b)
        }
    }

    fn check_against_sorting(seed: u64) {
        let mut rng = Rng::from_seed(seed);
        let (mut heap, mut arena) = (Heap::default(), Numbers::default());
        let mut inside: Vec<u32> = Vec::new();
        for slot in 0..400_u32 {
            arena.values.push(rng.below(50));
            arena.positions.push(usize::MAX);
            heap.push(slot, &mut arena);
            inside.push(slot);
            if rng.chance(1, 3) {
                let removed = inside.swap_remove(rng.index(inside.len()));
                heap.remove(arena.positions[removed as usize], &mut arena);
            }
            if !inside.is_empty() {
                let changed = inside[rng.index(inside.len())];
                arena.values[changed as usize] = rng.below(50);
                heap.fix(arena.positions[changed as usize], &mut arena);
            }
            for (position, slot) in heap.slots().iter().enumerate() {
                assert_eq!(arena.positions[*slot as usize], position, "seed {seed}");
            }
        }
        inside.sort_by_key(|slot| (arena.values[*slot as usize], *slot));
        let popped: Vec<u32> = std::iter::from_fn(|| {
            let slot = heap.peek()?;
            heap.remove(0, &mut arena);
            Some(slot)
        })
        .collect();
        assert_eq!(popped, inside, "seed {seed}");
    }

    #[test]
    fn random_operations_pop_in_order() {
        for seed in 0..20 {
            check_against_sorting(seed);
        }
    }
}
