//! Defaults of volumes, claims and storage classes.

use serde_json::Value;

use super::{default, resource_list};
use crate::apiserver::meta;

/// Follows `pkg/apis/core/v1/defaults.go#SetDefaults_PersistentVolume @v1.36.3`.
pub(super) fn volume(volume: &mut Value) {
    let spec = meta::child(volume, "spec");
    default(spec, "persistentVolumeReclaimPolicy", "Retain");
    default(spec, "volumeMode", "Filesystem");
    resource_list(spec.get_mut("capacity"));
    default(meta::child(volume, "status"), "phase", "Pending");
}

/// Follows `#SetDefaults_PersistentVolumeClaim` and `#SetDefaults_PersistentVolumeClaimSpec`.
pub(super) fn claim(claim: &mut Value) {
    let spec = meta::child(claim, "spec");
    default(spec, "volumeMode", "Filesystem");
    if let Some(resources) = spec.get_mut("resources") {
        resource_list(resources.get_mut("requests"));
        resource_list(resources.get_mut("limits"));
    }
    default(meta::child(claim, "status"), "phase", "Pending");
}

/// Follows `pkg/apis/storage/v1/defaults.go#SetDefaults_StorageClass @v1.36.3`.
pub(super) fn class(class: &mut Value) {
    if let Some(class) = class.as_object_mut() {
        default(class, "reclaimPolicy", "Delete");
        default(class, "volumeBindingMode", "Immediate");
    }
}
