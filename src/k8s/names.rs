//! Names: what the API accepts, and which resources they stand for.

/// What the name of every huge page resource begins with; the page size follows.
pub const HUGE_PAGES_PREFIX: &str = "hugepages-";
