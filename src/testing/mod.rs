//! Fixtures and a harness for tests of plugins, both in-tree and out-of-tree.
//!
//! ```
//! use kube_scheduler::plugins::node_name;
//! use kube_scheduler::testing::{Harness, node, pod};
//!
//! let harness = Harness::new(node_name::factory).cluster(vec![node("a"), node("b")], &[]);
//! let rejections = harness.rejections(&pod("p").on("a"));
//! assert!(rejections[0].is_none() && rejections[1].is_some());
//! ```
//!
//! [`pod`] and [`node`] build objects as a user would write them. [`Harness`] builds one plugin and runs its extension points
//! on a small cluster. [`NoEffects`] replaces the API server.

mod effects;
mod filters;
mod handle;
mod harness;
mod json;
mod node;
mod pod;

pub use effects::NoEffects;
pub use filters::NoFilters;
pub use handle::{handle, handle_parts, put};
pub use harness::{Harness, Scores};
pub use node::{NodeFixture, node};
pub use pod::{PodFixture, pod};
