//! The slim [`Pod`]: every field that scheduling, its plugins, conditions and events can need, and nothing else.

use k8s_openapi::api::core::v1::{
    Affinity, PodCondition, PodResourceClaim, PodResourceClaimStatus, PodSchedulingGate, Toleration,
    TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::meta::{core_resource, nullable};
use super::{Original, ResourceList, StringMap, annotations, labels, object_key};

/// A pod with the fields that scheduling needs. Probes, environment, mounts, managed fields and the like are not decoded.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, UID, labels, annotations, owners and times, without managed fields and finalizers.
    #[serde(deserialize_with = "super::meta::deserialize")]
    pub metadata: ObjectMeta,
    /// Specification of the pod.
    pub spec: PodSpec,
    /// Status of the pod.
    pub status: PodStatus,
    /// The complete pod as JSON, kept only if an extender or plugin needs complete pods.
    #[serde(skip)]
    pub original: Option<Original>,
}

/// The part of a pod's specification that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Name of the node to which the pod is bound; empty while the pod is pending.
    pub node_name: Option<String>,
    /// Name of the profile that schedules the pod.
    pub scheduler_name: Option<String>,
    /// Priority: pods with a higher value are scheduled earlier. Absent means 0.
    pub priority: Option<i32>,
    /// Priority class from which `priority` was set.
    pub priority_class_name: Option<String>,
    /// Preemption policy: `PreemptLowerPriority` (also when absent) or `Never`.
    pub preemption_policy: Option<String>,
    /// Labels that the node must have.
    #[serde(deserialize_with = "nullable")]
    pub node_selector: StringMap,
    /// Node affinity, pod affinity and pod anti-affinity.
    pub affinity: Option<Box<Affinity>>,
    /// Tolerations, each for some taints of nodes.
    #[serde(deserialize_with = "nullable")]
    pub tolerations: Vec<Toleration>,
    /// Constraints on how pods are spread over topology domains.
    #[serde(deserialize_with = "nullable")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Scheduling gates of the pod. The pod is not scheduled while it has any gate.
    #[serde(deserialize_with = "nullable")]
    pub scheduling_gates: Vec<PodSchedulingGate>,
    /// Containers of the pod, without init containers.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    /// Init containers in order, including restartable ones (sidecars).
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Container>,
    /// Pod-level requests and limits.
    pub resources: Option<Box<ResourceRequirements>>,
    /// Overhead that the runtime class adds to the pod's requests.
    pub overhead: Option<ResourceList>,
    /// Volumes, with the parts of their sources that scheduling needs.
    #[serde(deserialize_with = "nullable")]
    pub volumes: Vec<Volume>,
    /// References to resource claims (devices).
    #[serde(deserialize_with = "nullable")]
    pub resource_claims: Vec<PodResourceClaim>,
    /// Whether the pod uses the host network.
    pub host_network: bool,
    /// Whether the pod uses the host's user namespace. Absent means true.
    pub host_users: Option<bool>,
    /// Grace period between the pod's deletion and its forced end, in seconds.
    pub termination_grace_period_seconds: Option<i64>,
    /// The pod group that the pod belongs to.
    pub scheduling_group: Option<Box<serde_json::Value>>,
}

/// A container or init container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The container's name, unique in its pod.
    pub name: String,
    /// Image name as in the specification.
    pub image: Option<String>,
    /// Requests and limits of the container.
    pub resources: ResourceRequirements,
    /// Ports, of which scheduling uses only those with a host port.
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<ContainerPort>,
    /// `Always` on an init container makes it restartable (a sidecar).
    pub restart_policy: Option<String>,
    /// Actions of the restart policy rules.
    #[serde(rename = "restartPolicyRules", deserialize_with = "rule_actions")]
    pub restart_policy_actions: Vec<String>,
}

/// Requests and limits of a container or pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// Amounts that scheduling reserves.
    pub requests: ResourceList,
    /// Maximum amounts that may be used.
    pub limits: ResourceList,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// The port inside the pod.
    pub container_port: i32,
    /// The port on the node, or 0 if there is none.
    pub host_port: i32,
    /// The node's address for the port; empty for all addresses.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    /// Protocol: `TCP` (also when absent), `UDP` or `SCTP`.
    pub protocol: Option<String>,
}

/// A volume of a pod: its name and source.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// The volume's name, unique in its pod.
    pub name: String,
    /// Source of the volume.
    pub source: VolumeSource,
}

/// The source of a volume, as far as scheduling distinguishes sources.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeSource {
    /// A persistent volume claim in the pod's namespace.
    PersistentVolumeClaim {
        /// Name of the claim.
        claim_name: String,
        /// Whether the pod mounts the claim read-only.
        read_only: bool,
    },
    /// A claim that is created for the pod, with the name `<pod>-<volume>`.
    Ephemeral,
    /// An image mounted as a volume.
    Image {
        /// Image name as in the specification.
        reference: String,
        /// Pull policy, used only in the pod's signature.
        pull_policy: Option<String>,
    },
    /// A config map or secret, which a pod's signature leaves out.
    Synthetic,
    /// Any other source (emptyDir, gcePersistentDisk, csi, …), with its key and content.
    Other {
        /// Key of the source in the volume, such as `emptyDir`.
        kind: String,
        /// The source's JSON, boxed because few plugins read it.
        content: Box<serde_json::Value>,
    },
    /// No source, which the API treats as an empty directory.
    None,
}

/// The part of a pod's status that scheduling reads or writes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// Conditions in the API's order.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<PodCondition>,
    /// Name of the nominated node: set by preemption, or by a component that expects the pod there.
    pub nominated_node_name: Option<String>,
    /// Time at which the kubelet acknowledged the pod.
    pub start_time: Option<Time>,
    /// Status of each container: its allocated and actual resources.
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
    /// Status of each init container.
    #[serde(deserialize_with = "nullable")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Pod-level resources that the kubelet allocated.
    pub allocated_resources: Option<ResourceList>,
    /// Pod-level requests and limits that are in effect.
    pub resources: Option<Box<ResourceRequirements>>,
    /// Resource claims that were created from the pod's claim templates.
    #[serde(deserialize_with = "nullable")]
    pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    /// Amounts of the node's allocatable resources that the pod's resource claims use.
    #[serde(deserialize_with = "nullable")]
    pub node_allocatable_resource_claim_statuses: Vec<NodeAllocatableClaimStatus>,
    /// Resource claim that was created for the pod's extended resources.
    pub extended_resource_claim_status: Option<Box<serde_json::Value>>,
}

/// The part of a container's status that resource accounting reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Name of the container.
    pub name: String,
    /// Resources that the kubelet allocated to the container.
    pub allocated_resources: Option<ResourceList>,
    /// Requests and limits that are in effect.
    pub resources: Option<ResourceRequirements>,
}

/// Amounts of the node's allocatable resources that one resource claim uses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAllocatableClaimStatus {
    /// Name of the claim.
    pub resource_claim_name: String,
    /// Containers that refer to the claim.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<String>,
    /// Amounts that the claim uses.
    pub resources: ResourceList,
}

impl Container {
    /// Returns whether this init container is restartable, that is, keeps running beside the others (a sidecar).
    pub fn is_restartable_init(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl Pod {
    /// Returns the pod's name; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the pod's namespace; empty if it has none.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the pod's UID; empty if it has none.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns the pod's key, `namespace/name`.
    pub fn key(&self) -> String {
        object_key(&self.metadata)
    }

    /// Returns the pod's labels.
    pub fn labels(&self) -> &StringMap {
        labels(&self.metadata)
    }

    /// Returns the pod's annotations.
    pub fn annotations(&self) -> &StringMap {
        annotations(&self.metadata)
    }

    /// Returns the name of the node to which the pod is bound or assumed.
    pub fn node_name(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// Returns the name of the pod's nominated node.
    pub fn nominated_node_name(&self) -> Option<&str> {
        self.status.nominated_node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// Returns the name of the profile that schedules the pod; empty if none is set.
    pub fn scheduler_name(&self) -> &str {
        self.spec.scheduler_name.as_deref().unwrap_or_default()
    }

    /// Returns the pod's priority, or 0 if it has none.
    /// Follows `component-helpers/scheduling/corev1/helpers.go#PodPriority @v1.36.3`.
    pub fn priority(&self) -> i32 {
        self.spec.priority.unwrap_or(0)
    }

    /// Returns whether the pod has ended: succeeded or failed.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// Returns whether the pod is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

core_resource!(Pod, NamespaceResourceScope, "pods");

fn rule_actions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    struct Rule {
        #[serde(default)]
        action: String,
    }
    let rules = Option::<Vec<Rule>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(rules.into_iter().map(|rule| rule.action).collect())
}

impl<'de> Deserialize<'de> for Volume {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Claim {
            claim_name: String,
            #[serde(default)]
            read_only: bool,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Image {
            reference: String,
            pull_policy: Option<String>,
        }
        struct VolumeVisitor;
        impl<'de> Visitor<'de> for VolumeVisitor {
            type Value = Volume;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a volume")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Volume, A::Error> {
                let mut volume = Volume { name: String::new(), source: VolumeSource::None };
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => volume.name = map.next_value()?,
                        "persistentVolumeClaim" => {
                            let Some(claim) = map.next_value::<Option<Claim>>()? else { continue };
                            volume.source = VolumeSource::PersistentVolumeClaim {
                                claim_name: claim.claim_name,
                                read_only: claim.read_only,
                            };
                        }
                        "ephemeral" => {
                            if map.next_value::<Option<IgnoredAny>>()?.is_some() {
                                volume.source = VolumeSource::Ephemeral;
                            }
                        }
                        "image" => {
                            let Some(image) = map.next_value::<Option<Image>>()? else { continue };
                            volume.source =
                                VolumeSource::Image { reference: image.reference, pull_policy: image.pull_policy };
                        }
                        "configMap" | "secret" => {
                            if map.next_value::<Option<IgnoredAny>>()?.is_some() {
                                volume.source = VolumeSource::Synthetic;
                            }
                        }
                        _ => {
                            let Some(content) = map.next_value::<Option<serde_json::Value>>()? else { continue };
                            volume.source = VolumeSource::Other { kind: key, content: Box::new(content) };
                        }
                    }
                }
                Ok(volume)
            }
        }
        deserializer.deserialize_map(VolumeVisitor)
    }
}
