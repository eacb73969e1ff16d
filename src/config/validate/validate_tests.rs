//! Tests of [`super`]: the body of a file in, upstream's text out. Every text here was seen from upstream itself.

use super::super::args::{NodeResourcesFitArgs, PluginArgs};
use super::super::gates::{FeatureGates, Gate};
use super::super::types::{Config, PluginConfig};
use super::validate_node_resources_fit_args;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn config(body: &str, gates: &FeatureGates) -> Config {
    Config::parse(format!("{HEAD}{body}").as_bytes(), gates).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn check_with(gates: &FeatureGates, body: &str, expected: &[&str]) {
    assert_eq!(config(body, gates).faults(gates), expected, "{body}");
}

fn check(body: &str, expected: &[&str]) {
    check_with(&FeatureGates::default(), body, expected);
}

/// Checks the faults of `args` given to `plugin`; `expected` are without the path of the args.
fn check_args_with(gates: &FeatureGates, plugin: &str, args: &str, expected: &[&str]) {
    let expected: Vec<String> =
        expected.iter().map(|text| format!("profiles[0].pluginConfig[0].args.{text}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_with(gates, &format!("profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]"), &expected);
}

fn check_args(plugin: &str, args: &str, expected: &[&str]) {
    check_args_with(&FeatureGates::default(), plugin, args, expected);
}

#[test]
fn one_fault_is_bare_and_several_are_listed_once_each() {
    let gates = FeatureGates::default();
    config("", &gates).validate(&gates).expect("the defaults are sound");
    let error = config("parallelism: 0\nclientConnection: {burst: -1}\n", &gates).validate(&gates).expect_err("two");
    let text = "[clientConnection.burst: Invalid value: -1: must be non-negative, parallelism: Invalid value: 0: should be \
                an integer value greater than zero]";
    assert_eq!(error.to_string(), text);
}

#[test]
fn top_level_numbers_have_ranges() {
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
fn leader_election_is_checked_where_it_is_on() {
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
    assert_eq!(config.faults(&gates), ["leaderElection.resourceName: Required value"]);
}

#[test]
fn profiles_have_names_of_their_own() {
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
    assert_eq!(config.faults(&gates), ["profiles: Required value"]);
}

#[test]
fn removed_plugins_are_refused_by_name() {
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
fn plugin_config_is_given_once() {
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
    config.profiles[0].plugin_config = vec![PluginConfig { name: "VolumeBinding".to_owned(), args: PluginArgs::None }];
    let text = "profiles[0].pluginConfig[0].args: Invalid value: null: has to match plugin args";
    assert_eq!(config.faults(&gates), [text]);
}

#[test]
fn profiles_share_the_queue_sort_as_configured() {
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
fn preemption_and_affinity_args() {
    check_args(
        "DefaultPreemption",
        "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}",
        &[
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ],
    );
    check_args(
        "DefaultPreemption",
        "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
        &[
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
            "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
        ],
    );
    check_args(
        "InterPodAffinity",
        "{hardPodAffinityWeight: 101}",
        &["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
    );
    check_args(
        "NodeResourcesBalancedAllocation",
        "{resources: [{name: cpu, weight: 2}, {name: cpu}]}",
        &["resources[0].weight: Invalid value: 2: must be 1", "resources[1].name: Duplicate value: \"cpu\""],
    );
}

#[test]
fn added_affinity_is_checked_like_a_pods() {
    let required = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].";
    let at = |text: &str| format!("{required}{text}");
    let args = "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}, {\
                matchExpressions: [{key: a, operator: Foo}, {key: /x, operator: Exists, values: [v]}, {key: a, operator: In}, \
                {key: a, operator: Gt, values: [v, '5']}, {key: a, operator: NotIn, values: ['<']}], \
                matchFields: [{key: f, operator: In, values: [v, w]}, {key: f, operator: Lt}]}]}}}";
    let label = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
                 and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
                 validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    check_args(
        "NodeAffinity",
        args,
        &[
            &at(
                "matchExpressions[0].operator: Unsupported value: \"Foo\": supported values: \"In\", \"NotIn\", \"Exists\", \
             \"DoesNotExist\", \"Gt\", \"Lt\"",
            ),
            &at("matchExpressions[1].key: Invalid value: \"/x\": prefix part must be non-empty"),
            &at(
                "matchExpressions[1].values: Invalid value: [\"v\"]: values set must be empty for exists and does not exist",
            ),
            &at(
                "matchExpressions[2].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            ),
            &at(
                "matchExpressions[3].values: Invalid value: [\"v\",\"5\"]: for 'Gt', 'Lt' operators, exactly one value is \
             required",
            ),
            &at(
                "matchExpressions[3].values[0]: Invalid value: \"v\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            &at(&format!("matchExpressions[4].values[0][a]: Invalid value: \"<\": {label}")),
            &at("matchFields[0].values: Invalid value: [\"v\",\"w\"]: must have one element"),
            &at("matchFields[1].operator: Unsupported value: \"Lt\": supported values: \"In\", \"NotIn\""),
        ],
    );
    let preferred = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].";
    let args = "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [\
                {weight: 0, preference: {matchExpressions: [{key: a, operator: X}]}}, \
                {weight: 1, preference: {matchExpressions: [{key: a, operator: DoesNotExist, values: []}], \
                matchFields: [{key: a, operator: NotIn}]}}]}}";
    check_args(
        "NodeAffinity",
        args,
        &[&format!("{preferred}matchFields[0].values: Invalid value: null: must have one element")],
    );
}

#[test]
fn spread_args() {
    check_args(
        "PodTopologySpread",
        "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}",
        &["defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty"],
    );
    let args = "{defaultingType: Foo, defaultConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: ''}, \
                {maxSkew: 1, topologyKey: a/, whenUnsatisfiable: X, labelSelector: {}}, \
                {maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, \
                {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}";
    let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    check_args(
        "PodTopologySpread",
        args,
        &[
            "defaultingType: Unsupported value: \"Foo\": supported values: \"System\", \"List\"",
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
            "defaultConstraints[0].topologyKey: Required value: can not be empty",
            "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            "defaultConstraints[1].topologyKey: Invalid value: \"a/\": name part must be non-empty",
            &format!("defaultConstraints[1].topologyKey: Invalid value: \"a/\": name part {name}"),
            "defaultConstraints[1].whenUnsatisfiable: Unsupported value: \"X\": supported values: \"DoNotSchedule\", \
         \"ScheduleAnyway\"",
            "defaultConstraints[1].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
            "defaultConstraints[3]: Duplicate value: \"{a, ScheduleAnyway}\"",
        ],
    );
}

#[test]
fn volume_and_device_args_follow_their_gates() {
    check_args(
        "VolumeBinding",
        "{bindTimeoutSeconds: -1, shape: [{utilization: 0, score: 1}]}",
        &[
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
            "shape: Invalid value: [{\"Utilization\":0,\"Score\":1}]: unexpected field `shape`, remove it or turn on the feature \
         gate StorageCapacityScoring",
        ],
    );
    let capacity = FeatureGates::default().with(Gate::StorageCapacityScoring, true);
    check_args_with(
        &capacity,
        "VolumeBinding",
        "{shape: [{utilization: 5, score: 11}, {utilization: 5, score: 1}]}",
        &[
            "shape[1].utilization: Invalid value: 5: values must be sorted in increasing order",
            "shape[0].score: Invalid value: 11: not in valid range [0, 10]",
        ],
    );
    check_args(
        "DynamicResources",
        "{filterTimeout: -1s, bindingTimeout: 500ms}",
        &[
            "filterTimeout: Invalid value: \"-1s\": must be zero or positive",
            "bindingTimeout: Invalid value: \"500ms\": must be at least 1 second",
        ],
    );
    let off = FeatureGates::default()
        .with(Gate::DRASchedulerFilterTimeout, false)
        .with(Gate::DRADeviceBindingConditions, false);
    check_args_with(
        &off,
        "DynamicResources",
        "{filterTimeout: 1s, bindingTimeout: 5s}",
        &[
            "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
            "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
        ],
    );
}

/// Checks the args of `NodeResourcesFit` as its constructor does.
fn check_fit(args: &str, expected: &str) {
    let gates = FeatureGates::default();
    let config = config(&format!("profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"), &gates);
    assert_eq!(config.faults(&gates), Vec::<String>::new(), "left to the constructor: {args}");
    let decoded: NodeResourcesFitArgs = config.profiles[0].args("NodeResourcesFit").decode().expect("its args");
    let got =
        validate_node_resources_fit_args(&decoded).map_or_else(|error| error.to_string(), |()| "sound".to_owned());
    assert_eq!(got, expected, "{args}");
}

#[test]
fn fit_args_are_checked_by_the_constructor() {
    check_fit("{}", "sound");
    check_fit("{scoringStrategy: {type: MostAllocated, resources: [{name: a.b/c, weight: 100}]}}", "sound");
    let types = "supported values: \"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\"";
    check_fit("{scoringStrategy: {}}", &format!("scoringStrategy.type: Unsupported value: \"\": {types}"));
    let weight =
        "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]";
    check_fit("{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}]}}", weight);
    let group = "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'";
    check_fit("{ignoredResourceGroups: [a/b]}", group);
    let ratio = "scoringStrategy.requestedToCapacityRatio";
    let required = format!("{ratio}: Required value: must be specified when type is RequestedToCapacityRatio");
    check_fit("{scoringStrategy: {type: RequestedToCapacityRatio}}", &required);
    let point = format!("{ratio}.shape: Required value: at least one point must be specified");
    check_fit("{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}}", &point);
    let forbidden = format!("{ratio}: Forbidden: must be nil when type is not RequestedToCapacityRatio");
    check_fit("{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}", &forbidden);
}

#[test]
fn extenders_are_checked_together() {
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
