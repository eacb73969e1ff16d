//! What the compared cases have to reach.

/// Outcomes, in the words of the coverage table.
pub(crate) const REQUIRED: &[&str] = &[];
