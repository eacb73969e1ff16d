//! The parts of API machinery that clients and servers of the Kubernetes API share: `Status` objects, errors about fields,
//! `Accept` headers, patches, and protobuf envelopes.
//!
//! This module knows no API types: a [`patch::PatchMeta`] tells patches how to merge lists.

pub mod accept;
pub mod field_error;
pub mod patch;
pub mod protobuf;
pub mod status;

pub use field_error::{FieldError, FieldErrors, FieldPath};
pub use status::Status;
