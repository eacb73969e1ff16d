//! Compares sorted lists with Go's results.

use super::*;

/// A hash of the order of elements: FNV-1a over their positions before the sort.
struct Hash(u64);

impl Hash {
    fn add(&mut self, list: &[(u64, u64)]) {
        for (_, place) in list {
            self.0 = (self.0 ^ place).wrapping_mul(1_099_511_628_211);
        }
    }
}

/// Returns the keys of a list with this length and shape, and with at most `kinds` different keys.
fn list(length: u64, kinds: u64, shape: u64) -> Vec<(u64, u64)> {
    let mut random = length * 31 + kinds * 7 + shape + 1;
    let mut key = |at: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        match shape {
            0 => random % kinds,
            1 => at * kinds / length,
            2 => (length - at) * kinds / length,
            _ => at * 7 % length % kinds,
        }
    };
    (0..length).map(|at| (key(at), at)).collect()
}

/// Checks lists of all shapes, and one whose order has every element less than every other. Pods that have not started are
/// compared in this way.
fn check(length: u64, expected: u64) {
    let mut hash = Hash(14_695_981_039_346_656_037);
    for kinds in [1, 2, 5, 1000] {
        for shape in 0..4 {
            let mut list = list(length, kinds, shape);
            sort_slice(&mut list, |a, b| a.0 < b.0);
            assert!(list.is_sorted_by_key(|entry| entry.0), "{length} {kinds} {shape}");
            hash.add(&list);
        }
    }
    let mut places: Vec<(u64, u64)> = (0..length).map(|at| (0, at)).collect();
    sort_slice(&mut places, |_, _| true);
    hash.add(&places);
    assert_eq!(hash.0, expected, "{length}");
}

#[test]
fn equal_elements_are_ordered_as_in_go() {
    check(1, 0x4dfa_4cff_d1f7_979f);
    check(12, 0x4da8_a1af_b87e_1653);
    check(13, 0x5d73_9980_fe09_d6d5);
    check(20, 0x7cbd_bf1f_6c7b_08e1);
    check(49, 0x4a71_b2a8_d03f_5869);
    check(50, 0x7607_c600_7e52_28e2);
    check(64, 0x0e17_a5ac_99a9_a13b);
    check(110, 0xf041_b681_ced9_91a6);
    check(300, 0x7a9f_f36b_e759_7233);
    check(1000, 0x36c9_6b9c_ccb9_be89);
}

#[test]
fn heap_sort_changes_only_its_range() {
    let mut list: Vec<u64> = (0..40).map(|at| at * 7 % 40).collect();
    let mut expected = list.clone();
    expected[5..31].sort_unstable();
    Sort { list: &mut list, less: |a: &u64, b: &u64| a < b }.heap(5, 31);
    assert_eq!(list, expected);
}
