//! Random operations.
