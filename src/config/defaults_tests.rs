//! Tests of [`super`]: configuration files, and the resolved configurations expected for them.

use super::super::any_args::AnyArgs;
use super::super::gates::FeatureGates;
use super::super::types::{Config, ExtensionPoint};
use crate::plugins::registry;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn resolved(body: &str, gates: &FeatureGates) -> Config {
    let data = format!("{HEAD}{body}");
    Config::parse(data.as_bytes(), gates, registry().catalog()).unwrap_or_else(|error| panic!("{body}: {error}"))
}

#[test]
fn empty_file_gives_the_default_configuration() {
    let gates = FeatureGates::default();
    let config = resolved("", &gates);
    assert_eq!(config, Config::defaults(&gates, registry().catalog()));
    assert_eq!(config.parallelism, 16);
    assert_eq!(config.leader_election.lease_duration.to_string(), "15s");
    assert_eq!(config.leader_election.renew_deadline.to_string(), "10s");
    assert_eq!(config.leader_election.retry_period.to_string(), "2s");
    assert_eq!(config.leader_election.resource_namespace, "kube-system");
    assert!(config.leader_election.leader_elect);
    assert_eq!((config.client_connection.qps, config.client_connection.burst), (50.0, 100));
    assert_eq!((config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds), (1, 10));
    assert_eq!(config.profiles[0].scheduler_name, "default-scheduler");
    let names: Vec<&str> = config.profiles[0].plugin_config.iter().map(|config| config.name.as_str()).collect();
    let expected = [
        "DefaultPreemption",
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ];
    assert_eq!(names, expected);
}

#[test]
fn zero_values_are_defaulted_as_upstream() {
    let gates = FeatureGates::default();
    let config = resolved(
        "clientConnection: {qps: 0, burst: 0, contentType: ''}\nleaderElection: {leaseDuration: 0s, leaderElect: off}",
        &gates,
    );
    assert_eq!((config.client_connection.qps, config.client_connection.burst), (50.0, 100));
    assert_eq!(config.leader_election.lease_duration.to_string(), "15s");
    assert!(!config.leader_election.leader_elect);
}

#[test]
fn contention_profiling_follows_profiling() {
    let gates = FeatureGates::default();
    let flags = |body: &str| {
        let config = resolved(body, &gates);
        (config.enable_profiling, config.enable_contention_profiling)
    };
    assert_eq!(flags(""), (true, true));
    assert_eq!(flags("enableProfiling: no"), (false, false));
    assert_eq!(flags("enableProfiling: no\nenableContentionProfiling: yes"), (false, true));
    assert_eq!(flags("enableContentionProfiling: no"), (true, false));
}

#[test]
fn only_a_single_profile_gets_a_default_name() {
    let gates = FeatureGates::default();
    let names = |body: &str| -> Vec<String> {
        resolved(body, &gates).profiles.into_iter().map(|profile| profile.scheduler_name).collect()
    };
    assert_eq!(names("profiles: [{}]"), ["default-scheduler"]);
    assert_eq!(names("profiles: [{schedulerName: ''}]"), [""]);
    assert_eq!(names("profiles: [{}, {schedulerName: b}]"), ["", "b"]);
}

#[test]
fn plugin_config_is_added_for_enabled_plugins_only() {
    let gates = FeatureGates::default();
    let body = "profiles: [{plugins: {multiPoint: {disabled: [{name: '*'}]}, \
                score: {enabled: [{name: NodeResourcesFit, weight: 4}, {name: Mine}]}}, \
                pluginConfig: [{name: Mine, args: {a: 1}}, {name: Other}]}]";
    let profile = &resolved(body, &gates).profiles[0];
    let names: Vec<&str> = profile.plugin_config.iter().map(|config| config.name.as_str()).collect();
    assert_eq!(names, ["Mine", "Other", "NodeResourcesFit"]);
    assert_eq!(profile.args("Mine"), &AnyArgs::Raw(serde_json::json!({"a": 1})));
    assert_eq!(profile.args("Other"), &AnyArgs::None);
    assert_eq!(profile.args("Absent"), &AnyArgs::None);
    assert_eq!(profile.plugins.point(ExtensionPoint::Score).enabled[0].weight, 4);
}
