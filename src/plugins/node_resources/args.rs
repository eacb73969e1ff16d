//! Arguments of `NodeResourcesFit` and `NodeResourcesBalancedAllocation`.
//!
//! Follows `pkg/scheduler/apis/config/types_pluginargs.go`, `pkg/scheduler/apis/config/v1/defaults.go` and
//! `pkg/scheduler/apis/config/validation/validation_pluginargs.go @v1.36.3`.

use serde::Serialize;

use super::FIT;
use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::{wire_args, wire_struct};
use crate::config::{FeatureGates, PluginArgs, Profile};
use crate::go::quote::quote;
use crate::k8s::names::qualified_name_errors;
use crate::plugins::utilization::{UtilizationShapePoint, validate_shape};

/// The names of the scoring strategies.
const STRATEGIES: [&str; 3] = ["LeastAllocated", "MostAllocated", RATIO];

/// Name of the strategy that scores by a curve.
const RATIO: &str = "RequestedToCapacityRatio";

/// A resource and its weight in scoring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    /// Name of the resource.
    pub name: String,
    /// Weight of the resource in scoring.
    pub weight: i64,
}

wire_struct!(ResourceSpec, "v1.ResourceSpec", { "name" => name, "weight" => weight });

/// Arguments of the plugin `NodeResourcesBalancedAllocation`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesBalancedAllocationArgs {
    /// The resources to balance, whose weights are all 1.
    pub resources: Vec<ResourceSpec>,
}

wire_args!(NodeResourcesBalancedAllocationArgs, { "resources" => resources });

/// Arguments of the plugin `NodeResourcesFit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesFitArgs {
    /// Extended resources that `Filter` ignores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_resources: Vec<String>,
    /// Groups of extended resources that `Filter` ignores. The group of a resource is the part of its name before the slash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_resource_groups: Vec<String>,
    /// The strategy for scoring nodes. `None` only before defaults are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scoring_strategy: Option<ScoringStrategy>,
}

wire_args!(NodeResourcesFitArgs, {
    "ignoredResources" => ignored_resources,
    "ignoredResourceGroups" => ignored_resource_groups,
    "scoringStrategy" => scoring_strategy,
});

/// The strategy by which `NodeResourcesFit` scores nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScoringStrategy {
    /// Name of the strategy: `LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`. Kept as text, because it is
    /// checked only when the plugin is built.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The resources that count in the score.
    pub resources: Vec<ResourceSpec>,
    /// The curve for `RequestedToCapacityRatio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
}

wire_struct!(ScoringStrategy, "v1.ScoringStrategy", {
    "type" as "v1.ScoringStrategyType" => kind,
    "resources" => resources,
    "requestedToCapacityRatio" => requested_to_capacity_ratio,
});

/// The curve that maps utilization to a score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedToCapacityRatio {
    /// The points of the curve, by increasing utilization.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shape: Vec<UtilizationShapePoint>,
}

wire_struct!(RequestedToCapacityRatio, "v1.RequestedToCapacityRatioParam", { "shape" => shape });

/// Sets CPU and memory if no resources are given, and replaces weight 0 with 1.
fn default_resources(resources: &mut Vec<ResourceSpec>) {
    if resources.is_empty() {
        *resources = ["cpu", "memory"].map(|name| ResourceSpec { name: name.to_owned(), weight: 1 }).into();
    }
    for resource in resources {
        if resource.weight == 0 {
            resource.weight = 1;
        }
    }
}

impl PluginArgs for NodeResourcesBalancedAllocationArgs {
    const KIND: &'static str = "NodeResourcesBalancedAllocationArgs";

    fn set_defaults(&mut self, _gates: &FeatureGates) {
        default_resources(&mut self.resources);
    }

    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        for (i, resource) in self.resources.iter().enumerate() {
            let path = path.child("resources").index(i);
            if self.resources[..i].iter().any(|earlier| earlier.name == resource.name) {
                errors.duplicate(&path.child("name"), &resource.name);
            }
            if resource.weight != 1 {
                errors.invalid(&path.child("weight"), resource.weight, "must be 1");
            }
        }
    }
}

impl PluginArgs for NodeResourcesFitArgs {
    const KIND: &'static str = "NodeResourcesFitArgs";

    /// Upstream's validation looks these arguments up by kind instead of by plugin name and does not find them. So the factory
    /// validates them.
    const VALIDATED_BY_FACTORY: bool = true;

    /// Sets the default strategy and its resources. A given strategy without a type gets no default type, so building the
    /// plugin fails.
    fn set_defaults(&mut self, _gates: &FeatureGates) {
        let least = || ScoringStrategy { kind: "LeastAllocated".to_owned(), ..ScoringStrategy::default() };
        default_resources(&mut self.scoring_strategy.get_or_insert_with(least).resources);
    }

    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        for (i, name) in self.ignored_resources.iter().enumerate() {
            validate_label_name(&path.child("ignoredResources").index(i), name, errors);
        }
        for (i, group) in self.ignored_resource_groups.iter().enumerate() {
            let path = path.child("ignoredResourceGroups").index(i);
            if group.contains('/') {
                errors.invalid(&path, quote(group), "resource group name can't contain '/'");
            }
            validate_label_name(&path, group, errors);
        }
        if let Some(strategy) = &self.scoring_strategy {
            validate_strategy(&path.child("scoringStrategy"), strategy, errors);
        }
    }
}

fn validate_label_name(path: &FieldPath, name: &str, errors: &mut FieldErrors) {
    for fault in qualified_name_errors(name) {
        errors.invalid(path, quote(name), &fault);
    }
}

fn validate_strategy(path: &FieldPath, strategy: &ScoringStrategy, errors: &mut FieldErrors) {
    if !STRATEGIES.contains(&strategy.kind.as_str()) {
        errors.unsupported(&path.child("type"), &strategy.kind, &STRATEGIES);
    }
    for (i, resource) in strategy.resources.iter().enumerate() {
        if !(1..=100).contains(&resource.weight) {
            let detail = format!("resource weight of {} not in valid range (0, 100]", resource.name);
            errors.invalid(&path.child("resources").index(i).child("weight"), resource.weight, &detail);
        }
    }
    let ratio_path = path.child("requestedToCapacityRatio");
    match (&strategy.requested_to_capacity_ratio, strategy.kind == RATIO) {
        (None, true) => errors.required(&ratio_path, "must be specified when type is RequestedToCapacityRatio"),
        (Some(ratio), true) => validate_shape(&ratio_path.child("shape"), &ratio.shape, errors),
        (Some(_), false) => errors.forbidden(&ratio_path, "must be nil when type is not RequestedToCapacityRatio"),
        (None, false) => {}
    }
}

/// Replaces the list of resources that `NodeResourcesFit` of this profile ignores. Errors have upstream's text.
/// Follows `pkg/scheduler/scheduler.go#buildExtenders @v1.36.3`.
pub fn ignore_resources(profile: &mut Profile, resources: &[String]) -> Result<(), String> {
    let config = profile.plugin_config.iter_mut().find(|config| config.name == FIT);
    let Some(config) = config else { return Err("can't find NodeResourcesFitArgs in plugin config".to_owned()) };
    let kind = config.args.kind();
    let Some(args) = config.args.get_mut::<NodeResourcesFitArgs>() else {
        return Err(format!("want args to be of type NodeResourcesFitArgs, got {kind}"));
    };
    args.ignored_resources = resources.to_vec();
    Ok(())
}
