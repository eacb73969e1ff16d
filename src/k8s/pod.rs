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

/// A pod as scheduling sees it. Probes, environment, mounts, managed fields and the like are never kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Identity, labels, annotations, owners and times; without managed fields and finalizers.
    #[serde(deserialize_with = "super::meta::deserialize")]
    pub metadata: ObjectMeta,
    /// What the pod asks for.
    pub spec: PodSpec,
    /// What became of it.
    pub status: PodStatus,
    /// All of it as JSON, where somebody has to be sent whole pods.
    #[serde(skip)]
    pub original: Option<Original>,
}

/// The part of a pod's specification that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node the pod is assigned to; empty while it is pending.
    pub node_name: Option<String>,
    /// The profile that schedules it.
    pub scheduler_name: Option<String>,
    /// Higher is scheduled earlier; absent counts as 0.
    pub priority: Option<i32>,
    /// The class that `priority` came from.
    pub priority_class_name: Option<String>,
    /// `PreemptLowerPriority` (also when absent) or `Never`.
    pub preemption_policy: Option<String>,
    /// Labels that a node must have, all of them.
    #[serde(deserialize_with = "nullable")]
    pub node_selector: StringMap,
    /// Node affinity, pod affinity and pod anti-affinity.
    pub affinity: Option<Box<Affinity>>,
    /// Taints that the pod puts up with.
    #[serde(deserialize_with = "nullable")]
    pub tolerations: Vec<Toleration>,
    /// How the pod wants to be spread.
    #[serde(deserialize_with = "nullable")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// While this is not empty the pod is not scheduled.
    #[serde(deserialize_with = "nullable")]
    pub scheduling_gates: Vec<PodSchedulingGate>,
    /// The pod's containers.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    /// Init containers in order, restartable ones (sidecars) among them.
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Container>,
    /// Resources of the pod as a whole.
    pub resources: Option<Box<ResourceRequirements>>,
    /// What the runtime class adds to the pod's requests.
    pub overhead: Option<ResourceList>,
    /// The pod's volumes, by what scheduling can tell them apart.
    #[serde(deserialize_with = "nullable")]
    pub volumes: Vec<Volume>,
    /// Device claims.
    #[serde(deserialize_with = "nullable")]
    pub resource_claims: Vec<PodResourceClaim>,
    /// Whether the pod uses its node's network.
    pub host_network: bool,
    /// Whether the pod uses its node's user namespace; absent counts as true.
    pub host_users: Option<bool>,
    /// Seconds between a delete and the end of the pod.
    pub termination_grace_period_seconds: Option<i64>,
    /// The pod group that the pod belongs to.
    pub scheduling_group: Option<Box<serde_json::Value>>,
}

/// A container or init container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// The container's name, unique in its pod.
    pub name: String,
    /// The image, as written.
    pub image: Option<String>,
    /// Requests and limits.
    pub resources: ResourceRequirements,
    /// Ports; only those with a host port matter.
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<ContainerPort>,
    /// `Always` on an init container makes it restartable (a sidecar).
    pub restart_policy: Option<String>,
    /// The `action` of each restart policy rule.
    #[serde(rename = "restartPolicyRules", deserialize_with = "rule_actions")]
    pub restart_policy_actions: Vec<String>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// What scheduling reserves.
    pub requests: ResourceList,
    /// What the container may use at most.
    pub limits: ResourceList,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// The port inside the pod.
    pub container_port: i32,
    /// The port on the node; 0 for none.
    pub host_port: i32,
    /// The address on the node; empty for all.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    /// `TCP` (also when absent), `UDP` or `SCTP`.
    pub protocol: Option<String>,
}

/// A volume: its name and what kind of source it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// The volume's name, unique in its pod.
    pub name: String,
    /// Where it comes from.
    pub source: VolumeSource,
}

/// What scheduling tells apart in a volume's source.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeSource {
    /// A claim in the pod's namespace.
    PersistentVolumeClaim {
        /// The claim's name.
        claim_name: String,
        /// Whether the pod mounts it read-only.
        read_only: bool,
    },
    /// A claim that is made for the pod and named `<pod>-<volume>`.
    Ephemeral,
    /// An image mounted as a volume.
    Image {
        /// The image, as written.
        reference: String,
        /// When it is pulled; part of a pod's signature only.
        pull_policy: Option<String>,
    },
    /// A config map or secret: set apart because a pod's signature leaves these out.
    Synthetic,
    /// Any other source, by its key in the volume and with its content (emptyDir, gcePersistentDisk, csi, …).
    Other {
        /// The source's key, such as `emptyDir`.
        kind: String,
        /// The source as written; boxed, since few plugins look at it.
        content: Box<serde_json::Value>,
    },
    /// A volume without a source, which the API reads as an empty directory.
    None,
}

/// The part of a pod's status that scheduling reads or writes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: Option<String>,
    /// All conditions, in the API's order.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<PodCondition>,
    /// The node that preemption, or an expectation, holds for the pod.
    pub nominated_node_name: Option<String>,
    /// When the node's agent acknowledged the pod.
    pub start_time: Option<Time>,
    /// What is allocated to and used by each container.
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
    /// The same for init containers.
    #[serde(deserialize_with = "nullable")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// What is allocated to the pod as a whole.
    pub allocated_resources: Option<ResourceList>,
    /// What is in effect for the pod as a whole.
    pub resources: Option<Box<ResourceRequirements>>,
    /// The claims made for the pod's claim templates.
    #[serde(deserialize_with = "nullable")]
    pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    /// What resource claims take of the node's own resources.
    #[serde(deserialize_with = "nullable")]
    pub node_allocatable_resource_claim_statuses: Vec<NodeAllocatableClaimStatus>,
    /// The claim made for the pod's extended resources.
    pub extended_resource_claim_status: Option<Box<serde_json::Value>>,
}

/// The part of a container's status that resource accounting reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container's name.
    pub name: String,
    /// What the node has set aside.
    pub allocated_resources: Option<ResourceList>,
    /// What is in effect.
    pub resources: Option<ResourceRequirements>,
}

/// What one resource claim takes of the node's own resources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeAllocatableClaimStatus {
    /// The claim's name.
    pub resource_claim_name: String,
    /// The containers that refer to the claim.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<String>,
    /// How much it takes.
    pub resources: ResourceList,
}

impl Container {
    /// Whether the container, being an init container, keeps running beside the others (a sidecar).
    pub fn is_restartable_init(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl Pod {
    /// The pod's name; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The pod's namespace; empty if it has none.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The pod's UID; empty if it has none.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// `namespace/name`.
    pub fn key(&self) -> String {
        object_key(&self.metadata)
    }

    /// The pod's labels.
    pub fn labels(&self) -> &StringMap {
        labels(&self.metadata)
    }

    /// The pod's annotations.
    pub fn annotations(&self) -> &StringMap {
        annotations(&self.metadata)
    }

    /// The node the pod is assigned to.
    pub fn node_name(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The node nominated for the pod.
    pub fn nominated_node_name(&self) -> Option<&str> {
        self.status.nominated_node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The profile that schedules the pod; empty if none is set.
    pub fn scheduler_name(&self) -> &str {
        self.spec.scheduler_name.as_deref().unwrap_or_default()
    }

    /// The pod's priority, 0 when it has none. Follows `component-helpers/scheduling/corev1/helpers.go#PodPriority @v1.36.3`.
    pub fn priority(&self) -> i32 {
        self.spec.priority.unwrap_or(0)
    }

    /// Whether the pod has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// Whether the pod is being deleted.
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
