//! `NodeVolumeLimits`, which is not implemented yet: pods with volumes that count against a node's limits are not scheduled.
//!
//! Follows `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go @v1.36.3` in deciding which pods need the plugin.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, StorageClass, VolumeAttachment};

use super::unsupported::{MissingForVolumes, Unsupported};
use crate::framework::{Handle, PluginError, Registration};
use crate::k8s::{Volume, VolumeSource};

/// Name of the plugin.
pub const NAME: &str = "NodeVolumeLimits";

/// In-line volume sources that a CSI driver attaches, because the in-tree driver was migrated.
/// Follows `csi-translation-lib/translate.go#CSITranslator.IsInlineMigratable @v1.36.3`.
const MIGRATABLE: [&str; 7] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cinder",
    "gcePersistentDisk",
    "portworxVolume",
    "vsphereVolume",
];

struct NodeVolumeLimits;

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    // Upstream watches these kinds, so their listers are requested although they are not used yet.
    handle.lister::<PersistentVolume>()?;
    handle.lister::<PersistentVolumeClaim>()?;
    handle.lister::<StorageClass>()?;
    handle.lister::<CSIDriver>()?;
    handle.lister::<VolumeAttachment>()?;
    let plugin = Unsupported::new(NodeVolumeLimits);
    Ok(Registration::new(NAME).events(&plugin).pre_filter(&plugin).filter(&plugin).sign(&plugin))
}

impl MissingForVolumes for NodeVolumeLimits {
    const NAME: &'static str = NAME;
    const WHAT: &'static str = "persistent volume claims or disks";

    fn is_needed(volume: &Volume) -> bool {
        match &volume.source {
            VolumeSource::PersistentVolumeClaim { .. } | VolumeSource::Ephemeral => true,
            VolumeSource::Other { kind, .. } => MIGRATABLE.contains(&kind.as_str()),
            _ => false,
        }
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
        let rejected = Verdict::unresolvable(not_supported(NAME, "persistent volume claims or disks"));
        let expected = if passes { Verdict::Pass } else { rejected };
        Harness::new(factory).check_filter(&pod("p").set("spec.volumes", volumes), node("n"), &expected);
    }

    #[test]
    fn pods_with_limited_volumes_are_rejected() {
        check(json!([]), true);
        check(json!([{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "csi": {"driver": "d"}}]), true);
        check(json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), false);
        check(json!([{"name": "v", "ephemeral": {}}]), false);
        check(json!([{"name": "v", "cinder": {"volumeID": "x"}}]), false);
    }
}
