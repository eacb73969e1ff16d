//! Patches: the three ways in which a client says what to change in an object.
//!
//! A merge patch (RFC 7386) is `json_patch::merge`.

pub mod json;
pub mod strategic;

/// Rules by which a strategic merge patch merges the lists and objects of a type.
/// Follows `apimachinery/pkg/util/strategicpatch/meta.go#LookupPatchMeta @v1.36.3`.
pub trait PatchMeta {
    /// Rule for the list at `path`. The path leaves out positions in lists.
    fn list(&self, path: &str) -> ListMerge;

    /// Whether the object at `path` is replaced as a whole.
    fn replaces_object(&self, path: &str) -> bool;
}

/// Rule by which a strategic merge patch merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// As a map by the member of its elements that names them.
    Key(&'static str),
    /// As a set of plain values.
    Values,
    /// Not at all: the patch's list replaces it.
    Replace,
}
