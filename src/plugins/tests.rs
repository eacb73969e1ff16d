//! The table, and the default profile that is built from it.

use super::*;

#[test]
fn every_name_is_registered_once_and_by_itself() {
    assert!(IN_TREE.is_sorted_by(|(a, _), (b, _)| a < b));
    assert!(registry().names().eq(IN_TREE.iter().map(|(name, _)| *name)));
}
