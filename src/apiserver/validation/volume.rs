//! Validation of persistent volumes, and of new persistent volume claims.
//!
//! Follows `pkg/apis/core/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::invalid_each;
use super::scheduling;
use crate::apimachinery::FieldError;
use crate::apiserver::amounts;
use crate::apiserver::meta;
use crate::k8s::names;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Volume sources in upstream's order, with the members that each requires.
const SOURCES: [(&str, &[&str]); 22] = [
    ("hostPath", &["path"]),
    ("gcePersistentDisk", &[]),
    ("awsElasticBlockStore", &[]),
    ("glusterfs", &[]),
    ("flocker", &[]),
    ("nfs", &[]),
    ("rbd", &[]),
    ("quobyte", &[]),
    ("cephfs", &[]),
    ("iscsi", &[]),
    ("cinder", &[]),
    ("fc", &[]),
    ("azureFile", &[]),
    ("vsphereVolume", &[]),
    ("photonPersistentDisk", &[]),
    ("portworxVolume", &[]),
    ("azureDisk", &[]),
    ("scaleIO", &[]),
    ("local", &["path"]),
    ("storageos", &[]),
    ("csi", &["driver", "volumeHandle"]),
    ("secret", &[]),
];

/// Checks the spec of a persistent volume. Follows `#ValidatePersistentVolumeSpec`.
pub(super) fn on_volume(volume: &Value, errors: &mut Errors) {
    let (spec, path) = (&volume["spec"], Path::Root("spec"));
    access_modes(spec, "", path, errors);
    let capacity = &spec["capacity"];
    let storage = &capacity["storage"];
    if meta::is_empty(capacity) {
        errors.push(FieldError::required(path.child("capacity"), ""));
    }
    if storage.is_null() || capacity.as_object().is_some_and(|list| list.len() > 1) {
        errors.push(FieldError::not_supported(path.child("capacity"), capacity, &["storage"]));
    }
    if let Some(size) = amounts::quantity(storage) {
        let list = path.child("capacity");
        let entry = list.key("storage");
        if size.signum() < 0 {
            let mut error = FieldError::invalid(entry, storage, "must be a valid resource quantity");
            error.value = size.to_string();
            errors.push(error);
        }
        positive(storage, entry, errors);
    }
    source(spec, path, errors);
    let affinity = &spec["nodeAffinity"];
    let here = path.child("nodeAffinity");
    if affinity.is_null() {
        if !spec["local"].is_null() {
            errors.push(FieldError::required(here, "Local volume requires node affinity"));
        }
    } else if affinity["required"].is_null() {
        errors.push(FieldError::required(here.child("required"), "must specify required node constraints"));
    } else {
        scheduling::node_selector(&affinity["required"], here.child("required"), errors);
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    let known = ["Delete", "Recycle", "Retain"];
    let here = path.child("persistentVolumeReclaimPolicy");
    if !known.contains(&policy) {
        errors.push(FieldError::not_supported(here, &json!(policy), &known));
    }
    if policy == "Recycle" && text(&spec["hostPath"], "path") == "/" {
        errors.push(FieldError::forbidden(here, "may not be 'recycle' for a hostPath mount of '/'"));
    }
    class_and_mode(spec, path, errors);
    if !spec["volumeAttributesClassName"].is_null() && spec["csi"].is_null() {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.push(FieldError::required(path.child("csi"), detail));
    }
}

fn source(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let mut given = SOURCES.iter().filter(|(name, _)| !spec[*name].is_null());
    let Some((first, required)) = given.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    let here = path.child(first);
    for key in *required {
        if text(&spec[*first], key).is_empty() {
            errors.push(FieldError::required(here.child(key), ""));
        }
    }
    for (other, _) in given {
        errors.push(FieldError::forbidden(path.child(other), "may not specify more than 1 volume type"));
    }
}

/// Checks the spec of a persistent volume claim. Follows `#ValidatePersistentVolumeClaimSpec`.
pub(super) fn on_claim(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    access_modes(spec, "at least 1 access mode is required", path, errors);
    scheduling::label_selector(&spec["selector"], path.child("selector"), errors);
    let storage = &spec["resources"]["requests"]["storage"];
    let list = path.child("resources");
    if storage.is_null() {
        errors.push(FieldError::required(list.key("storage"), ""));
    } else {
        positive(storage, list.key("storage"), errors);
    }
    class_and_mode(spec, path, errors);
}

fn access_modes(spec: &Value, missing: &str, path: Path<'_>, errors: &mut Errors) {
    let here = path.child("accessModes");
    let modes: Vec<&str> = meta::list(&spec["accessModes"]).filter_map(Value::as_str).collect();
    if modes.is_empty() {
        errors.push(FieldError::required(here, missing));
    }
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(*mode)) {
        errors.push(FieldError::not_supported(here, &json!(mode), &ACCESS_MODES));
    }
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(|mode| *mode != "ReadWriteOncePod") {
        errors.push(FieldError::forbidden(here, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn class_and_mode(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        invalid_each(path.child("storageClassName"), class, names::dns1123_subdomain_errors(class), errors);
    }
    let known = ["Block", "Filesystem"];
    if let Some(mode) = spec["volumeMode"].as_str().filter(|mode| !known.contains(mode)) {
        errors.push(FieldError::not_supported(path.child("volumeMode"), &json!(mode), &known));
    }
}

/// Checks that a quantity is positive. Follows `#ValidatePositiveQuantityValue`.
fn positive(amount: &Value, path: Path<'_>, errors: &mut Errors) {
    if amounts::quantity(amount).is_some_and(|quantity| quantity.signum() <= 0) {
        errors.push(FieldError::invalid(path, amount, "must be greater than zero"));
    }
}
