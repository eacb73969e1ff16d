//! `VolumeZone`, which is not implemented yet: pods with claims are not scheduled.
//!
//! Follows `pkg/scheduler/framework/plugins/volumezone/volume_zone.go @v1.36.3` in deciding which pods need the plugin.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;

use super::unsupported::{MissingForVolumes, Unsupported};
use crate::framework::{Handle, PluginError, Registration};
use crate::k8s::{Volume, VolumeSource};

/// Name of the plugin.
pub const NAME: &str = "VolumeZone";

struct VolumeZone;

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    // Upstream watches these kinds, so their listers are requested although they are not used yet.
    handle.lister::<PersistentVolume>()?;
    handle.lister::<PersistentVolumeClaim>()?;
    handle.lister::<StorageClass>()?;
    let plugin = Unsupported::new(VolumeZone);
    Ok(Registration::new(NAME).events(&plugin).pre_filter(&plugin).filter(&plugin).sign(&plugin))
}

impl MissingForVolumes for VolumeZone {
    const NAME: &'static str = NAME;
    const WHAT: &'static str = "persistent volume claims";

    fn is_needed(volume: &Volume) -> bool {
        matches!(volume.source, VolumeSource::PersistentVolumeClaim { .. })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::unsupported::not_supported;
    use super::*;
    use crate::framework::Verdict;
    use crate::testing::{Harness, node, pod};

    fn check(volumes: Value, passes: bool) {
        let rejected = Verdict::unresolvable(not_supported(NAME, "persistent volume claims"));
        let expected = if passes { Verdict::Pass } else { rejected };
        Harness::new(factory).check_filter(&pod("p").set("spec.volumes", volumes), node("n"), &expected);
    }

    #[test]
    fn pods_with_claims_are_rejected() {
        check(json!([{"name": "v", "emptyDir": {}}, {"name": "w", "ephemeral": {}}]), true);
        check(json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), false);
    }
}
