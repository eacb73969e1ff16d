//! Converts wire types to resolved types by filling in every default.
//!
//! Follows `pkg/scheduler/apis/config/v1/defaults.go` and
//! `component-base/config/v1alpha1/defaults.go @v1.36.3`.

use std::collections::BTreeSet;

use super::any_args::AnyArgs;
use super::catalog::PluginCatalog;
use super::gates::FeatureGates;
use super::plugins::merge;
use super::types::{
    ClientConnection, Config, Extender, ExtensionPoint, LeaderElection, ManagedResource, Plugin, PluginConfig,
    PluginSet, Plugins, Profile, TlsSettings,
};
use super::wire;
use crate::go::duration::GoDuration;

/// Scheduler name of a single profile that sets none. Pods use the same name by default.
pub const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

/// Fills in every default. The plugins' defaults come from `catalog`.
pub(super) fn resolve(wire: wire::KubeSchedulerConfiguration, gates: &FeatureGates, catalog: &PluginCatalog) -> Config {
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
        profiles: profiles.into_iter().map(|wire| profile(wire, gates, catalog)).collect(),
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

fn profile(wire: wire::Profile, gates: &FeatureGates, catalog: &PluginCatalog) -> Profile {
    let plugins = merge(catalog.default_plugins(gates), wire.plugins.map(plugins));
    let mut plugin_config: Vec<PluginConfig> =
        wire.plugin_config.into_iter().map(|wire| given_args(wire, gates)).collect();
    let given: BTreeSet<String> = plugin_config.iter().map(|config| config.name.clone()).collect();
    for name in plugins.enabled_names().into_iter().filter(|name| !given.contains(*name)) {
        if let Some(args_type) = catalog.args_of(name) {
            let args = AnyArgs::Typed(args_type.default_args(gates));
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
        (Some(mut typed), _) => {
            typed.set_defaults(gates);
            AnyArgs::Typed(typed)
        }
        (None, Some(raw)) => AnyArgs::Raw(raw.to_json()),
        (None, None) => AnyArgs::None,
    };
    PluginConfig { name: wire.name, args }
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
