//! By which member the elements of a list are told apart when a strategic merge patch merges it.
//!
//! The paths leave out list positions. Lists that are not here are replaced whole, as upstream's `patchStrategy` and
//! `patchMergeKey` tags have it (`api/core/v1/types.go` and its siblings `@v1.36.3`).

use crate::apiserver::kinds::Kind;

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListMerge {
    /// By the member of its elements that names them.
    Key(&'static str),
    /// As a set of plain values.
    Values,
    /// Not at all.
    Replace,
}

use ListMerge::{Key, Values};

const METADATA: &[(&str, ListMerge)] = &[("ownerReferences", Key("uid")), ("finalizers", Values)];

const POD_SPEC: &[(&str, ListMerge)] = &[
    ("containers", Key("name")),
    ("initContainers", Key("name")),
    ("ephemeralContainers", Key("name")),
    ("volumes", Key("name")),
    ("schedulingGates", Key("name")),
    ("resourceClaims", Key("name")),
    ("imagePullSecrets", Key("name")),
    ("topologySpreadConstraints", Key("topologyKey")),
    ("hostAliases", Key("ip")),
];

const CONTAINER: &[(&str, ListMerge)] = &[
    ("env", Key("name")),
    ("ports", Key("containerPort")),
    ("volumeMounts", Key("mountPath")),
    ("volumeDevices", Key("devicePath")),
];

/// Lists by kind; pod templates have [`POD_SPEC`] below their prefix instead.
const BY_KIND: &[(&str, &str, ListMerge)] = &[
    ("Pod", "status.conditions", Key("type")),
    ("Pod", "status.podIPs", Key("ip")),
    ("Pod", "status.hostIPs", Key("ip")),
    ("Pod", "status.resourceClaimStatuses", Key("name")),
    ("Node", "status.conditions", Key("type")),
    ("Node", "status.addresses", Key("type")),
    ("Node", "spec.podCIDRs", Values),
    ("Namespace", "status.conditions", Key("type")),
    ("PersistentVolumeClaim", "status.conditions", Key("type")),
    ("ReplicationController", "status.conditions", Key("type")),
    ("ReplicaSet", "status.conditions", Key("type")),
    ("Deployment", "status.conditions", Key("type")),
    ("StatefulSet", "status.conditions", Key("type")),
    ("DaemonSet", "status.conditions", Key("type")),
    ("Job", "status.conditions", Key("type")),
    ("PodDisruptionBudget", "status.conditions", Key("type")),
    ("Service", "spec.ports", Key("port")),
    ("Service", "status.conditions", Key("type")),
    ("ResourceClaim", "status.reservedFor", Key("uid")),
    ("ServiceAccount", "secrets", Key("name")),
    ("ServiceAccount", "imagePullSecrets", Key("name")),
    ("CSINode", "spec.drivers", Key("name")),
];

/// Where a kind has a pod's specification in it.
const POD_SPECS: &[(&str, &str)] = &[
    ("Pod", "spec"),
    ("ReplicationController", "spec.template.spec"),
    ("ReplicaSet", "spec.template.spec"),
    ("Deployment", "spec.template.spec"),
    ("StatefulSet", "spec.template.spec"),
    ("DaemonSet", "spec.template.spec"),
    ("Job", "spec.template.spec"),
    ("CronJob", "spec.jobTemplate.spec.template.spec"),
];

/// Whether the object at `path` is replaced whole.
pub(super) fn replaces_object(kind: &Kind, path: &str) -> bool {
    kind.kind == "PodDisruptionBudget" && path == "spec.selector"
}

/// How the list at `path` is merged.
pub(super) fn of(kind: &Kind, path: &str) -> ListMerge {
    let listed = |table: &[(&str, ListMerge)], name: &str| {
        table.iter().find(|(listed, _)| *listed == name).map(|(_, merge)| *merge)
    };
    if let Some((owner, name)) = path.rsplit_once('.')
        && (owner == "metadata" || owner.ends_with(".metadata"))
    {
        return listed(METADATA, name).unwrap_or(ListMerge::Replace);
    }
    if let Some((_, _, merge)) = BY_KIND.iter().find(|(owner, listed, _)| *owner == kind.kind && *listed == path) {
        return *merge;
    }
    let spec = POD_SPECS.iter().find(|(owner, _)| *owner == kind.kind).map(|(_, prefix)| *prefix);
    let inner = spec.and_then(|prefix| path.strip_prefix(prefix)?.strip_prefix('.'));
    let found = inner.and_then(|inner| match inner.split_once('.') {
        None => listed(POD_SPEC, inner),
        Some(("containers" | "initContainers" | "ephemeralContainers", name)) => listed(CONTAINER, name),
        Some(_) => None,
    });
    found.unwrap_or(ListMerge::Replace)
}

#[cfg(test)]
mod tests {
    use super::super::super::kinds::{DEPLOYMENTS, NODES, PODS};
    use super::*;

    #[test]
    fn lists_are_found_by_their_path() {
        for (kind, path, expected) in [
            (&PODS, "metadata.finalizers", Values),
            (&PODS, "status.conditions", Key("type")),
            (&PODS, "status.containerStatuses", ListMerge::Replace),
            (&PODS, "spec.tolerations", ListMerge::Replace),
            (&PODS, "spec.containers.ports", Key("containerPort")),
            (&DEPLOYMENTS, "spec.template.spec.containers.env", Key("name")),
            (&DEPLOYMENTS, "spec.template.metadata.ownerReferences", Key("uid")),
            (&DEPLOYMENTS, "spec.containers", ListMerge::Replace),
            (&NODES, "spec.taints", ListMerge::Replace),
        ] {
            assert_eq!(of(kind, path), expected, "{} {path}", kind.kind);
        }
    }
}
