//! Arguments of the in-tree plugins, defaulted, and of others, as written.
//!
//! Follows `pkg/scheduler/apis/config/types_pluginargs.go @v1.36.3`.

use k8s_openapi::api::core::v1::{NodeAffinity, TopologySpreadConstraint};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::go::duration::GoDuration;

/// The arguments of one plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PluginArgs {
    /// None were given, and the plugin has no defaults.
    #[default]
    None,
    /// For `DefaultPreemption`.
    DefaultPreemption(DefaultPreemptionArgs),
    /// For `DynamicResources`.
    DynamicResources(DynamicResourcesArgs),
    /// For `InterPodAffinity`.
    InterPodAffinity(InterPodAffinityArgs),
    /// For `NodeAffinity`.
    NodeAffinity(NodeAffinityArgs),
    /// For `NodeResourcesBalancedAllocation`.
    NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs),
    /// For `NodeResourcesFit`.
    NodeResourcesFit(NodeResourcesFitArgs),
    /// For `PodTopologySpread`.
    PodTopologySpread(PodTopologySpreadArgs),
    /// For `VolumeBinding`.
    VolumeBinding(VolumeBindingArgs),
    /// For any other plugin, as written.
    Raw(serde_json::Value),
}

/// Why arguments do not have the shape a plugin wants.
#[derive(Debug, thiserror::Error)]
#[error("cannot read args ({kind}): {source}")]
pub struct ArgsError {
    kind: &'static str,
    source: serde_json::Error,
}

/// Arguments of `DefaultPreemption`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefaultPreemptionArgs {
    /// Candidates to shortlist, as a percentage (0–100) of the nodes.
    pub min_candidate_nodes_percentage: i32,
    /// Candidates to shortlist at least.
    pub min_candidate_nodes_absolute: i32,
}

/// Arguments of `InterPodAffinity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterPodAffinityArgs {
    /// The weight (0–100) that an existing pod's required affinity has in scoring.
    pub hard_pod_affinity_weight: i32,
    /// Whether existing pods' preferred terms go unread when the incoming pod has none.
    #[serde(default)]
    pub ignore_preferred_terms_of_existing_pods: bool,
}

/// Arguments of `NodeAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAffinityArgs {
    /// Affinity that every pod of the profile has besides its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_affinity: Option<NodeAffinity>,
}

/// A resource and its weight in scoring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    /// The resource's name.
    pub name: String,
    /// Its weight.
    pub weight: i64,
}

/// Arguments of `NodeResourcesBalancedAllocation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesBalancedAllocationArgs {
    /// The resources to balance; weights are 1.
    pub resources: Vec<ResourceSpec>,
}

/// Arguments of `NodeResourcesFit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesFitArgs {
    /// Extended resources that fitting leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_resources: Vec<String>,
    /// Prefixes (before the slash) of extended resources that fitting leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_resource_groups: Vec<String>,
    /// How nodes are ranked.
    pub scoring_strategy: ScoringStrategy,
}

/// How `NodeResourcesFit` ranks nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoringStrategy {
    /// `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`; kept as text, since it is checked only when the
    /// plugin is made.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The resources that count.
    pub resources: Vec<ResourceSpec>,
    /// The curve for `RequestedToCapacityRatio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
}

/// The curve that turns utilization into a score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedToCapacityRatio {
    /// Points by rising utilization.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<UtilizationShapePoint>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UtilizationShapePoint {
    /// Percentage, 0–100.
    pub utilization: i32,
    /// Score, 0–10.
    pub score: i32,
}

/// Arguments of `PodTopologySpread`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodTopologySpreadArgs {
    /// Constraints for pods that have none, without selectors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_constraints: Vec<TopologySpreadConstraint>,
    /// `System` (built-in soft constraints) or `List` (the ones above).
    pub defaulting_type: String,
}

/// Arguments of `VolumeBinding`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeBindingArgs {
    /// Seconds that binding a pod's volumes may take.
    pub bind_timeout_seconds: i64,
    /// The curve that scores storage utilization; none unless `StorageCapacityScoring` is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<UtilizationShapePoint>>,
}

/// Arguments of `DynamicResources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicResourcesArgs {
    /// How long Filter may take for a node; zero for no limit; none when its gate is off.
    #[serde(default)]
    pub filter_timeout: Option<GoDuration>,
    /// How long devices may take to become ready; none when its gates are off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_timeout: Option<GoDuration>,
}

impl PluginArgs {
    /// The kind in messages and files, such as `NodeResourcesFitArgs`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::DefaultPreemption(_) => "DefaultPreemptionArgs",
            Self::DynamicResources(_) => "DynamicResourcesArgs",
            Self::InterPodAffinity(_) => "InterPodAffinityArgs",
            Self::NodeAffinity(_) => "NodeAffinityArgs",
            Self::NodeResourcesBalancedAllocation(_) => "NodeResourcesBalancedAllocationArgs",
            Self::NodeResourcesFit(_) => "NodeResourcesFitArgs",
            Self::PodTopologySpread(_) => "PodTopologySpreadArgs",
            Self::VolumeBinding(_) => "VolumeBindingArgs",
            Self::Raw(_) => "raw",
        }
    }

    /// The arguments as `T`: the struct of this module for an in-tree plugin, any type for others. Absent arguments are
    /// read as `null`, and where `T` does not take that, as an empty object, so that `()`, `Option<T>` and structs whose
    /// fields all have defaults work.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ArgsError> {
        let failed = |source| ArgsError { kind: self.kind(), source };
        match self {
            Self::None => {
                serde_json::from_value(serde_json::Value::Null).or_else(|_| serde_json::from_str("{}")).map_err(failed)
            }
            _ => self.to_json().and_then(serde_json::from_value).map_err(failed),
        }
    }

    /// The arguments as JSON, without apiVersion and kind.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        match self {
            Self::None => Ok(serde_json::Value::Null),
            Self::DefaultPreemption(args) => serde_json::to_value(args),
            Self::DynamicResources(args) => serde_json::to_value(args),
            Self::InterPodAffinity(args) => serde_json::to_value(args),
            Self::NodeAffinity(args) => serde_json::to_value(args),
            Self::NodeResourcesBalancedAllocation(args) => serde_json::to_value(args),
            Self::NodeResourcesFit(args) => serde_json::to_value(args),
            Self::PodTopologySpread(args) => serde_json::to_value(args),
            Self::VolumeBinding(args) => serde_json::to_value(args),
            Self::Raw(value) => Ok(value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_tree_args_decode_as_themselves() {
        let args = InterPodAffinityArgs { hard_pod_affinity_weight: 7, ignore_preferred_terms_of_existing_pods: true };
        let decoded: InterPodAffinityArgs = PluginArgs::InterPodAffinity(args.clone()).decode().expect("same type");
        assert_eq!(decoded, args);
    }

    #[test]
    fn durations_and_curves_survive() {
        let args = DynamicResourcesArgs { filter_timeout: Some(GoDuration::from_secs(3)), binding_timeout: None };
        assert_eq!(PluginArgs::DynamicResources(args.clone()).decode::<DynamicResourcesArgs>().expect("same"), args);
        let args = VolumeBindingArgs {
            bind_timeout_seconds: 5,
            shape: Some(vec![UtilizationShapePoint { utilization: 1, score: 2 }]),
        };
        assert_eq!(PluginArgs::VolumeBinding(args.clone()).decode::<VolumeBindingArgs>().expect("same"), args);
    }

    #[test]
    fn others_decode_as_they_like() {
        #[derive(Debug, Default, PartialEq, Deserialize)]
        #[serde(default)]
        struct Mine {
            limit: u32,
        }
        let raw = PluginArgs::Raw(serde_json::json!({"limit": 3}));
        assert_eq!(raw.decode::<Mine>().expect("an object"), Mine { limit: 3 });
        assert_eq!(PluginArgs::None.decode::<Mine>().expect("defaults"), Mine::default());
        PluginArgs::None.decode::<()>().expect("nothing is a unit");
        let error = raw.decode::<DefaultPreemptionArgs>().expect_err("another shape");
        assert_eq!(error.to_string(), "cannot read args (raw): missing field `minCandidateNodesPercentage`");
    }
}
