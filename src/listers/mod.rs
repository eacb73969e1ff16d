//! Stores of API objects, one for each kind that somebody asked for: the informers' view of the cluster.
//!
//! ```text
//!  factory ──ask──▶ Listers ──▶ Store of a kind ◀──apply, delete── ingest
//!     ▲                           │ objects, indexes, observers
//!     └── Lister, Index ◀─────────┘
//! ```
//!
//! A plugin asks for the kinds that it reads while it is built, and keeps the [`Lister`] that it gets. These requests are
//! the only record of what is watched: a kind that nobody asked for has no store. [`Listers::seal`] ends the asking when
//! watching begins. Stores are written by `ingest` alone. A store may lag behind the API server, and may be ahead of or
//! behind the snapshot of a scheduling cycle.

mod any;
mod change;
mod index;
mod kind;
mod lister;
mod registry;
mod store;
#[cfg(test)]
mod tests;

pub use any::{AnyChange, AnyObject, AnyStore};
pub use change::{Change, Changes, Observer};
pub use index::{Index, IndexBy};
pub use kind::{Kind, MalformedKind};
pub use lister::Lister;
pub use registry::Listers;
pub use store::{Sealed, Store};
