//! The API machinery that clients and servers of the Kubernetes API share: `Status` objects, errors about fields, `Accept`
//! headers, patches, and protobuf envelopes.
//!
//! No API type is known here: patches learn from a [`patch::PatchMeta`] how lists are merged.

pub mod accept;
pub mod field_error;
pub mod patch;
pub mod protobuf;
pub mod status;

pub use field_error::{FieldError, FieldErrors, FieldPath};
pub use status::Status;
