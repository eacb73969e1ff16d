//! Handles for an empty cluster.

use std::sync::Arc;

use super::NoEffects;
use serde::de::DeserializeOwned;

use crate::clock::Clock;
use crate::config::FeatureGates;
use crate::framework::{Effects, Handle, HandleParts};
use crate::metrics::Metrics;

/// Returns a handle for an empty cluster, for the plugins of one profile.
pub fn handle(gates: FeatureGates) -> Handle {
    Handle::new(handle_parts(gates), "default-scheduler")
}

/// Returns the parts of handles for an empty cluster, to be shared by several profiles.
pub fn handle_parts(gates: FeatureGates) -> Arc<HandleParts> {
    handle_parts_with(gates, Arc::new(NoEffects::default()))
}

/// Returns the parts of handles with these effects.
pub(super) fn handle_parts_with(gates: FeatureGates, effects: Arc<dyn Effects>) -> Arc<HandleParts> {
    Arc::new(HandleParts::new(gates, Metrics::detached(), Clock::real(), effects))
}

/// Puts an object into the store that this handle's plugins read, as a watch does.
///
/// # Panics
///
/// Panics if the watches have started and no factory asked for a lister of this kind before.
pub fn put<K>(handle: &Handle, object: Arc<K>)
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    handle.listers().put(object);
}
