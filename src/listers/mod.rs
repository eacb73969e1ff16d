//! Stores of API objects, one for each kind that was asked for. They are the informers' view of the cluster.
//!
//! ```text
//!  factory ──ask──▶ Listers ──▶ Store of a kind ◀──apply, delete── ingest
//!     ▲                           │ objects, indexes, observers
//!     └── Lister, Index ◀─────────┘
//! ```
//!
//! Each plugin asks for the kinds that it reads while it is built, and keeps the [`Lister`] that it gets. These requests alone
//! determine which kinds have a store and are watched. [`Listers::seal`] ends the requests when the watches start. Only
//! `ingest` writes to stores. A store may be older than the API server's state, and older or newer than the snapshot of a
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
