//! How the API's lists and structures are owned: element by element, or as a whole.
//!
//! These are the `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type` of upstream's `OpenAPI`
//! documents (`api/openapi-spec/v3 @v1.36.3`). Paths leave out list positions. A list that is not here is owned whole; a
//! structure or map that is not here is owned member by member.

use crate::apiserver::kinds::Kind;

/// How the value at a path is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// A list, by the members of its elements that name them.
    Keys(&'static [&'static str]),
    /// A list of plain values.
    Values,
    /// As a whole.
    Atomic,
    /// Nothing special: members of structures, and lists as a whole.
    Plain,
}

use Ownership::{Atomic, Keys, Plain, Values};

const NAME: Ownership = Keys(&["name"]);
const TYPE: Ownership = Keys(&["type"]);
const UID: Ownership = Keys(&["uid"]);

const METADATA: &[(&str, Ownership)] = &[("finalizers", Values), ("ownerReferences", UID)];

const POD_SPEC: &[(&str, Ownership)] = &[
    ("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", Atomic),
    ("containers", NAME),
    ("ephemeralContainers", NAME),
    ("hostAliases", Keys(&["ip"])),
    ("imagePullSecrets", NAME),
    ("initContainers", NAME),
    ("nodeSelector", Atomic),
    ("resourceClaims", NAME),
    ("resources.claims", NAME),
    ("schedulingGates", NAME),
    ("topologySpreadConstraints", Keys(&["topologyKey", "whenUnsatisfiable"])),
    ("topologySpreadConstraints.labelSelector", Atomic),
    ("volumes", NAME),
    ("volumes.ephemeral.volumeClaimTemplate.spec.dataSource", Atomic),
    ("volumes.ephemeral.volumeClaimTemplate.spec.selector", Atomic),
];

const CONTAINER: &[(&str, Ownership)] = &[
    ("env", NAME),
    ("env.valueFrom.configMapKeyRef", Atomic),
    ("env.valueFrom.fieldRef", Atomic),
    ("env.valueFrom.fileKeyRef", Atomic),
    ("env.valueFrom.resourceFieldRef", Atomic),
    ("env.valueFrom.secretKeyRef", Atomic),
    ("ports", Keys(&["containerPort", "protocol"])),
    ("resources.claims", NAME),
    ("volumeDevices", Keys(&["devicePath"])),
    ("volumeMounts", Keys(&["mountPath"])),
];

const BY_KIND: &[(&str, &str, Ownership)] = &[
    ("CSIDriver", "spec.volumeLifecycleModes", Values),
    ("CSINode", "spec.drivers", NAME),
    ("CSIStorageCapacity", "nodeTopology", Atomic),
    ("Event", "involvedObject", Atomic),
    ("Event", "regarding", Atomic),
    ("Event", "related", Atomic),
    ("Job", "status.uncountedTerminatedPods.failed", Values),
    ("Job", "status.uncountedTerminatedPods.succeeded", Values),
    ("Node", "spec.podCIDRs", Values),
    ("Node", "status.addresses", TYPE),
    ("PersistentVolume", "spec.claimRef", Atomic),
    ("PersistentVolume", "spec.nodeAffinity.required", Atomic),
    ("PersistentVolumeClaim", "spec.dataSource", Atomic),
    ("Pod", "status.podIPs", Keys(&["ip"])),
    ("Pod", "status.resourceClaimStatuses", NAME),
    ("ResourceClaim", "status.allocation.nodeSelector", Atomic),
    ("ResourceClaim", "status.devices", Keys(&["driver", "device", "pool", "shareID"])),
    ("ResourceClaim", "status.devices.conditions", TYPE),
    ("ResourceClaim", "status.reservedFor", UID),
    ("ResourceSlice", "spec.nodeSelector", Atomic),
    ("RuntimeClass", "scheduling.nodeSelector", Atomic),
    ("Service", "spec.ports", Keys(&["port", "protocol"])),
    ("ServiceAccount", "secrets", NAME),
];

/// Where a kind has a pod's specification in it.
fn pod_spec(kind: &Kind) -> Option<&'static str> {
    match kind.kind {
        "Pod" => Some("spec"),
        "ReplicationController" | "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet" | "Job" => {
            Some("spec.template.spec")
        }
        "CronJob" => Some("spec.jobTemplate.spec.template.spec"),
        _ => None,
    }
}

/// How the value at a path is owned.
pub(super) fn of(kind: &Kind, path: &str) -> Ownership {
    let listed =
        |table: &[(&str, Ownership)], name: &str| table.iter().find(|(listed, _)| *listed == name).map(|(_, how)| *how);
    if let Some((owner, name)) = path.rsplit_once('.')
        && (owner == "metadata" || owner.ends_with(".metadata"))
    {
        return listed(METADATA, name).unwrap_or(Plain);
    }
    // Elements that are references to other objects.
    if path.ends_with("secretRef") || path.ends_with("SecretRef") {
        return Atomic;
    }
    if let Some(inner) = pod_spec(kind).and_then(|prefix| path.strip_prefix(prefix)?.strip_prefix('.')) {
        let container = ["containers.", "initContainers.", "ephemeralContainers."];
        let inside = container.iter().find_map(|list| inner.strip_prefix(list));
        return inside.map_or_else(|| listed(POD_SPEC, inner), |inside| listed(CONTAINER, inside)).unwrap_or(Plain);
    }
    if let Some((.., how)) = BY_KIND.iter().find(|(owner, listed, _)| *owner == kind.kind && *listed == path) {
        return *how;
    }
    match path {
        // A job's conditions are the exception.
        "status.conditions" if !matches!(kind.kind, "Job" | "PersistentVolume") => TYPE,
        "spec.selector" | "spec.jobTemplate.spec.selector" => Atomic,
        _ => Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::kinds::{DEPLOYMENTS, JOBS, PODS, SERVICES};
    use super::*;

    #[test]
    fn ownership_is_found_by_path() {
        for (kind, path, expected) in [
            (&PODS, "spec.containers.ports", Keys(&["containerPort", "protocol"])),
            (&PODS, "spec.tolerations", Plain),
            (&PODS, "spec.nodeSelector", Atomic),
            (&DEPLOYMENTS, "spec.selector", Atomic),
            (&DEPLOYMENTS, "spec.template.spec.containers.env", NAME),
            (&DEPLOYMENTS, "spec.template.metadata.labels", Plain),
            (&SERVICES, "spec.ports", Keys(&["port", "protocol"])),
            (&PODS, "status.conditions", TYPE),
            (&JOBS, "status.conditions", Plain),
        ] {
            assert_eq!(of(kind, path), expected, "{} {path}", kind.kind);
        }
    }
}
