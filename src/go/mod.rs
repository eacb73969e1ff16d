//! Go's standard library, as far as output has to equal that of programs written in Go: quoting, numbers, durations, JSON,
//! base64, texts of system errors, and sort order.
//!
//! Nothing here knows Kubernetes, and nothing here imports another module of this crate.

pub mod base64;
pub mod duration;
pub mod errno;
pub mod json;
pub mod number;
pub mod print;
pub mod quote;
pub mod sort;
