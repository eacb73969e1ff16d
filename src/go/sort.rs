//! Go's `sort.Slice`, reproduced step by step. The order of equal elements depends on the algorithm, and it decides which of
//! several equally important pods preemption spares.
//!
//! Follows `sort/zsortfunc.go @go1.26`.

/// Maximum length of a list that is sorted by insertion, which is stable.
const MAX_INSERTION: usize = 12;

/// Minimum length of a list whose pivot is the median of three medians.
const SHORTEST_NINTHER: usize = 50;

/// Maximum number of swaps in the choice of a pivot: three medians of three, and the median of these.
const MAX_SWAPS: usize = 4 * 3;

/// Maximum number of out-of-order pairs that are repaired in an almost sorted list before it is partitioned.
const MAX_STEPS: usize = 5;

/// Minimum length of a list that is repaired.
const SHORTEST_SHIFTING: usize = 50;

/// Sorts the list as Go does. `less` may be called for any two elements, and need not be consistent.
/// Follows `sort/slice.go#Slice @go1.26`.
pub fn sort_slice<T>(list: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let limit = bit_length(list.len());
    let end = list.len();
    Sort { list, less }.quick(0, end, limit);
}

/// Returns the number of bits of a number.
fn bit_length(number: usize) -> u32 {
    usize::BITS - number.leading_zeros()
}

/// Order of the list, as observed in the choice of a pivot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

struct Sort<'a, T, F> {
    list: &'a mut [T],
    less: F,
}

impl<T, F: Fn(&T, &T) -> bool> Sort<'_, T, F> {
    fn less(&self, a: usize, b: usize) -> bool {
        (self.less)(&self.list[a], &self.list[b])
    }

    fn insertion(&mut self, start: usize, end: usize) {
        for at in start + 1..end {
            let mut at = at;
            while at > start && self.less(at, at - 1) {
                self.list.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    /// Sorts by pattern-defeating quicksort, with at most `limit` bad pivots.
    fn quick(&mut self, mut start: usize, mut end: usize, mut limit: u32) {
        let (mut was_balanced, mut was_partitioned) = (true, true);
        loop {
            let length = end - start;
            if length <= MAX_INSERTION {
                return self.insertion(start, end);
            }
            if limit == 0 {
                return self.heap(start, end);
            }
            if !was_balanced {
                self.break_patterns(start, end);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == Hint::Decreasing {
                self.list[start..end].reverse();
                pivot = (end - 1) - (pivot - start);
                hint = Hint::Increasing;
            }
            if was_balanced && was_partitioned && hint == Hint::Increasing && self.repair(start, end) {
                return;
            }
            if start > 0 && !self.less(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let middle;
            (middle, was_partitioned) = self.partition(start, end, pivot);
            let (left, right) = (middle - start, end - middle);
            was_balanced = left.min(right) >= length / 8;
            if left < right {
                self.quick(start, middle, limit);
                start = middle + 1;
            } else {
                self.quick(middle + 1, end, limit);
                end = middle;
            }
        }
    }

    /// Moves elements less than the pivot before it, and all others after it. Returns the pivot's position, and whether no
    /// element had to be moved.
    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.list.swap(start, pivot);
        let (mut low, mut high) = (start + 1, end - 1);
        let mut moved = false;
        loop {
            while low <= high && self.less(low, start) {
                low += 1;
            }
            while low <= high && !self.less(high, start) {
                high -= 1;
            }
            if low > high {
                break;
            }
            self.list.swap(low, high);
            low += 1;
            high -= 1;
            moved = true;
        }
        self.list.swap(high, start);
        (high, !moved)
    }

    /// Moves elements equal to the pivot before greater ones. No element may be less than the pivot.
    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.list.swap(start, pivot);
        let (mut low, mut high) = (start + 1, end - 1);
        loop {
            while low <= high && !self.less(start, low) {
                low += 1;
            }
            while low <= high && self.less(start, high) {
                high -= 1;
            }
            if low > high {
                return low;
            }
            self.list.swap(low, high);
            low += 1;
            high -= 1;
        }
    }

    /// Sorts an almost sorted list by a few repairs. Returns whether the list is sorted.
    fn repair(&mut self, start: usize, end: usize) -> bool {
        let mut at = start + 1;
        for _ in 0..MAX_STEPS {
            while at < end && !self.less(at, at - 1) {
                at += 1;
            }
            if at == end {
                return true;
            }
            if end - start < SHORTEST_SHIFTING {
                return false;
            }
            self.list.swap(at, at - 1);
            if at - start >= 2 {
                let mut down = at - 1;
                while down >= 1 && self.less(down, down - 1) {
                    self.list.swap(down, down - 1);
                    down -= 1;
                }
            }
            if end - at >= 2 {
                let mut up = at + 1;
                while up < end && self.less(up, up - 1) {
                    self.list.swap(up, up - 1);
                    up += 1;
                }
            }
        }
        false
    }

    /// Scatters some elements after a bad pivot.
    fn break_patterns(&mut self, start: usize, end: usize) {
        let length = end - start;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let mask = (1_u64 << bit_length(length)) - 1;
        let middle = start + (length / 4) * 2;
        for at in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = usize::try_from(random & mask).expect("it has no more bits than the length");
            self.list.swap(at, start + if other >= length { other - length } else { other });
        }
    }

    fn choose_pivot(&self, start: usize, end: usize) -> (usize, Hint) {
        let length = end - start;
        let mut swaps = 0;
        let [mut low, mut middle, mut high] = [1, 2, 3].map(|quarter| start + length / 4 * quarter);
        if length >= SHORTEST_NINTHER {
            for at in [&mut low, &mut middle, &mut high] {
                *at = self.median(*at - 1, *at, *at + 1, &mut swaps);
            }
        }
        if length >= 8 {
            middle = self.median(low, middle, high, &mut swaps);
        }
        let hint = match swaps {
            0 => Hint::Increasing,
            MAX_SWAPS => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (middle, hint)
    }

    fn in_order(&self, a: usize, b: usize, swaps: &mut usize) -> (usize, usize) {
        if self.less(b, a) {
            *swaps += 1;
            return (b, a);
        }
        (a, b)
    }

    fn median(&self, a: usize, b: usize, c: usize, swaps: &mut usize) -> usize {
        let (a, b) = self.in_order(a, b, swaps);
        let (b, _) = self.in_order(b, c, swaps);
        self.in_order(a, b, swaps).1
    }

    fn heap(&mut self, start: usize, end: usize) {
        let length = end - start;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(root, length, start);
        }
        for last in (0..length).rev() {
            self.list.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn sift_down(&mut self, mut root: usize, length: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= length {
                return;
            }
            if child + 1 < length && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.list.swap(first + root, first + child);
            root = child;
        }
    }
}

#[cfg(test)]
mod tests;
