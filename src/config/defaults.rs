//! Wire types to resolved ones: every default filled in.
//!
//! Follows `pkg/scheduler/apis/config/v1/defaults.go` and
//! `component-base/config/v1alpha1/defaults.go @v1.36.3`.

use std::collections::BTreeSet;

use super::args::{
    DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs, NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PluginArgs, PodTopologySpreadArgs,
    RequestedToCapacityRatio, ResourceSpec, ScoringStrategy, UtilizationShapePoint, VolumeBindingArgs,
};
use super::gates::{FeatureGates, Gate};
use super::plugins::{default_plugins, merge};
use super::types::{
    ClientConnection, Config, Extender, ExtensionPoint, LeaderElection, ManagedResource, Plugin, PluginConfig,
    PluginSet, Plugins, Profile, TlsSettings,
};
use super::wire::{self, WireArgs};
use crate::go::duration::GoDuration;

/// The scheduler name of a single profile that gives none; the one that pods have by default.
pub const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

const MAX_SHAPE_SCORE: i32 = 10;

/// Fills in every default.
pub(super) fn resolve(wire: wire::KubeSchedulerConfiguration, gates: &FeatureGates) -> Config {
    let mut profiles = wire.profiles;
    if profiles.is_empty() {
        profiles.push(wire::Profile::default());
    }
    if let [only] = profiles.as_mut_slice() {
        only.scheduler_name.get_or_insert_with(|| DEFAULT_SCHEDULER_NAME.to_owned());
    }
    let enable_profiling = wire.enable_profiling.unwrap_or(true);
    Config {
        parallelism: wire.parallelism.unwrap_or(16),
        leader_election: leader_election(wire.leader_election),
        client_connection: client_connection(wire.client_connection),
        enable_profiling,
        enable_contention_profiling: wire.enable_contention_profiling.unwrap_or(enable_profiling),
        percentage_of_nodes_to_score: wire.percentage_of_nodes_to_score.unwrap_or(0),
        pod_initial_backoff_seconds: wire.pod_initial_backoff_seconds.unwrap_or(1),
        pod_max_backoff_seconds: wire.pod_max_backoff_seconds.unwrap_or(10),
        profiles: profiles.into_iter().map(|wire| profile(wire, gates)).collect(),
        extenders: wire.extenders.into_iter().map(extender).collect(),
        delay_cache_until_active: wire.delay_cache_until_active,
    }
}

fn leader_election(wire: wire::LeaderElection) -> LeaderElection {
    let duration =
        |given: GoDuration, seconds| if given == GoDuration::ZERO { GoDuration::from_secs(seconds) } else { given };
    LeaderElection {
        leader_elect: wire.leader_elect.unwrap_or(true),
        lease_duration: duration(wire.lease_duration, 15),
        renew_deadline: duration(wire.renew_deadline, 10),
        retry_period: duration(wire.retry_period, 2),
        resource_lock: text(wire.resource_lock, "leases"),
        resource_name: text(wire.resource_name, "kube-scheduler"),
        resource_namespace: text(wire.resource_namespace, "kube-system"),
    }
}

fn client_connection(wire: wire::ClientConnection) -> ClientConnection {
    ClientConnection {
        kubeconfig: wire.kubeconfig,
        accept_content_types: wire.accept_content_types,
        content_type: text(wire.content_type, "application/vnd.kubernetes.protobuf"),
        qps: if wire.qps == 0.0 { 50.0 } else { wire.qps },
        burst: if wire.burst == 0 { 100 } else { wire.burst },
    }
}

fn text(given: String, default: &str) -> String {
    if given.is_empty() { default.to_owned() } else { given }
}

fn profile(wire: wire::Profile, gates: &FeatureGates) -> Profile {
    let plugins = merge(default_plugins(gates), wire.plugins.map(plugins));
    let mut plugin_config: Vec<PluginConfig> =
        wire.plugin_config.into_iter().map(|wire| given_args(wire, gates)).collect();
    let given: BTreeSet<String> = plugin_config.iter().map(|config| config.name.clone()).collect();
    for name in plugins.enabled_names().into_iter().filter(|name| !given.contains(*name)) {
        if let Some(args) = default_args(name, gates) {
            plugin_config.push(PluginConfig { name: name.to_owned(), args });
        }
    }
    Profile {
        scheduler_name: wire.scheduler_name.unwrap_or_default(),
        percentage_of_nodes_to_score: wire.percentage_of_nodes_to_score,
        plugins,
        plugin_config,
    }
}

fn plugins(wire: wire::Plugins) -> Plugins {
    let mut plugins = Plugins::from_multi_point(plugin_set(wire.multi_point));
    let sets = [
        (ExtensionPoint::PreEnqueue, wire.pre_enqueue),
        (ExtensionPoint::QueueSort, wire.queue_sort),
        (ExtensionPoint::PreFilter, wire.pre_filter),
        (ExtensionPoint::Filter, wire.filter),
        (ExtensionPoint::PostFilter, wire.post_filter),
        (ExtensionPoint::PreScore, wire.pre_score),
        (ExtensionPoint::Score, wire.score),
        (ExtensionPoint::Reserve, wire.reserve),
        (ExtensionPoint::Permit, wire.permit),
        (ExtensionPoint::PreBind, wire.pre_bind),
        (ExtensionPoint::Bind, wire.bind),
        (ExtensionPoint::PostBind, wire.post_bind),
        (ExtensionPoint::PlacementGenerate, wire.placement_generate),
        (ExtensionPoint::PlacementScore, wire.placement_score),
    ];
    for (point, set) in sets {
        *plugins.point_mut(point) = plugin_set(set);
    }
    plugins
}

fn plugin_set(wire: wire::PluginSet) -> PluginSet {
    let list = |list: Vec<wire::Plugin>| {
        list.into_iter().map(|plugin| Plugin::new(plugin.name).weighted(plugin.weight.unwrap_or(0))).collect()
    };
    PluginSet { enabled: list(wire.enabled), disabled: list(wire.disabled) }
}

fn given_args(wire: wire::PluginConfig, gates: &FeatureGates) -> PluginConfig {
    let args = match (wire.typed, wire.args.0) {
        (Some(typed), _) => args(typed, gates),
        (None, Some(raw)) => PluginArgs::Raw(raw.to_json()),
        (None, None) => PluginArgs::None,
    };
    PluginConfig { name: wire.name, args }
}

/// The args of an in-tree plugin that was given none; none if it takes none or is not in-tree.
fn default_args(plugin: &str, gates: &FeatureGates) -> Option<PluginArgs> {
    let wire = match plugin {
        "DefaultPreemption" => WireArgs::DefaultPreemption(wire::DefaultPreemptionArgs::default()),
        "DynamicResources" => WireArgs::DynamicResources(wire::DynamicResourcesArgs::default()),
        "InterPodAffinity" => WireArgs::InterPodAffinity(wire::InterPodAffinityArgs::default()),
        "NodeAffinity" => WireArgs::NodeAffinity(wire::NodeAffinityArgs::default()),
        "NodeResourcesBalancedAllocation" => {
            WireArgs::NodeResourcesBalancedAllocation(wire::NodeResourcesBalancedAllocationArgs::default())
        }
        "NodeResourcesFit" => WireArgs::NodeResourcesFit(wire::NodeResourcesFitArgs::default()),
        "PodTopologySpread" => WireArgs::PodTopologySpread(wire::PodTopologySpreadArgs::default()),
        "VolumeBinding" => WireArgs::VolumeBinding(wire::VolumeBindingArgs::default()),
        _ => return None,
    };
    Some(args(wire, gates))
}

fn args(wire: WireArgs, gates: &FeatureGates) -> PluginArgs {
    match wire {
        WireArgs::DefaultPreemption(wire) => PluginArgs::DefaultPreemption(DefaultPreemptionArgs {
            min_candidate_nodes_percentage: wire.min_candidate_nodes_percentage.unwrap_or(10),
            min_candidate_nodes_absolute: wire.min_candidate_nodes_absolute.unwrap_or(100),
        }),
        WireArgs::DynamicResources(wire) => PluginArgs::DynamicResources(dynamic_resources(&wire, gates)),
        WireArgs::InterPodAffinity(wire) => PluginArgs::InterPodAffinity(InterPodAffinityArgs {
            hard_pod_affinity_weight: wire.hard_pod_affinity_weight.unwrap_or(1),
            ignore_preferred_terms_of_existing_pods: wire.ignore_preferred_terms_of_existing_pods,
        }),
        WireArgs::NodeAffinity(wire) => {
            PluginArgs::NodeAffinity(NodeAffinityArgs { added_affinity: wire.added_affinity })
        }
        WireArgs::NodeResourcesBalancedAllocation(wire) => {
            PluginArgs::NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs {
                resources: resources(wire.resources),
            })
        }
        WireArgs::NodeResourcesFit(wire) => PluginArgs::NodeResourcesFit(NodeResourcesFitArgs {
            ignored_resources: wire.ignored_resources,
            ignored_resource_groups: wire.ignored_resource_groups,
            scoring_strategy: scoring_strategy(wire.scoring_strategy),
        }),
        WireArgs::PodTopologySpread(wire) => PluginArgs::PodTopologySpread(PodTopologySpreadArgs {
            default_constraints: wire.default_constraints,
            defaulting_type: text(wire.defaulting_type, "System"),
        }),
        WireArgs::VolumeBinding(wire) => PluginArgs::VolumeBinding(volume_binding(&wire, gates)),
    }
}

fn dynamic_resources(wire: &wire::DynamicResourcesArgs, gates: &FeatureGates) -> DynamicResourcesArgs {
    let filter_on = gates.enabled(Gate::DRASchedulerFilterTimeout);
    let binding_on =
        gates.enabled(Gate::DRADeviceBindingConditions) && gates.enabled(Gate::DRAResourceClaimDeviceStatus);
    DynamicResourcesArgs {
        filter_timeout: wire.filter_timeout.or(filter_on.then_some(GoDuration::from_secs(10))),
        binding_timeout: wire.binding_timeout.or(binding_on.then_some(GoDuration::from_secs(600))),
    }
}

/// CPU and memory if none are given; a weight of 0 is 1.
fn resources(given: Vec<wire::ResourceSpec>) -> Vec<ResourceSpec> {
    if given.is_empty() {
        return ["cpu", "memory"].map(|name| ResourceSpec { name: name.to_owned(), weight: 1 }).into();
    }
    let weighted = |spec: wire::ResourceSpec| ResourceSpec {
        name: spec.name,
        weight: if spec.weight == 0 { 1 } else { spec.weight },
    };
    given.into_iter().map(weighted).collect()
}

/// A strategy that is given has no default type: leaving it out is an error when the plugin is made.
fn scoring_strategy(given: Option<wire::ScoringStrategy>) -> ScoringStrategy {
    let given = given.unwrap_or_else(|| wire::ScoringStrategy {
        kind: "LeastAllocated".to_owned(),
        ..wire::ScoringStrategy::default()
    });
    ScoringStrategy {
        kind: given.kind,
        resources: resources(given.resources),
        requested_to_capacity_ratio: given
            .requested_to_capacity_ratio
            .map(|ratio| RequestedToCapacityRatio { shape: shape(&ratio.shape) }),
    }
}

fn shape(given: &[wire::UtilizationShapePoint]) -> Vec<UtilizationShapePoint> {
    let point = |point: &wire::UtilizationShapePoint| UtilizationShapePoint {
        utilization: point.utilization,
        score: point.score,
    };
    given.iter().map(point).collect()
}

fn volume_binding(wire: &wire::VolumeBindingArgs, gates: &FeatureGates) -> VolumeBindingArgs {
    let given = wire.shape.as_deref().map(shape);
    let missing = given.as_ref().is_none_or(Vec::is_empty) && gates.enabled(Gate::StorageCapacityScoring);
    let default =
        [(0, MAX_SHAPE_SCORE), (100, 0)].map(|(utilization, score)| UtilizationShapePoint { utilization, score });
    VolumeBindingArgs {
        bind_timeout_seconds: wire.bind_timeout_seconds.unwrap_or(600),
        shape: if missing { Some(default.into()) } else { given },
    }
}

fn extender(wire: wire::Extender) -> Extender {
    let managed = |resource: wire::ManagedResource| ManagedResource {
        name: resource.name,
        ignored_by_scheduler: resource.ignored_by_scheduler,
    };
    Extender {
        url_prefix: wire.url_prefix,
        filter_verb: wire.filter_verb,
        preempt_verb: wire.preempt_verb,
        prioritize_verb: wire.prioritize_verb,
        weight: wire.weight,
        bind_verb: wire.bind_verb,
        enable_https: wire.enable_https,
        tls: wire.tls_config.map(tls),
        http_timeout: wire.http_timeout,
        node_cache_capable: wire.node_cache_capable,
        managed_resources: wire.managed_resources.into_iter().map(managed).collect(),
        ignorable: wire.ignorable,
    }
}

fn tls(wire: wire::ExtenderTls) -> TlsSettings {
    TlsSettings {
        insecure: wire.insecure,
        server_name: wire.server_name,
        cert_file: wire.cert_file,
        key_file: wire.key_file,
        ca_file: wire.ca_file,
        cert_data: wire.cert_data.0,
        key_data: wire.key_data.0,
        ca_data: wire.ca_data.0,
    }
}

#[cfg(test)]
#[path = "defaults_tests.rs"]
mod tests;
