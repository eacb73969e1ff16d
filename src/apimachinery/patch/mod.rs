//! Patches: the formats in which a client describes changes of an object.
//!
//! Merge patches (RFC 7386) are applied by `json_patch::merge`.

pub mod json;
pub mod strategic;

/// Rules by which a strategic merge patch merges the lists and objects of a type.
/// Follows `apimachinery/pkg/util/strategicpatch/meta.go#LookupPatchMeta @v1.36.3`.
pub trait PatchMeta {
    /// Returns the rule for the list at `path`. The path leaves out list indexes.
    fn list(&self, path: &str) -> ListMerge;

    /// Whether a patch replaces the object at `path` as a whole.
    fn replaces_object(&self, path: &str) -> bool;
}

/// Rule by which a strategic merge patch merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// Elements with the same value of this member are merged.
    Key(&'static str),
    /// The list is a set of plain values.
    Values,
    /// The patch's list replaces the whole list.
    Replace,
}
