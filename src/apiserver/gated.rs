//! Members of objects that exist only while a feature gate is on. The server drops them from new and updated objects while the
//! gate is off, without a warning.
//!
//! Gates that are locked at every version that can be emulated are left out, and so are handlers for the sleep action of
//! containers, which only the kubelet reads.

use serde_json::Value;

use super::kinds::{
    CRON_JOBS, CSI_DRIVERS, DAEMON_SETS, DEPLOYMENTS, DEVICE_CLASSES, JOBS, Kind, LEASES, NODES,
    PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS,
    RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RESOURCE_SLICES, STATEFUL_SETS,
};
use super::meta;
use crate::config::{FeatureGates, Gate};

/// The objects that a feature belongs to.
#[derive(Clone, Copy)]
enum Owner {
    /// Specs of pods and of pod templates.
    PodSpec,
    /// Specs of resource claims and of their templates.
    ClaimSpec,
    /// Objects of one kind.
    Kind(&'static Kind),
}

/// A feature with its members. While one of the gates is off, the members are dropped.
struct Feature {
    owner: Owner,
    gates: &'static [Gate],
    /// Paths of the members, in which `*` stands for each element of a list or each entry of a map.
    members: &'static [&'static str],
}

const fn feature(owner: Owner, gates: &'static [Gate], members: &'static [&'static str]) -> Feature {
    Feature { owner, gates, members }
}

static FEATURES: &[Feature] = &[
    feature(Owner::PodSpec, &[Gate::PodLevelResources], &["resources"]),
    feature(
        Owner::PodSpec,
        &[Gate::MatchLabelKeysInPodTopologySpread],
        &["topologySpreadConstraints.*.matchLabelKeys"],
    ),
    feature(Owner::PodSpec, &[Gate::UserNamespacesSupport], &["hostUsers"]),
    feature(Owner::PodSpec, &[Gate::HostnameOverride], &["hostnameOverride"]),
    feature(Owner::PodSpec, &[Gate::GenericWorkload], &["schedulingGroup"]),
    feature(
        Owner::PodSpec,
        &[Gate::DynamicResourceAllocation],
        &["resourceClaims", "containers.*.resources.claims", "initContainers.*.resources.claims"],
    ),
    feature(
        Owner::PodSpec,
        &[Gate::InPlacePodVerticalScaling],
        &["containers.*.resizePolicy", "initContainers.*.resizePolicy"],
    ),
    feature(
        Owner::PodSpec,
        &[Gate::ContainerRestartRules],
        &["containers.*.restartPolicy", "containers.*.restartPolicyRules", "initContainers.*.restartPolicyRules"],
    ),
    feature(
        Owner::PodSpec,
        &[Gate::EnvFiles],
        &["containers.*.env.*.valueFrom.fileKeyRef", "initContainers.*.env.*.valueFrom.fileKeyRef"],
    ),
    feature(
        Owner::PodSpec,
        &[Gate::ContainerStopSignals],
        &["containers.*.lifecycle.stopSignal", "initContainers.*.lifecycle.stopSignal"],
    ),
    feature(
        Owner::PodSpec,
        &[Gate::ProcMountType],
        &["containers.*.securityContext.procMount", "initContainers.*.securityContext.procMount"],
    ),
    feature(Owner::PodSpec, &[Gate::SELinuxChangePolicy], &["securityContext.seLinuxChangePolicy"]),
    feature(Owner::PodSpec, &[Gate::SupplementalGroupsPolicy], &["securityContext.supplementalGroupsPolicy"]),
    feature(
        Owner::PodSpec,
        &[Gate::ClusterTrustBundleProjection],
        &["volumes.*.projected.sources.*.clusterTrustBundle"],
    ),
    feature(Owner::PodSpec, &[Gate::PodCertificateRequest], &["volumes.*.projected.sources.*.podCertificate"]),
    feature(
        Owner::Kind(&PODS),
        &[Gate::InPlacePodLevelResourcesVerticalScaling],
        &["status.resources", "status.allocatedResources"],
    ),
    feature(
        Owner::Kind(&PODS),
        &[Gate::InPlacePodVerticalScaling],
        &[
            "status.containerStatuses.*.resources",
            "status.containerStatuses.*.allocatedResources",
            "status.initContainerStatuses.*.resources",
            "status.initContainerStatuses.*.allocatedResources",
        ],
    ),
    feature(Owner::Kind(&PODS), &[Gate::DynamicResourceAllocation], &["status.resourceClaimStatuses"]),
    feature(Owner::Kind(&PODS), &[Gate::DRAExtendedResource], &["status.extendedResourceClaimStatus"]),
    feature(Owner::Kind(&PODS), &[Gate::DRANodeAllocatableResources], &["status.nodeAllocatableResourceClaimStatuses"]),
    feature(
        Owner::Kind(&PODS),
        &[Gate::ResourceHealthStatus],
        &[
            "status.containerStatuses.*.allocatedResourcesStatus",
            "status.initContainerStatuses.*.allocatedResourcesStatus",
        ],
    ),
    feature(Owner::Kind(&NODES), &[Gate::NodeDeclaredFeatures], &["status.declaredFeatures"]),
    feature(Owner::Kind(&NODES), &[Gate::SupplementalGroupsPolicy], &["status.features"]),
    feature(Owner::Kind(&LEASES), &[Gate::CoordinatedLeaderElection], &["spec.strategy"]),
    feature(Owner::Kind(&LEASES), &[Gate::CoordinatedLeaderElection], &["spec.preferredHolder"]),
    feature(Owner::Kind(&PERSISTENT_VOLUMES), &[Gate::VolumeAttributesClass], &["spec.volumeAttributesClassName"]),
    feature(
        Owner::Kind(&PERSISTENT_VOLUME_CLAIMS),
        &[Gate::VolumeAttributesClass],
        &["spec.volumeAttributesClassName"],
    ),
    feature(
        Owner::Kind(&PERSISTENT_VOLUME_CLAIMS),
        &[Gate::VolumeAttributesClass],
        &["status.currentVolumeAttributesClassName"],
    ),
    feature(Owner::Kind(&PERSISTENT_VOLUME_CLAIMS), &[Gate::VolumeAttributesClass], &["status.modifyVolumeStatus"]),
    feature(
        Owner::Kind(&PERSISTENT_VOLUME_CLAIMS),
        &[Gate::RecoverVolumeExpansionFailure],
        &["status.allocatedResources"],
    ),
    feature(
        Owner::Kind(&PERSISTENT_VOLUME_CLAIMS),
        &[Gate::RecoverVolumeExpansionFailure],
        &["status.allocatedResourceStatuses"],
    ),
    feature(Owner::Kind(&CSI_DRIVERS), &[Gate::SELinuxMountReadWriteOncePod], &["spec.seLinuxMount"]),
    feature(
        Owner::Kind(&CSI_DRIVERS),
        &[Gate::MutableCSINodeAllocatableCount],
        &["spec.nodeAllocatableUpdatePeriodSeconds"],
    ),
    feature(Owner::Kind(&CSI_DRIVERS), &[Gate::CSIServiceAccountTokenSecrets], &["spec.serviceAccountTokenInSecrets"]),
    feature(Owner::Kind(&CSI_DRIVERS), &[Gate::VolumeLimitScaling], &["spec.preventPodSchedulingIfMissing"]),
    feature(
        Owner::Kind(&STATEFUL_SETS),
        &[Gate::MaxUnavailableStatefulSet],
        &["spec.updateStrategy.rollingUpdate.maxUnavailable"],
    ),
    feature(
        Owner::Kind(&DEPLOYMENTS),
        &[Gate::DeploymentReplicaSetTerminatingReplicas],
        &["status.terminatingReplicas"],
    ),
    feature(
        Owner::Kind(&REPLICA_SETS),
        &[Gate::DeploymentReplicaSetTerminatingReplicas],
        &["status.terminatingReplicas"],
    ),
    feature(Owner::Kind(&JOBS), &[Gate::JobManagedBy], &["spec.managedBy"]),
    feature(Owner::Kind(&JOBS), &[Gate::JobPodReplacementPolicy], &["spec.podReplacementPolicy"]),
    feature(Owner::Kind(&DEVICE_CLASSES), &[Gate::DRAExtendedResource], &["spec.extendedResourceName"]),
    feature(Owner::ClaimSpec, &[Gate::DRAPrioritizedList], &["devices.requests.*.firstAvailable"]),
    feature(
        Owner::ClaimSpec,
        &[Gate::DRADeviceTaints],
        &["devices.requests.*.exactly.tolerations", "devices.requests.*.firstAvailable.*.tolerations"],
    ),
    feature(Owner::ClaimSpec, &[Gate::DRAAdminAccess], &["devices.requests.*.exactly.adminAccess"]),
    feature(
        Owner::ClaimSpec,
        &[Gate::DRAConsumableCapacity],
        &[
            "devices.constraints.*.distinctAttribute",
            "devices.requests.*.exactly.capacity",
            "devices.requests.*.firstAvailable.*.capacity",
        ],
    ),
    feature(Owner::Kind(&RESOURCE_CLAIMS), &[Gate::DRAResourceClaimDeviceStatus], &["status.devices"]),
    feature(
        Owner::Kind(&RESOURCE_CLAIMS),
        &[Gate::DRAAdminAccess],
        &["status.allocation.devices.results.*.adminAccess"],
    ),
    feature(
        Owner::Kind(&RESOURCE_CLAIMS),
        &[Gate::DRAConsumableCapacity],
        &[
            "status.allocation.devices.results.*.shareID",
            "status.allocation.devices.results.*.consumedCapacity",
            "status.devices.*.shareID",
        ],
    ),
    feature(
        Owner::Kind(&RESOURCE_CLAIMS),
        &[Gate::DRADeviceBindingConditions],
        &[
            "status.allocation.devices.results.*.bindingConditions",
            "status.allocation.devices.results.*.bindingFailureConditions",
        ],
    ),
    feature(Owner::Kind(&RESOURCE_SLICES), &[Gate::DRADeviceTaints], &["spec.devices.*.taints"]),
    feature(
        Owner::Kind(&RESOURCE_SLICES),
        &[Gate::DRAPartitionableDevices],
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices.*.consumesCounters",
            "spec.devices.*.nodeName",
            "spec.devices.*.nodeSelector",
            "spec.devices.*.allNodes",
        ],
    ),
    feature(
        Owner::Kind(&RESOURCE_SLICES),
        &[Gate::DRADeviceBindingConditions, Gate::DRAResourceClaimDeviceStatus],
        &["spec.devices.*.bindingConditions", "spec.devices.*.bindingFailureConditions", "spec.devices.*.bindsToNode"],
    ),
    feature(
        Owner::Kind(&RESOURCE_SLICES),
        &[Gate::DRAConsumableCapacity],
        &["spec.devices.*.allowMultipleAllocations", "spec.devices.*.capacity.*.requestPolicy"],
    ),
    feature(
        Owner::Kind(&RESOURCE_SLICES),
        &[Gate::DRANodeAllocatableResources],
        &["spec.devices.*.nodeAllocatableResourceMappings"],
    ),
    feature(
        Owner::Kind(&RESOURCE_SLICES),
        &[Gate::DRAListTypeAttributes],
        &[
            "spec.devices.*.attributes.*.bools",
            "spec.devices.*.attributes.*.ints",
            "spec.devices.*.attributes.*.strings",
            "spec.devices.*.attributes.*.versions",
        ],
    ),
];

impl Owner {
    /// Returns the JSON pointer from an object of `kind` to the part that the feature's paths start from. Returns `None` if the
    /// feature does not belong to the kind.
    fn pointer(self, kind: &Kind) -> Option<&'static str> {
        match self {
            Self::PodSpec => pod_spec_pointer(kind),
            Self::ClaimSpec if kind.slot == RESOURCE_CLAIMS.slot => Some("/spec"),
            Self::ClaimSpec if kind.slot == RESOURCE_CLAIM_TEMPLATES.slot => Some("/spec/spec"),
            Self::Kind(owner) if owner.slot == kind.slot => Some(""),
            Self::ClaimSpec | Self::Kind(_) => None,
        }
    }
}

/// Returns the JSON pointer to the pod spec in an object of `kind`.
fn pod_spec_pointer(kind: &Kind) -> Option<&'static str> {
    let of_template = [&DEPLOYMENTS, &REPLICA_SETS, &REPLICATION_CONTROLLERS, &STATEFUL_SETS, &DAEMON_SETS, &JOBS]
        .map(|kind| kind.slot);
    if kind.slot == PODS.slot {
        Some("/spec")
    } else if of_template.contains(&kind.slot) {
        Some("/spec/template/spec")
    } else {
        (kind.slot == CRON_JOBS.slot).then_some("/spec/jobTemplate/spec/template/spec")
    }
}

/// Drops the members of disabled features from a new or updated object. `old` is the object before an update. If `old` uses a
/// feature, its members stay, so that an update keeps what the object has.
/// Follows `pkg/api/pod/util.go#DropDisabledPodFields @v1.36.3`, and the strategies in `pkg/registry` for the other kinds.
pub(super) fn drop_disabled(gates: &FeatureGates, kind: &Kind, value: &mut Value, old: Option<&Value>) {
    for feature in FEATURES.iter().filter(|feature| feature.gates.iter().any(|gate| !gates.enabled(*gate))) {
        let Some(pointer) = feature.owner.pointer(kind) else { continue };
        let Some(part) = value.pointer_mut(pointer) else { continue };
        let old = old.and_then(|old| old.pointer(pointer)).unwrap_or(&Value::Null);
        if !feature.members.iter().any(|path| has(old, path)) {
            feature.members.iter().for_each(|path| remove(part, path));
        }
    }
    if let Some(spec) = pod_spec_pointer(kind).and_then(|pointer| value.pointer_mut(pointer)) {
        let old = old.and_then(|old| old.pointer(pod_spec_pointer(kind)?)).unwrap_or(&Value::Null);
        drop_from_pod_spec(gates, spec, old);
    }
    if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot && !gates.enabled(Gate::CrossNamespaceVolumeDataSource) {
        let is_foreign = !meta::is_empty(&value["spec"]["dataSourceRef"]["namespace"]);
        if is_foreign && !old.is_some_and(|old| has(old, "spec.dataSourceRef")) {
            remove(value, "spec.dataSourceRef");
        }
    }
}

/// Drops what depends on other members of the pod spec: image volumes with their mounts, restart policies of init containers that
/// are not sidecars, and lifecycles that have become empty.
fn drop_from_pod_spec(gates: &FeatureGates, spec: &mut Value, old: &Value) {
    let is_sidecar_policy = |container: &Value| matches!(container["restartPolicy"].as_str(), None | Some("Always"));
    if !gates.enabled(Gate::ContainerRestartRules) && meta::list(&old["initContainers"]).all(is_sidecar_policy) {
        for container in spec.get_mut("initContainers").and_then(Value::as_array_mut).into_iter().flatten() {
            if !is_sidecar_policy(container) {
                remove(container, "restartPolicy");
            }
        }
    }
    let is_image = |volume: &Value| !volume["image"].is_null();
    if !gates.enabled(Gate::ImageVolume) && !meta::list(&old["volumes"]).any(is_image) {
        let images: Vec<Value> = meta::list(&spec["volumes"])
            .filter(|volume| is_image(volume))
            .map(|volume| volume["name"].clone())
            .collect();
        if !images.is_empty() {
            retain(spec, "volumes", |volume| !is_image(volume));
            for list in ["containers", "initContainers"] {
                for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                    retain(container, "volumeMounts", |mount| !images.contains(&mount["name"]));
                }
            }
        }
    }
    if !gates.enabled(Gate::ContainerStopSignals) {
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if container["lifecycle"].as_object().is_some_and(serde_json::Map::is_empty) {
                    remove(container, "lifecycle");
                }
            }
        }
    }
}

/// Keeps the elements of a member for which `keep` is true, and removes the member if none is left.
fn retain(owner: &mut Value, list: &str, keep: impl Fn(&Value) -> bool) {
    let Some(items) = owner.get_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(|item| keep(item));
    if items.is_empty() {
        remove(owner, list);
    }
}

/// Whether an object has a member at a path.
fn has(value: &Value, path: &str) -> bool {
    match path.split_once('.') {
        None => value.get(path).is_some_and(|value| !value.is_null()),
        Some(("*", rest)) => match value {
            Value::Array(items) => items.iter().any(|item| has(item, rest)),
            Value::Object(entries) => entries.values().any(|entry| has(entry, rest)),
            _ => false,
        },
        Some((step, rest)) => value.get(step).is_some_and(|value| has(value, rest)),
    }
}

/// Removes the member at a path.
fn remove(value: &mut Value, path: &str) {
    match path.split_once('.') {
        None => {
            if let Some(members) = value.as_object_mut() {
                members.remove(path);
            }
        }
        Some(("*", rest)) => match value {
            Value::Array(items) => items.iter_mut().for_each(|item| remove(item, rest)),
            Value::Object(entries) => entries.values_mut().for_each(|entry| remove(entry, rest)),
            _ => {}
        },
        Some((step, rest)) => {
            if let Some(value) = value.get_mut(step) {
                remove(value, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::schema;

    /// Drops with one gate switched, and checks which object is left.
    #[track_caller]
    fn check((gate, on): (Gate, bool), kind: &Kind, value: Value, old: Option<&Value>, expected: &Value) {
        let mut value = value;
        drop_disabled(&FeatureGates::default().with(gate, on), kind, &mut value, old);
        assert_eq!(&value, expected, "{} {on}", gate.name());
    }

    #[test]
    fn every_member_is_known_to_the_api() {
        for feature in FEATURES {
            let owner: &Kind = match feature.owner {
                Owner::PodSpec => &PODS,
                Owner::ClaimSpec => &RESOURCE_CLAIMS,
                Owner::Kind(kind) => kind,
            };
            let start = if matches!(feature.owner, Owner::Kind(_)) { "" } else { "spec." };
            for path in feature.members {
                let path = format!("{start}{path}").replace(".*", "");
                assert!(schema::Object::of(owner).at(&path).is_some(), "{} {path}", owner.kind);
            }
        }
    }

    #[test]
    fn members_are_dropped_while_their_gate_is_off() {
        let spec = json!({"resources": {"limits": {"cpu": "1"}}, "hostUsers": false});
        let (pod, template) = (json!({"spec": spec}), json!({"spec": {"template": {"spec": spec}}}));
        let off = (Gate::PodLevelResources, false);
        check(off, &PODS, pod.clone(), None, &json!({"spec": {"hostUsers": false}}));
        check(off, &DEPLOYMENTS, template, None, &json!({"spec": {"template": {"spec": {"hostUsers": false}}}}));
        check((Gate::PodLevelResources, true), &PODS, pod.clone(), None, &pod);
        // A member that the object has already survives an update.
        check(off, &PODS, pod.clone(), Some(&pod), &pod);
        check(off, &PODS, pod, Some(&json!({"spec": {}})), &json!({"spec": {"hostUsers": false}}));
        let node = json!({"status": {"declaredFeatures": ["A"], "phase": "x"}});
        check((Gate::NodeDeclaredFeatures, false), &NODES, node, None, &json!({"status": {"phase": "x"}}));
        let lease = json!({"spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "a"}});
        check((Gate::CoordinatedLeaderElection, true), &LEASES, lease.clone(), None, &lease);
        check(
            (Gate::CoordinatedLeaderElection, false),
            &LEASES,
            lease,
            None,
            &json!({"spec": {"holderIdentity": "a"}}),
        );
    }

    #[test]
    fn elements_of_lists_and_entries_of_maps_lose_members() {
        let slice = json!({"spec": {"devices": [{"name": "d", "taints": [{"key": "k"}],
            "capacity": {"memory": {"value": "1", "requestPolicy": {"default": "1"}}}}]}});
        let mut expected = slice.clone();
        remove(&mut expected, "spec.devices.*.taints");
        assert!(expected["spec"]["devices"][0].get("taints").is_none());
        check((Gate::DRADeviceTaints, false), &RESOURCE_SLICES, slice.clone(), None, &expected);
        let expected = json!({"spec": {"devices": [{"name": "d", "taints": [{"key": "k"}],
            "capacity": {"memory": {"value": "1"}}}]}});
        check((Gate::DRAConsumableCapacity, false), &RESOURCE_SLICES, slice, None, &expected);
    }

    #[test]
    fn restart_rules_leave_sidecars() {
        let pod = json!({"spec": {
            "containers": [{"name": "c", "restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}],
            "initContainers": [{"name": "i", "restartPolicy": "OnFailure"}, {"name": "s", "restartPolicy": "Always"}]}});
        let expected = json!({"spec": {
            "containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}});
        check((Gate::ContainerRestartRules, false), &PODS, pod.clone(), None, &expected);
        check((Gate::ContainerRestartRules, true), &PODS, pod.clone(), None, &pod);
    }

    #[test]
    fn image_volumes_go_with_their_mounts() {
        let pod = json!({"spec": {"volumes": [{"name": "i", "image": {"reference": "r"}}, {"name": "e", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "i"}, {"name": "e"}]},
                {"name": "d", "volumeMounts": [{"name": "i"}]}]}});
        let expected = json!({"spec": {"volumes": [{"name": "e", "emptyDir": {}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": "e"}]}, {"name": "d"}]}});
        check((Gate::ImageVolume, false), &PODS, pod, None, &expected);
    }

    #[test]
    fn empty_lifecycles_go_with_their_stop_signals() {
        let pod = json!({"spec": {"containers": [{"lifecycle": {"stopSignal": "SIGTERM"}}]}});
        check((Gate::ContainerStopSignals, true), &PODS, pod.clone(), None, &pod);
        check((Gate::ContainerStopSignals, false), &PODS, pod, None, &json!({"spec": {"containers": [{}]}}));
    }

    #[test]
    fn data_sources_of_other_namespaces_need_their_gate() {
        let claim = json!({"spec": {"dataSourceRef": {"kind": "Image", "name": "n", "namespace": "other"}}});
        check((Gate::CrossNamespaceVolumeDataSource, true), &PERSISTENT_VOLUME_CLAIMS, claim.clone(), None, &claim);
        check(
            (Gate::CrossNamespaceVolumeDataSource, false),
            &PERSISTENT_VOLUME_CLAIMS,
            claim,
            None,
            &json!({"spec": {}}),
        );
    }
}
