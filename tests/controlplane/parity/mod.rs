//! Decisions of this crate and of upstream for the same clusters, compared word for word.
//!
//! `generate` makes a case from a seed, `oracle` and `ours` answer it, and `compare` compares the answers. `coverage` counts what
//! the cases reach. `tests/parity` compiles the files that need no Go a second time.

pub(crate) mod alike;
pub(crate) mod case;
pub(crate) mod changes;
pub(crate) mod clusters;
pub(crate) mod compare;
#[path = "../../parity/corpus.rs"]
pub(crate) mod corpus;
pub(crate) mod coverage;
pub(crate) mod generate;
pub(crate) mod oracle;
pub(crate) mod ours;
pub(crate) mod reach;
pub(crate) mod record;
pub(crate) mod shrink;
pub(crate) mod spread;
pub(crate) mod terms;
pub(crate) mod ties;
