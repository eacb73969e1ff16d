//! `PodGroupPodsCount`, which is not implemented yet: a name without extension points.
//!
//! Only the placement of pod groups, behind the gate `TopologyAwareWorkloadScheduling`, would call this plugin.
//! See `pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go @v1.36.3`.

use crate::framework::{Handle, PluginError, Registration};

/// Name of the plugin.
pub const NAME: &str = "PodGroupPodsCount";

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), _handle: &Handle) -> Result<Registration, PluginError> {
    Ok(Registration::new(NAME))
}
