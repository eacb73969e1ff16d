//! Validation of the volumes of pods: names, and exactly one source each.
//!
//! Follows `pkg/apis/core/validation/validation.go#ValidateVolumes @v1.36.3`. Most contents of a source are not checked, because
//! only nodes use them.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::required_name;
use super::volume;
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::k8s::names;

/// Checks the volumes of a pod spec.
pub(super) fn names(volumes: &Value, path: Path<'_>, errors: &mut Errors) {
    let mut known: Vec<&str> = Vec::new();
    for (at, volume) in meta::list(volumes).enumerate() {
        let path = path.index(at);
        let before = errors.len();
        source(volume, path, errors);
        let name = text(volume, "name");
        required_name(name, names::dns1123_label_errors, path.child("name"), errors);
        if known.contains(&name) {
            errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
        }
        if errors.len() == before {
            known.push(name);
        }
    }
}

/// Checks that a volume has exactly one source. Follows `#validateVolumeSource`, also in the order of sources.
fn source(volume: &Value, path: Path<'_>, errors: &mut Errors) {
    const SOURCES: [&str; 29] = [
        "emptyDir",
        "hostPath",
        "gitRepo",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "secret",
        "nfs",
        "iscsi",
        "glusterfs",
        "flocker",
        "persistentVolumeClaim",
        "rbd",
        "cinder",
        "cephfs",
        "quobyte",
        "downwardAPI",
        "fc",
        "configMap",
        "azureFile",
        "vsphereVolume",
        "photonPersistentDisk",
        "portworxVolume",
        "azureDisk",
        "storageos",
        "projected",
        "scaleIO",
        "csi",
        "ephemeral",
        "image",
    ];
    let mut given = SOURCES.iter().filter(|source| !volume[**source].is_null());
    let Some(first) = given.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    content(first, &volume[*first], path, errors);
    for other in given {
        errors.push(FieldError::forbidden(path.child(other), "may not specify more than 1 volume type"));
    }
}

/// Checks that a source of a common type has its required members. Does not check sources of other types.
fn content(source: &str, value: &Value, path: Path<'_>, errors: &mut Errors) {
    // Upstream's message calls this source `persistentDisk`.
    let here = path.child(if source == "gcePersistentDisk" { "persistentDisk" } else { source });
    let required: &[&str] = match source {
        "persistentVolumeClaim" => &["claimName"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" => &["volumeID"],
        "configMap" => &["name"],
        "secret" => &["secretName"],
        "hostPath" => &["path"],
        "csi" => &["driver"],
        _ => &[],
    };
    for key in required {
        if text(value, key).is_empty() {
            errors.push(FieldError::required(here.child(key), ""));
        }
    }
    let template = &value["volumeClaimTemplate"];
    if source == "ephemeral" && template.is_null() {
        errors.push(FieldError::required(here.child("volumeClaimTemplate"), ""));
    } else if source == "ephemeral" {
        let here = here.child("volumeClaimTemplate");
        volume::on_claim(&template["spec"], here.child("spec"), errors);
    }
}
