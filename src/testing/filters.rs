//! A filter runner for plugins that do not evaluate changed nodes.

use crate::framework::{CycleContext, FilterRunner, NodeRef, PluginError, Verdict};
use crate::model::PodInfo;

/// A filter runner that fails every call.
pub struct NoFilters;

fn failure() -> PluginError {
    PluginError::new("the test has no filters to run")
}

impl FilterRunner for NoFilters {
    fn run_filters(&self, _cx: &CycleContext<'_>, _node: NodeRef<'_>) -> Result<Verdict, PluginError> {
        Err(failure())
    }

    fn run_filters_with_nominated_pods(
        &self,
        _cx: &CycleContext<'_>,
        _node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError> {
        Err(failure())
    }

    fn add_pod(&self, _cx: &mut CycleContext<'_>, _added: &PodInfo, _node: NodeRef<'_>) -> Result<(), PluginError> {
        Err(failure())
    }

    fn remove_pod(
        &self,
        _cx: &mut CycleContext<'_>,
        _removed: &PodInfo,
        _node: NodeRef<'_>,
    ) -> Result<(), PluginError> {
        Err(failure())
    }
}
