//! The part of an object that a request writes.

/// Part of an object that a request changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything except the status.
    Main,
    /// The status, through the `status` subresource.
    Status,
    /// The finalizers of a namespace, through the `finalize` subresource.
    Finalizers,
}
