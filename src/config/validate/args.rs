//! Arguments of in-tree plugins.
//!
//! Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go @v1.36.3`.

use k8s_openapi::api::core::v1::{NodeAffinity, TopologySpreadConstraint};

use super::super::args::{
    DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs, NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs, PluginArgs, PodTopologySpreadArgs, UtilizationShapePoint, VolumeBindingArgs,
};
use super::super::gates::{FeatureGates, Gate};
use super::super::load::ConfigError;
use super::field;
use crate::apimachinery::field_error::aggregate;
use crate::go::duration::GoDuration;
use crate::go::json::text as json;
use crate::go::quote::quote;
use crate::k8s::names::qualified_name_errors;
use crate::k8s::{NodeSelector, PreferredTerms};

const STRATEGIES: [&str; 3] = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
/// The highest score of a point of a curve.
const MAX_CURVE_SCORE: i32 = 10;

/// What is wrong with the args of `plugin`, which are at `path`. Those of `NodeResourcesFit` are not looked at here, as
/// upstream looks them up under another name: [`validate_node_resources_fit_args`] is for its constructor.
pub(super) fn faults(path: &str, plugin: &str, args: &PluginArgs, gates: &FeatureGates) -> Vec<String> {
    match (plugin, args) {
        ("DefaultPreemption", PluginArgs::DefaultPreemption(args)) => default_preemption(path, args),
        ("DynamicResources", PluginArgs::DynamicResources(args)) => dynamic_resources(path, args, gates),
        ("InterPodAffinity", PluginArgs::InterPodAffinity(args)) => inter_pod_affinity(path, args),
        ("NodeAffinity", PluginArgs::NodeAffinity(args)) => {
            let added = args.added_affinity.as_ref();
            added.map_or_else(Vec::new, |added| node_affinity(&format!("{path}.addedAffinity"), added))
        }
        ("NodeResourcesBalancedAllocation", PluginArgs::NodeResourcesBalancedAllocation(args)) => {
            balanced_allocation(path, args)
        }
        ("PodTopologySpread", PluginArgs::PodTopologySpread(args)) => pod_topology_spread(path, args),
        ("VolumeBinding", PluginArgs::VolumeBinding(args)) => volume_binding(path, args, gates),
        (
            "DefaultPreemption"
            | "DynamicResources"
            | "InterPodAffinity"
            | "NodeAffinity"
            | "NodeResourcesBalancedAllocation"
            | "NodeResourcesFitArgs"
            | "PodTopologySpread"
            | "VolumeBinding",
            other,
        ) => {
            let shown = json(&other.to_json().unwrap_or_default());
            vec![field::invalid(path, shown, "has to match plugin args")]
        }
        _ => Vec::new(),
    }
}

fn default_preemption(path: &str, args: &DefaultPreemptionArgs) -> Vec<String> {
    let (percentage, absolute) = (args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute);
    let percentage_path = format!("{path}.minCandidateNodesPercentage");
    let absolute_path = format!("{path}.minCandidateNodesAbsolute");
    let mut faults = Vec::new();
    if !(0..=100).contains(&percentage) {
        faults.push(field::invalid(&percentage_path, percentage, "not in valid range [0, 100]"));
    }
    if absolute < 0 {
        faults.push(field::invalid(&absolute_path, absolute, "not in valid range [0, inf)"));
    }
    if percentage == 0 && absolute == 0 {
        let detail = "cannot be zero at the same time as minCandidateNodesAbsolute";
        faults.push(field::invalid(&percentage_path, percentage, detail));
        let detail = "cannot be zero at the same time as minCandidateNodesPercentage";
        faults.push(field::invalid(&absolute_path, absolute, detail));
    }
    faults
}

fn node_affinity(path: &str, affinity: &NodeAffinity) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
        let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution");
        faults.extend(NodeSelector::strict(selector, &path).err());
    }
    if let Some(terms) = &affinity.preferred_during_scheduling_ignored_during_execution {
        let path = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution");
        faults.extend(PreferredTerms::new(terms, &path).err());
    }
    faults.iter().flat_map(|errors| errors.iter().map(ToString::to_string)).collect()
}

fn inter_pod_affinity(path: &str, args: &InterPodAffinityArgs) -> Vec<String> {
    let weight = args.hard_pod_affinity_weight;
    if (0..=100).contains(&weight) {
        return Vec::new();
    }
    vec![field::invalid(&format!("{path}.hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]
}

fn balanced_allocation(path: &str, args: &NodeResourcesBalancedAllocationArgs) -> Vec<String> {
    let mut faults = Vec::new();
    for (i, resource) in args.resources.iter().enumerate() {
        let path = format!("{path}.resources[{i}]");
        if args.resources[..i].iter().any(|earlier| earlier.name == resource.name) {
            faults.push(field::duplicate(&format!("{path}.name"), &quote(&resource.name)));
        }
        if resource.weight != 1 {
            faults.push(field::invalid(&format!("{path}.weight"), resource.weight, "must be 1"));
        }
    }
    faults
}

fn pod_topology_spread(path: &str, args: &PodTopologySpreadArgs) -> Vec<String> {
    let mut faults = Vec::new();
    let type_path = format!("{path}.defaultingType");
    match args.defaulting_type.as_str() {
        "System" if !args.default_constraints.is_empty() => {
            faults.push(field::invalid(&type_path, "\"System\"", "when .defaultConstraints are not empty"));
        }
        "System" | "List" => {}
        other => faults.push(field::unsupported(&type_path, other, &["System", "List"])),
    }
    for i in 0..args.default_constraints.len() {
        faults.extend(constraint(&format!("{path}.defaultConstraints[{i}]"), &args.default_constraints[..=i]));
    }
    faults
}

/// What is wrong with the last of `constraints`.
fn constraint(path: &str, constraints: &[TopologySpreadConstraint]) -> Vec<String> {
    let mut faults = Vec::new();
    let Some((constraint, earlier)) = constraints.split_last() else { return faults };
    if constraint.max_skew <= 0 {
        faults.push(field::invalid(&format!("{path}.maxSkew"), constraint.max_skew, "not in valid range (0, inf)"));
    }
    let key = constraint.topology_key.as_str();
    let key_path = format!("{path}.topologyKey");
    if key.is_empty() {
        faults.push(field::required(&key_path, "can not be empty"));
    } else {
        faults.extend(qualified_name_errors(key).iter().map(|fault| field::invalid(&key_path, quote(key), fault)));
    }
    let when_path = format!("{path}.whenUnsatisfiable");
    match constraint.when_unsatisfiable.as_str() {
        "" => faults.push(field::required(&when_path, "can not be empty")),
        "DoNotSchedule" | "ScheduleAnyway" => {}
        other => faults.push(field::unsupported(&when_path, other, &["DoNotSchedule", "ScheduleAnyway"])),
    }
    if constraint.label_selector.is_some() {
        let detail = "constraint must not define a selector, as they deduced for each pod";
        faults.push(field::forbidden(&format!("{path}.labelSelector"), detail));
    }
    let same = |other: &TopologySpreadConstraint| {
        other.topology_key == constraint.topology_key && other.when_unsatisfiable == constraint.when_unsatisfiable
    };
    if earlier.iter().any(same) {
        faults.push(field::duplicate(path, &quote(&format!("{{{key}, {}}}", constraint.when_unsatisfiable))));
    }
    faults
}

fn volume_binding(path: &str, args: &VolumeBindingArgs, gates: &FeatureGates) -> Vec<String> {
    let mut faults = Vec::new();
    let seconds = args.bind_timeout_seconds;
    if seconds < 0 {
        let detail = "invalid BindTimeoutSeconds, should not be a negative value";
        faults.push(field::invalid(&format!("{path}.bindTimeoutSeconds"), seconds, detail));
    }
    let shape_path = format!("{path}.shape");
    if gates.enabled(Gate::StorageCapacityScoring) {
        faults.extend(shape(&shape_path, args.shape.as_deref().unwrap_or_default()));
    } else if let Some(points) = &args.shape {
        let point = |point: &UtilizationShapePoint| {
            format!(r#"{{"Utilization":{},"Score":{}}}"#, point.utilization, point.score)
        };
        let shown = format!("[{}]", points.iter().map(point).collect::<Vec<_>>().join(","));
        let detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";
        faults.push(field::invalid(&shape_path, shown, detail));
    }
    faults
}

fn shape(path: &str, shape: &[UtilizationShapePoint]) -> Vec<String> {
    if shape.is_empty() {
        return vec![field::required(path, "at least one point must be specified")];
    }
    let mut faults = Vec::new();
    if let Some(at) = shape.windows(2).position(|pair| pair[0].utilization >= pair[1].utilization) {
        let detail = "values must be sorted in increasing order";
        faults.push(field::invalid(&format!("{path}[{}].utilization", at + 1), shape[at + 1].utilization, detail));
    }
    for (i, point) in shape.iter().enumerate() {
        if !(0..=100).contains(&point.utilization) {
            let path = format!("{path}[{i}].utilization");
            faults.push(field::invalid(&path, point.utilization, "not in valid range [0, 100]"));
        }
        if !(0..=MAX_CURVE_SCORE).contains(&point.score) {
            faults.push(field::invalid(&format!("{path}[{i}].score"), point.score, "not in valid range [0, 10]"));
        }
    }
    faults
}

fn dynamic_resources(path: &str, args: &DynamicResourcesArgs, gates: &FeatureGates) -> Vec<String> {
    let filter_on = gates.enabled(Gate::DRASchedulerFilterTimeout);
    let binding_on =
        gates.enabled(Gate::DRADeviceBindingConditions) && gates.enabled(Gate::DRAResourceClaimDeviceStatus);
    let mut faults = Vec::new();
    if let Some(timeout) = args.filter_timeout {
        let path = format!("{path}.filterTimeout");
        if !filter_on {
            faults.push(field::forbidden(&path, "DRASchedulingFilterTimeout feature gate is disabled"));
        } else if timeout < GoDuration::ZERO {
            faults.push(field::invalid(&path, quote(&timeout.to_string()), "must be zero or positive"));
        }
    }
    if let Some(timeout) = args.binding_timeout {
        let path = format!("{path}.bindingTimeout");
        if !binding_on {
            let detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled";
            faults.push(field::forbidden(&path, detail));
        } else if timeout < GoDuration::from_secs(1) {
            faults.push(field::invalid(&path, quote(&timeout.to_string()), "must be at least 1 second"));
        }
    }
    faults
}

/// Checks `NodeResourcesFit`'s args as its constructor does; the error is the aggregate of all faults.
pub fn validate_node_resources_fit_args(args: &NodeResourcesFitArgs) -> Result<(), ConfigError> {
    let mut faults = Vec::new();
    for (i, name) in args.ignored_resources.iter().enumerate() {
        faults.extend(label_name(&format!("ignoredResources[{i}]"), name));
    }
    for (i, group) in args.ignored_resource_groups.iter().enumerate() {
        let path = format!("ignoredResourceGroups[{i}]");
        if group.contains('/') {
            faults.push(field::invalid(&path, quote(group), "resource group name can't contain '/'"));
        }
        faults.extend(label_name(&path, group));
    }
    let strategy = &args.scoring_strategy;
    if !STRATEGIES.contains(&strategy.kind.as_str()) {
        faults.push(field::unsupported("scoringStrategy.type", &strategy.kind, &STRATEGIES));
    }
    for (i, resource) in strategy.resources.iter().enumerate() {
        if !(1..=100).contains(&resource.weight) {
            let detail = format!("resource weight of {} not in valid range (0, 100]", resource.name);
            faults.push(field::invalid(&format!("scoringStrategy.resources[{i}].weight"), resource.weight, &detail));
        }
    }
    let ratio_path = "scoringStrategy.requestedToCapacityRatio";
    match (&strategy.requested_to_capacity_ratio, strategy.kind == "RequestedToCapacityRatio") {
        (None, true) => {
            faults.push(field::required(ratio_path, "must be specified when type is RequestedToCapacityRatio"));
        }
        (Some(ratio), true) => faults.extend(shape(&format!("{ratio_path}.shape"), &ratio.shape)),
        (Some(_), false) => {
            faults.push(field::forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio"));
        }
        (None, false) => {}
    }
    if faults.is_empty() { Ok(()) } else { Err(ConfigError::new(aggregate(faults))) }
}

fn label_name(path: &str, name: &str) -> Vec<String> {
    qualified_name_errors(name).iter().map(|fault| field::invalid(path, quote(name), fault)).collect()
}
