//! Defaults of persistent volumes and claims, storage classes and CSI drivers.
//!
//! A symbol cited without a path is in `pkg/apis/core/v1/defaults.go @v1.36.3`.

use serde_json::{Map, Value, json};

use super::{default, default_absent, resource_list};
use crate::apiserver::meta;

/// Fills in the defaults of a persistent volume.
/// Follows `pkg/apis/core/v1/defaults.go#SetDefaults_PersistentVolume @v1.36.3`.
pub(super) fn volume(volume: &mut Value) {
    let spec = meta::child(volume, "spec");
    default(spec, "persistentVolumeReclaimPolicy", "Retain");
    default_absent(spec, "volumeMode", "Filesystem");
    resource_list(spec.get_mut("capacity"));
    if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
        default_absent(path, "type", "");
    }
    default(meta::child(volume, "status"), "phase", "Pending");
}

/// Fills in the defaults of a claim.
/// Follows `#SetDefaults_PersistentVolumeClaim` and `#SetDefaults_PersistentVolumeClaimSpec`.
pub(super) fn claim(claim: &mut Value) {
    claim_spec(meta::child(claim, "spec"));
    default(meta::child(claim, "status"), "phase", "Pending");
}

/// Fills in the defaults of a claim's spec. Follows `#SetDefaults_PersistentVolumeClaimSpec`.
pub(super) fn claim_spec(spec: &mut Map<String, Value>) {
    default_absent(spec, "volumeMode", "Filesystem");
    if let Some(resources) = spec.get_mut("resources") {
        resource_list(resources.get_mut("requests"));
        resource_list(resources.get_mut("limits"));
    }
}

/// Copies a new claim's `dataSource` to `dataSourceRef`, or the other way round, if only one of them is set. A source in another
/// namespace is not copied.
/// Follows `pkg/api/persistentvolumeclaim/util.go#NormalizeDataSources @v1.36.3`.
pub(super) fn claim_sources(claim: &mut Value) {
    let spec = meta::child(claim, "spec");
    // Upstream drops a `dataSource` that is neither a claim nor a snapshot.
    // `pkg/api/persistentvolumeclaim/util.go#DropDisabledFields @v1.36.3`.
    let is_known = |source: &Value| {
        let group = source["apiGroup"].as_str().unwrap_or_default();
        matches!((group, source["kind"].as_str()), ("", Some("PersistentVolumeClaim")))
            || matches!((group, source["kind"].as_str()), ("snapshot.storage.k8s.io", Some("VolumeSnapshot")))
    };
    if spec.get("dataSource").is_some_and(|source| !is_known(source)) {
        spec.remove("dataSource");
    }
    for (from, to) in [("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")] {
        let is_foreign = spec.get(from).is_some_and(|source| !source["namespace"].is_null());
        if let Some(source) = spec.get(from).filter(|_| !is_foreign).cloned() {
            default_absent(spec, to, source);
        }
    }
}

/// Fills in the defaults of a storage class.
/// Follows `pkg/apis/storage/v1/defaults.go#SetDefaults_StorageClass @v1.36.3`.
pub(super) fn class(class: &mut Value) {
    if let Some(class) = class.as_object_mut() {
        default_absent(class, "reclaimPolicy", "Delete");
        default_absent(class, "volumeBindingMode", "Immediate");
    }
}

/// Fills in the defaults of a CSI driver. Follows `pkg/apis/storage/v1/defaults.go#SetDefaults_CSIDriver @v1.36.3`.
pub(super) fn driver(driver: &mut Value) {
    let spec = meta::child(driver, "spec");
    default_absent(spec, "attachRequired", true);
    for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default_absent(spec, key, false);
    }
    default_absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    default(spec, "volumeLifecycleModes", json!(["Persistent"]));
}
