//! Effects of both schedulers on a real control plane: bindings, patches, events, requests, and survival of failures.

pub(crate) mod abreast;
pub(crate) mod beside;
pub(crate) mod binds;
pub(crate) mod effects;
pub(crate) mod extenders;
pub(crate) mod needs;
pub(crate) mod requeue;
pub(crate) mod survives;
