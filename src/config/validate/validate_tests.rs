//! Tests of [`super`]: configuration files and their errors. Every text was produced by upstream itself.

use super::super::any_args::AnyArgs;
use super::super::gates::FeatureGates;
use super::super::types::{Config, PluginConfig};
use crate::plugins::registry;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn config(body: &str, gates: &FeatureGates) -> Config {
    let data = format!("{HEAD}{body}");
    Config::parse(data.as_bytes(), gates, registry().catalog()).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn check_with(gates: &FeatureGates, body: &str, expected: &[&str]) {
    assert_eq!(config(body, gates).faults(gates, registry().catalog()), expected, "{body}");
}

fn check(body: &str, expected: &[&str]) {
    check_with(&FeatureGates::default(), body, expected);
}

#[test]
fn several_errors_are_bracketed_without_duplicates() {
    let gates = FeatureGates::default();
    config("", &gates).validate(&gates, registry().catalog()).expect("the defaults are sound");
    let error = config("parallelism: 0\nclientConnection: {burst: -1}\n", &gates)
        .validate(&gates, registry().catalog())
        .expect_err("two");
    let text = "[clientConnection.burst: Invalid value: -1: must be non-negative, parallelism: Invalid value: 0: should be \
                an integer value greater than zero]";
    assert_eq!(error.to_string(), text);
}

#[test]
fn top_level_numbers_out_of_range_are_errors() {
    check("percentageOfNodesToScore: 100\npodInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 5\n", &[]);
    check(
        "percentageOfNodesToScore: 101\npodInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1\n",
        &[
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            "podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds",
        ],
    );
}

#[test]
fn leader_election_is_validated_only_if_enabled() {
    let lock = "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be \"leases\"";
    check(
        "leaderElection: {leaseDuration: -1s, renewDeadline: -2s, retryPeriod: -1ms, resourceLock: endpoints}\n",
        &[
            "leaderElection.leaseDuration: Invalid value: \"-1s\": must be greater than zero",
            "leaderElection.renewDeadline: Invalid value: \"-2s\": must be greater than zero",
            "leaderElection.retryPeriod: Invalid value: \"-1ms\": must be greater than zero",
            lock,
        ],
    );
    check(
        "leaderElection: {leaseDuration: 5s}\n",
        &["leaderElection.leaseDuration: Invalid value: \"10s\": must be greater than `RenewDeadline`"],
    );
    check("leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: endpoints}\n", &[]);
    let gates = FeatureGates::default();
    let mut config = config("", &gates);
    config.leader_election.resource_name.clear();
    assert_eq!(config.faults(&gates, registry().catalog()), ["leaderElection.resourceName: Required value"]);
}

#[test]
fn profile_names_must_be_set_and_unique() {
    check("profiles: [{schedulerName: a}, {schedulerName: b}]", &[]);
    check("profiles: [{}, {schedulerName: b}]", &["profiles[0].schedulerName: Required value"]);
    check("profiles: [{schedulerName: a}, {schedulerName: a}]", &["profiles[1].schedulerName: Duplicate value: {}"]);
    check(
        "profiles: [{percentageOfNodesToScore: 101}]",
        &["profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"],
    );
    let gates = FeatureGates::default();
    let mut config = config("", &gates);
    config.profiles.clear();
    assert_eq!(config.faults(&gates, registry().catalog()), ["profiles: Required value"]);
}

#[test]
fn removed_plugins_are_rejected() {
    let removed = "Invalid value: \"EBSLimits\": was invalid in version \"v1\" (KubeSchedulerConfiguration is version \
                   \"kubescheduler.config.k8s.io/v1\")";
    let at = |path: &str| format!("profiles[0].{path}: {removed}");
    let enabled = |point: &str| format!("profiles: [{{plugins: {{{point}: {{enabled: [{{name: EBSLimits}}]}}}}}}]");
    check(&enabled("filter"), &[&at("plugins.filter.enabled[0]")]);
    check(&enabled("postBind"), &[&at("plugins.postBind.enabled[0]")]);
    check(&enabled("multiPoint"), &[]);
    check(&enabled("placementScore"), &[]);
    check("profiles: [{pluginConfig: [{name: EBSLimits}]}]", &[&at("pluginConfig[0]")]);
}

#[test]
fn repeated_plugin_config_is_an_error() {
    check(
        "profiles: [{pluginConfig: [{name: Mine}, {name: Mine}]}]",
        &["profiles[0].pluginConfig[1]: Duplicate value: \"Mine\""],
    );
    check(
        "profiles: [{pluginConfig: [{name: NodeResourcesFitArgs, args: {a: '<'}}]}]",
        &["profiles[0].pluginConfig[0].args: Invalid value: {\"a\":\"\\u003c\"}: has to match plugin args"],
    );
    let gates = FeatureGates::default();
    let mut config = config("", &gates);
    config.profiles[0].plugin_config = vec![PluginConfig { name: "VolumeBinding".to_owned(), args: AnyArgs::None }];
    let text = "profiles[0].pluginConfig[0].args: Invalid value: null: has to match plugin args";
    assert_eq!(config.faults(&gates, registry().catalog()), [text]);
}

#[test]
fn configured_queue_sorts_must_be_equal() {
    check(
        "profiles: [{plugins: {queueSort: {enabled: [{name: A}, {name: B}]}}}]",
        &["profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
    );
    let sort = |name: &str, set: &str, config: &str| {
        format!("{{schedulerName: {name}, plugins: {{queueSort: {set}}}, pluginConfig: [{config}]}}")
    };
    let (first, second) = (sort("a", "{enabled: [{name: A}]}", ""), sort("b", "{enabled: [{name: B, weight: 3}]}", ""));
    check(
        &format!("profiles: [{first}, {second}, {{schedulerName: c}}]"),
        &[
            "profiles[1].plugins.queueSort: Invalid value: {\"Enabled\":[{\"Name\":\"B\",\"Weight\":3}],\"Disabled\":null}: must \
         be the same for all profiles",
            "profiles[2].plugins.queueSort: Invalid value: {\"Enabled\":null,\"Disabled\":null}: must be the same for all \
         profiles",
        ],
    );
    let set = "{enabled: [{name: A}]}";
    let profiles = [
        sort("a", set, "{name: A, args: {x: 1}}"),
        sort("b", set, "{name: A, args: {z: 2, a: [1]}}"),
        sort("c", set, "{name: A, args: {x: 1}}"),
        sort("d", set, ""),
        sort("e", set, "{name: A}"),
    ];
    check(
        &format!("profiles: [{}]", profiles.join(", ")),
        &[
            "profiles[1].pluginConfig.args: Invalid value: {\"a\":[1],\"z\":2}: queueSort must be the same for all profiles",
            "profiles[4].pluginConfig.args: Invalid value: null: queueSort must be the same for all profiles",
        ],
    );
}

#[test]
fn invalid_or_conflicting_extenders_are_errors() {
    let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let body = "extenders: [{prioritizeVerb: p, bindVerb: b, managedResources: [{name: cpu}, {name: a b}, {name: a.com/x}]}, \
                {bindVerb: c, managedResources: [{name: a.com/x}]}]";
    check(
        body,
        &[
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            "extenders[0].managedResources[0].name: Invalid value: \"cpu\": is an invalid extended resource name",
            &format!("extenders[0].managedResources[1].name: Invalid value: \"a b\": name part {name}"),
            "extenders[1].managedResources[0].name: Invalid value: \"a.com/x\": duplicate extender managed resource name",
            "extenders: Invalid value: \"found 2 extenders implementing bind\": only one extender can implement bind",
        ],
    );
    check("extenders: [{urlPrefix: u, prioritizeVerb: p, weight: 1, managedResources: [{name: a.com/x}]}]", &[]);
}
