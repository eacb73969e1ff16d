//! Stores of API objects, one for each kind that was asked for. They are the informers' view of the cluster.
//!
//! ```text
//!  factory ──ask──▶ Listers ──▶ Store of a kind ◀──apply, delete── ingest
//!     ▲                           │ objects, indexes, observers
//!     └── Lister, Index ◀─────────┘
//! ```
//!
//! While a plugin is built, it asks for the kinds that it reads, and keeps the [`Lister`] of each. Only kinds that were asked for
//! have a store and are watched. [`Listers::seal`] is called when the watches start. After that, no other kind can be asked for.
//! Only `ingest` writes to stores. A store may be older than the API server's state, and older or newer than the snapshot of a
//! scheduling cycle.

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
