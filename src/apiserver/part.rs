//! The part of an object that a request writes.

/// Part of an object that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but the status.
    Main,
    /// The status subresource.
    Status,
    /// The finalizers of a namespace: its `finalize` subresource.
    Finalizers,
}
