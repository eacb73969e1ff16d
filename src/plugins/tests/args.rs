//! Defaults and errors of plugin arguments in configurations. Every text here was produced by upstream's kube-scheduler.

use crate::config::{Config, FeatureGates, Gate};
use crate::plugins::{node_resources, registry};
use crate::testing::handle;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn config(body: &str, gates: &FeatureGates) -> Config {
    let data = format!("{HEAD}{body}");
    Config::parse(data.as_bytes(), gates, registry().catalog()).unwrap_or_else(|error| panic!("{body}: {error}"))
}

/// Checks the arguments, as JSON with defaults, that `plugin` gets from `args` in YAML flow style.
fn check_defaults(plugin: &str, args: &str, gates: &FeatureGates, expected: &str) {
    let config = config(&format!("profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]"), gates);
    let json = config.profiles[0].args(plugin).to_json().expect("JSON");
    let expected: serde_json::Value = serde_json::from_str(expected).expect("JSON");
    assert_eq!(json, expected, "{plugin} {args}");
}

/// Checks the errors for `args` of `plugin`. The texts in `expected` omit the path of the args.
fn check_args_with(gates: &FeatureGates, plugin: &str, args: &str, expected: &[&str]) {
    let expected: Vec<String> =
        expected.iter().map(|text| format!("profiles[0].pluginConfig[0].args.{text}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let body = format!("profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]");
    assert_eq!(config(&body, gates).faults(gates, registry().catalog()), expected, "{body}");
}

fn check_args(plugin: &str, args: &str, expected: &[&str]) {
    check_args_with(&FeatureGates::default(), plugin, args, expected);
}

#[test]
fn args_are_defaulted_by_field() {
    let gates = FeatureGates::default();
    let cpu_memory = r#"[{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]"#;
    check_defaults(
        "DefaultPreemption",
        "{minCandidateNodesAbsolute: 5}",
        &gates,
        r#"{
        "minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 5}"#,
    );
    check_defaults(
        "InterPodAffinity",
        "{hardPodAffinityWeight: 0}",
        &gates,
        r#"{
        "hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": false}"#,
    );
    check_defaults("NodeAffinity", "null", &gates, "{}");
    let resources = r#"{"resources": [{"name": "a", "weight": 1}]}"#;
    check_defaults("NodeResourcesBalancedAllocation", "{resources: [{name: a, weight: 0}]}", &gates, resources);
    check_defaults(
        "NodeResourcesFit",
        "{}",
        &gates,
        &format!(
            r#"{{
        "scoringStrategy": {{"type": "LeastAllocated", "resources": {cpu_memory}}}}}"#
        ),
    );
    check_defaults(
        "NodeResourcesFit",
        "{scoringStrategy: {}}",
        &gates,
        &format!(
            r#"{{
        "scoringStrategy": {{"resources": {cpu_memory}}}}}"#
        ),
    );
    check_defaults("PodTopologySpread", "{}", &gates, r#"{"defaultingType": "System"}"#);
    check_defaults("VolumeBinding", "{}", &gates, r#"{"bindTimeoutSeconds": 600}"#);
    check_defaults(
        "DynamicResources",
        "{filterTimeout: 0s}",
        &gates,
        r#"{
        "filterTimeout": "0s", "bindingTimeout": "10m0s"}"#,
    );
}

#[test]
fn gates_change_the_defaults_of_args() {
    let gates = FeatureGates::default()
        .with(Gate::StorageCapacityScoring, true)
        .with(Gate::DRASchedulerFilterTimeout, false)
        .with(Gate::DRAResourceClaimDeviceStatus, false);
    check_defaults(
        "VolumeBinding",
        "{}",
        &gates,
        r#"{"bindTimeoutSeconds": 600,
        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}"#,
    );
    check_defaults("DynamicResources", "{}", &gates, r#"{"filterTimeout": null}"#);
}

#[test]
fn invalid_preemption_and_affinity_args_are_errors() {
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
fn added_affinity_is_validated_like_a_pods() {
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
fn invalid_topology_spread_args_are_errors() {
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
fn volume_and_device_args_are_validated_by_gate() {
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

/// Checks the error of the `NodeResourcesFit` factory for these arguments.
fn check_fit(args: &str, expected: &str) {
    let gates = FeatureGates::default();
    let config = config(&format!("profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"), &gates);
    assert_eq!(config.faults(&gates, registry().catalog()), Vec::<String>::new(), "left to the constructor: {args}");
    let factory = registry().get("NodeResourcesFit").expect("it is registered").clone();
    let built = factory(config.profiles[0].args("NodeResourcesFit"), &handle(gates));
    let got = built.map_or_else(|error| error.to_string(), |_| "sound".to_owned());
    assert_eq!(got, expected, "{args}");
}

#[test]
fn fit_args_are_validated_by_the_factory() {
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
fn ignored_extender_resources_need_fit_args() {
    let mut config = config("", &FeatureGates::default());
    let profile = &mut config.profiles[0];
    profile.plugin_config.clear();
    let error = node_resources::ignore_resources(profile, &["a.com/x".to_owned()]).expect_err("there are no args");
    assert_eq!(error, "can't find NodeResourcesFitArgs in plugin config");
}
