//! Parts of Go's standard library whose output must be reproduced exactly: quoting, numbers, durations, JSON, base64, texts of
//! system errors, and sort order.
//!
//! This module knows nothing of Kubernetes, and imports no other module of this crate.

pub mod base64;
pub mod duration;
pub mod errno;
pub mod json;
pub mod number;
pub mod print;
pub mod quote;
pub mod sort;
