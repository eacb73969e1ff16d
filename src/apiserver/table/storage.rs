//! Tables of volumes and claims, storage classes and drivers, resource claims and resource slices.

use serde_json::{Value, json};

use super::{Column, Layout, Subject};
use crate::apiserver::meta::list;

const NAME: Column = Column::name("Name");
const AGE: Column = Column::text("Age");
const UNSET: &str = "<unset>";

pub(super) const VOLUMES: Layout = Layout {
    columns: &[
        NAME,
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("Reclaim Policy"),
        Column::text("Status"),
        Column::text("Claim"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        Column::text("Reason"),
        AGE,
        Column::text("VolumeMode").wide(),
    ],
    cells: |volume| {
        let claim = if volume.at("/spec/claimRef").is_object() {
            format!("{}/{}", volume.text("/spec/claimRef/namespace"), volume.text("/spec/claimRef/name"))
        } else {
            String::new()
        };
        vec![
            volume.name(),
            json!(volume.text_or("/spec/capacity/storage", "0")),
            json!(access_modes(volume.at("/spec/accessModes"))),
            json!(volume.text("/spec/persistentVolumeReclaimPolicy")),
            json!(phase(volume)),
            json!(claim),
            json!(class(volume)),
            json!(volume.text_or("/spec/volumeAttributesClassName", UNSET)),
            json!(volume.text("/status/reason")),
            volume.age(),
            json!(volume.text_or("/spec/volumeMode", UNSET)),
        ]
    },
};

pub(super) const CLAIMS: Layout = Layout {
    columns: &[
        NAME,
        Column::text("Status"),
        Column::text("Volume"),
        Column::text("Capacity"),
        Column::text("Access Modes"),
        Column::text("StorageClass"),
        Column::text("VolumeAttributesClass"),
        AGE,
        Column::text("VolumeMode").wide(),
    ],
    cells: |claim| {
        let volume = claim.text("/spec/volumeName");
        let (capacity, modes) = match volume {
            "" => ("", String::new()),
            _ => (claim.text_or("/status/capacity/storage", "0"), access_modes(claim.at("/status/accessModes"))),
        };
        vec![
            claim.name(),
            json!(phase(claim)),
            json!(volume),
            json!(capacity),
            json!(modes),
            json!(class(claim)),
            json!(claim.text_or("/spec/volumeAttributesClassName", UNSET)),
            claim.age(),
            json!(claim.text_or("/spec/volumeMode", UNSET)),
        ]
    },
};

fn phase<'a>(subject: &'a Subject<'_>) -> &'a str {
    if subject.is_deleting() { "Terminating" } else { subject.text("/status/phase") }
}

/// Formats access modes as abbreviations. Follows `pkg/apis/core/helper/helpers.go#GetAccessModesAsString @v1.36.3`.
fn access_modes(modes: &Value) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let named = known.into_iter().filter(|(mode, _)| list(modes).any(|found| found.as_str() == Some(*mode)));
    named.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

/// Returns the storage class of a volume or claim.
/// Follows `pkg/apis/core/helper/helpers.go#GetPersistentVolumeClass @v1.36.3`.
fn class<'a>(subject: &'a Subject<'_>) -> &'a str {
    let annotated = subject.at("/metadata/annotations/volume.beta.kubernetes.io~1storage-class").as_str();
    annotated.unwrap_or_else(|| subject.text("/spec/storageClassName"))
}

pub(super) const CLASSES: Layout = Layout {
    columns: &[
        NAME,
        Column::text("Provisioner"),
        Column::text("ReclaimPolicy"),
        Column::text("VolumeBindingMode"),
        Column::text("AllowVolumeExpansion"),
        AGE,
    ],
    cells: |class| {
        let is_default = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"]
            .iter()
            .any(|prefix| class.text(&format!("/metadata/annotations/{prefix}~1is-default-class")) == "true");
        let name = class.text("/metadata/name");
        vec![
            json!(if is_default { format!("{name} (default)") } else { name.to_owned() }),
            json!(class.text("/provisioner")),
            json!(class.text_or("/reclaimPolicy", "Delete")),
            json!(class.text_or("/volumeBindingMode", "Immediate")),
            json!(class.flag("/allowVolumeExpansion", false)),
            class.age(),
        ]
    },
};

pub(super) const CSI_NODES: Layout = Layout {
    columns: &[NAME, Column::number("Drivers"), AGE],
    cells: |node| vec![node.name(), json!(list(node.at("/spec/drivers")).count()), node.age()],
};

pub(super) const CSI_DRIVERS: Layout = Layout {
    columns: &[
        NAME,
        Column::flag("AttachRequired"),
        Column::flag("PodInfoOnMount"),
        Column::flag("StorageCapacity"),
        Column::text("TokenRequests"),
        Column::flag("RequiresRepublish"),
        Column::text("Modes"),
        AGE,
    ],
    cells: |driver| {
        let modes: Vec<&str> = list(driver.at("/spec/volumeLifecycleModes")).filter_map(Value::as_str).collect();
        let audiences = list(driver.at("/spec/tokenRequests")).filter_map(|request| request["audience"].as_str());
        let tokens = if driver.at("/spec/tokenRequests").is_array() {
            audiences.collect::<Vec<_>>().join(",")
        } else {
            UNSET.to_owned()
        };
        vec![
            driver.name(),
            json!(driver.flag("/spec/attachRequired", true)),
            json!(driver.flag("/spec/podInfoOnMount", false)),
            json!(driver.flag("/spec/storageCapacity", false)),
            json!(tokens),
            json!(driver.flag("/spec/requiresRepublish", false)),
            json!(if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") }),
            driver.age(),
        ]
    },
};

pub(super) const ATTACHMENTS: Layout = Layout {
    columns: &[NAME, Column::name("Attacher"), Column::text("PV"), Column::text("Node"), Column::flag("Attached"), AGE],
    cells: |attachment| {
        vec![
            attachment.name(),
            json!(attachment.text("/spec/attacher")),
            json!(attachment.text("/spec/source/persistentVolumeName")),
            json!(attachment.text("/spec/nodeName")),
            json!(attachment.flag("/status/attached", false)),
            attachment.age(),
        ]
    },
};

pub(super) const ATTRIBUTES_CLASSES: Layout = Layout {
    columns: &[NAME, Column::text("DriverName"), AGE],
    cells: |class| vec![class.name(), json!(class.text("/driverName")), class.age()],
};

pub(super) const RESOURCE_CLAIMS: Layout = Layout {
    columns: &[NAME, Column::text("State"), AGE],
    cells: |claim| vec![claim.name(), json!(claim_state(claim)), claim.age()],
};

/// Returns the state of a resource claim.
/// Follows `pkg/printers/internalversion/printers.go#resourceClaimState @v1.36.3`.
fn claim_state(claim: &Subject<'_>) -> String {
    let mut states = Vec::new();
    if claim.is_deleting() {
        states.push("deleted");
    }
    if claim.at("/status/allocation").is_object() {
        states.push("allocated");
        if list(claim.at("/status/reservedFor")).next().is_some() {
            states.push("reserved");
        }
    } else if !claim.is_deleting() {
        states.push("pending");
    }
    states.join(",")
}

pub(super) const RESOURCE_SLICES: Layout = Layout {
    columns: &[NAME, Column::text("Node"), Column::text("Driver"), Column::text("Pool"), AGE],
    cells: |slice| {
        vec![
            slice.name(),
            json!(slice.text("/spec/nodeName")),
            json!(slice.text("/spec/driver")),
            json!(slice.text("/spec/pool/name")),
            slice.age(),
        ]
    },
};
