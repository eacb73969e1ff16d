//! Validation of CSI nodes, CSI drivers, CSI storage capacities, volume attachments and volume attributes classes.
//!
//! Follows `pkg/apis/storage/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, immutable, non_negative, text};
use super::metadata::{invalid_each, label_name};
use super::{resources, scheduling};
use crate::apimachinery::FieldError;
use crate::apiserver::kinds::{
    CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, Kind, VOLUME_ATTACHMENTS, VOLUME_ATTRIBUTES_CLASSES,
};
use crate::apiserver::meta;
use crate::config::Gate;
use crate::k8s::names;

/// Checks a new object of one of this module's kinds. Accepts objects of other kinds.
pub(super) fn on_create(kind: &Kind, value: &Value, errors: &mut Errors) {
    let spec = &value["spec"];
    let is = |other: &Kind| kind.slot == other.slot;
    if is(&CSI_NODES) {
        node(spec, errors);
    } else if is(&CSI_DRIVERS) {
        driver(spec, errors);
    } else if is(&CSI_STORAGE_CAPACITIES) {
        capacity(value, errors);
    } else if is(&VOLUME_ATTACHMENTS) {
        attachment(spec, errors);
    } else if is(&VOLUME_ATTRIBUTES_CLASSES) && text(value, "driverName").is_empty() {
        errors.push(FieldError::required("driverName", ""));
    }
}

/// Checks an updated object of one of this module's kinds. Accepts objects of other kinds.
pub(super) fn on_update(kind: &Kind, value: &Value, before: &Value, errors: &mut Errors) {
    let is = |other: &Kind| kind.slot == other.slot;
    if is(&CSI_NODES) {
        node_update(&value["spec"], &before["spec"], errors);
    } else if is(&CSI_DRIVERS) {
        let spec = Path::Root("spec");
        // Upstream's message spells the field `attachedRequired`.
        let path = spec.child("attachedRequired");
        immutable(path, &value["spec"]["attachRequired"], &before["spec"]["attachRequired"], errors);
        driver(&value["spec"], errors);
    } else if is(&CSI_STORAGE_CAPACITIES) {
        capacity(value, errors);
        for key in ["nodeTopology", "storageClassName"] {
            immutable(key, &value[key], &before[key], errors);
        }
    } else if is(&VOLUME_ATTACHMENTS) && value["spec"] != before["spec"] {
        let spec = &value["spec"];
        let mut error = FieldError::invalid("spec", spec, "field is immutable");
        error.value = format!(
            r#"{{"Attacher":{},"Source":{{"PersistentVolumeName":{},"InlineVolumeSpec":{}}},"NodeName":{}}}"#,
            spec["attacher"],
            spec["source"]["persistentVolumeName"],
            spec["source"]["inlineVolumeSpec"],
            spec["nodeName"]
        );
        errors.push(error);
    } else if is(&VOLUME_ATTRIBUTES_CLASSES) {
        for key in ["driverName", "parameters"] {
            if value[key] != before[key] {
                errors.push(FieldError::forbidden(key, format!("updates to {key} are forbidden.")));
            }
        }
    }
}

/// Checks the name of a CSI driver. Follows `pkg/apis/core/validation/validation.go#ValidateCSIDriverName @v1.36.3`.
fn driver_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if name.len() > 63 {
        errors.push(FieldError::invalid(path, &json!(name), "must be no more than 63 characters"));
    }
    invalid_each(path, name, names::dns1123_subdomain_errors(&name.to_lowercase()), errors);
}

/// Checks the drivers of a CSI node. Follows `#validateCSINodeDrivers`.
fn node(spec: &Value, errors: &mut Errors) {
    let (root, mut known) = (Path::Root("spec"), Vec::new());
    let list = root.child("drivers");
    for (at, driver) in meta::list(&spec["drivers"]).enumerate() {
        let path = list.index(at);
        let name = text(driver, "name");
        driver_name(name, path.child("name"), errors);
        if text(driver, "nodeID").is_empty() {
            errors.push(FieldError::required(path.child("nodeID"), ""));
        }
        non_negative(&driver["allocatable"], "count", path.child("allocatable"), errors);
        if known.contains(&name) {
            errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
        }
        known.push(name);
        let keys: Vec<&str> = meta::list(&driver["topologyKeys"]).filter_map(Value::as_str).collect();
        for (at, key) in keys.iter().enumerate() {
            let path = path.child("topologyKeys");
            if key.is_empty() {
                errors.push(FieldError::required(path, ""));
            }
            if keys[..at].contains(key) {
                errors.push(FieldError::duplicate(path, &json!(key)));
            }
            label_name(key, path, errors);
        }
    }
}

/// Checks that the drivers of a CSI node stay as they are. With `MutableCSINodeAllocatableCount`, the number of volumes may
/// change.
/// Follows `#ValidateCSINodeUpdate`.
fn node_update(spec: &Value, old: &Value, errors: &mut Errors) {
    node(spec, errors);
    let may_count = errors.enabled(Gate::MutableCSINodeAllocatableCount);
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        if let Some(members) = driver.as_object_mut().filter(|_| may_count) {
            members.remove("allocatable");
        }
        driver
    };
    for old in meta::list(&old["drivers"]) {
        for new in meta::list(&spec["drivers"]).filter(|new| new["name"] == old["name"]) {
            let (new, old) = (fixed(new), fixed(old));
            if new != old {
                let mut error = FieldError::invalid("spec.drivers", &new, "field is immutable");
                error.value = format!(
                    r#"{{"Name":{},"NodeID":{},"TopologyKeys":{},"Allocatable":{}}}"#,
                    new["name"],
                    new["nodeID"],
                    new["topologyKeys"],
                    if new["allocatable"].is_null() {
                        Value::Null
                    } else {
                        json!({"Count": new["allocatable"]["count"]})
                    }
                );
                errors.push(error);
            }
        }
    }
}

/// Checks the spec of a CSI driver. Follows `#validateCSIDriverSpec`.
fn driver(spec: &Value, errors: &mut Errors) {
    let path = Path::Root("spec");
    let known = ["File", "None", "ReadWriteOnceWithFSType"];
    if let Some(policy) = spec["fsGroupPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        errors.push(FieldError::not_supported(path.child("fsGroupPolicy"), &json!(policy), &known));
    }
    let known = ["Persistent", "Ephemeral"];
    for mode in meta::list(&spec["volumeLifecycleModes"]).filter_map(Value::as_str) {
        if !known.contains(&mode) {
            errors.push(FieldError::not_supported(path.child("volumeLifecycleModes"), &json!(mode), &known));
        }
    }
}

/// Checks a CSI storage capacity. Follows `#ValidateCSIStorageCapacity`.
fn capacity(value: &Value, errors: &mut Errors) {
    scheduling::label_selector(&value["nodeTopology"], Path::Root("nodeTopology"), errors);
    let name = text(value, "storageClassName");
    invalid_each(Path::Root("storageClassName"), name, names::dns1123_subdomain_errors(name), errors);
    if !value["capacity"].is_null() {
        resources::quantity("", &value["capacity"], Path::Root("capacity"), errors);
    }
}

/// Checks the spec of a volume attachment. Follows `#validateVolumeAttachmentSpec`.
fn attachment(spec: &Value, errors: &mut Errors) {
    let path = Path::Root("spec");
    driver_name(text(spec, "attacher"), path.child("attacher"), errors);
    let source = &spec["source"];
    let (name, inline) = (&source["persistentVolumeName"], &source["inlineVolumeSpec"]);
    match (name.as_str(), inline.is_null()) {
        (None, true) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(FieldError::required(path.child("source"), detail));
        }
        (Some(_), false) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(FieldError::forbidden(path.child("source"), detail));
        }
        (Some(""), true) => {
            let source = path.child("source");
            errors.push(FieldError::required(
                source.child("persistentVolumeName"),
                "must specify non empty persistentVolumeName",
            ));
        }
        _ => {}
    }
    let node = text(spec, "nodeName");
    invalid_each(path.child("nodeName"), node, names::dns1123_subdomain_errors(node), errors);
}
