//! Tests of [`super`]: configuration files and their errors. Every text was produced by upstream's own decoder.

use super::decode;
use crate::plugins::registry;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
const JSON: &str = r#"{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration""#;

fn error(data: &[u8]) -> String {
    match decode(data, registry().catalog()) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.0,
    }
}

/// Checks the error of a complete file.
fn check_file(file: &str, expected: &str) {
    assert_eq!(error(file.as_bytes()), expected, "{file}");
}

/// Checks the error of a file with apiVersion and kind in its first two lines, and `body` from the third.
fn check(body: &str, expected: &str) {
    check_file(&format!("{HEAD}{body}"), expected);
}

/// Checks the error of `args` given to `plugin`, after the prefix that names the field.
fn check_args(plugin: &str, args: &str, expected: &str) {
    let place = format!("decoding .profiles[0].pluginConfig[0]: decoding args for plugin {plugin}: ");
    check(&format!("profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]"), &format!("{place}{expected}"));
}

fn check_args_strict(plugin: &str, args: &str, expected: &str) {
    let place = "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for \
                 plugin ";
    let body = format!("profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]");
    check(&body, &format!("{place}{plugin}: strict decoding error: {expected}"));
}

#[test]
fn missing_or_unknown_kind_is_an_error() {
    check_file("", "Object 'Kind' is missing in ''");
    check_file("null\n", "Object 'Kind' is missing in 'null\n'");
    check_file("{}", "Object 'Kind' is missing in '{}'");
    check_file("kind: X\n", "Object 'apiVersion' is missing in 'kind: X\n'");
    check_file("apiVersion: a/b/c\nkind: X\n", "unexpected GroupVersion string: a/b/c");
    let kind = "no kind \"KubeSchedulerConfiguration\" is registered for version \"kubescheduler.config.k8s.io/v1beta3\" in \
                scheme \"pkg/runtime/scheme.go:111\"";
    check_file("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n", kind);
    let kind = "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    check_file("apiVersion: v1\nkind: Pod\n", kind);
    let kind = "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, \
                Kind=NodeResourcesFitArgs: ";
    check_file("apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeResourcesFitArgs\n", kind);
    let unknown = "strict decoding error: unknown field \"foo\"";
    check_file("apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeResourcesFitArgs\nfoo: 1\n", unknown);
}

#[test]
fn api_version_and_kind_must_be_strings() {
    let failed = "couldn't get version/kind; json parse error: json: cannot unmarshal ";
    check_file("kind: 5\n", &format!("{failed}number into Go struct field .kind of type string"));
    check_file("apiVersion: [1]\n", &format!("{failed}array into Go struct field .apiVersion of type string"));
    let go = "Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
              \"json:\\\"kind,omitempty\\\"\" }";
    check_file("[1]\n", &format!("{failed}array into {go}"));
    check_file("hello\n", &format!("{failed}string into {go}"));
    check_file("yes\n", &format!("{failed}bool into {go}"));
}

#[test]
fn unknown_fields_are_reported_by_path() {
    check("foo: 1\n", "strict decoding error: unknown field \"foo\"");
    let two = "strict decoding error: unknown field \"Parallelism\", unknown field \"bar\"";
    check("bar: 1\nParallelism: 2\n", two);
    let nested = "strict decoding error: unknown field \"profiles[0].plugins.foo\"";
    check("profiles: [{plugins: {foo: {}}}]", nested);
    let deep = "strict decoding error: unknown field \"profiles[0].plugins.filter.enabled[1].wieght\"";
    check("profiles: [{plugins: {filter: {enabled: [{name: A}, {name: B, wieght: 3}]}}}]", deep);
    check("KIND: x\n", "strict decoding error: unknown field \"KIND\"");
    let hundred = (0..150).map(|i| format!("x{i:03}: 1")).collect::<Vec<_>>().join("\n");
    assert_eq!(error(format!("{HEAD}{hundred}").as_bytes()).matches("unknown field").count(), 100);
}

#[test]
fn repeated_keys_are_reported_by_line_or_path() {
    let yaml = "strict decoding error: yaml: unmarshal errors:\n  line 4: key \"parallelism\" already set in map";
    check("parallelism: 1\nparallelism: 2\n", yaml);
    let both = "strict decoding error: yaml: unmarshal errors:\n  line 4: key \"foo\" already set in map, unknown field \
                \"foo\"";
    check("foo: 1\nfoo: 2\n", both);
    let json = "strict decoding error: duplicate field \"parallelism\", duplicate field \"clientConnection.qps\"";
    check_file(
        &format!("{JSON},\"parallelism\":3,\"parallelism\":4,\"clientConnection\":{{\"qps\":1,\"qps\":2}}}}"),
        json,
    );
}

#[test]
fn wrong_types_give_gos_errors() {
    let field = |what: &str, field: &str| format!("json: cannot unmarshal {what} into Go struct field {field}");
    let parallelism = "KubeSchedulerConfiguration.parallelism of type int32";
    check("parallelism: x\n", &field("string", parallelism));
    check("parallelism: '5'\n", &field("string", parallelism));
    check("parallelism: 1.5\n", &field("number 1.5", parallelism));
    check("parallelism: 3000000000\n", &field("number 3000000000", parallelism));
    check("parallelism: yes\n", &field("bool", parallelism));
    check("parallelism: {a: 1}\n", &field("object", parallelism));
    check_file(&format!("{JSON},\"parallelism\":1.0}}"), &field("number 1.0", parallelism));
    let embedded = "KubeSchedulerConfiguration.DebuggingConfiguration.enableProfiling of type bool";
    check("enableProfiling: 1\n", &field("number", embedded));
    let name = "LeaderElectionConfiguration.leaderElection.resourceName of type string";
    check("leaderElection: {resourceName: yes}\n", &field("bool", name));
    let profiles = "KubeSchedulerConfiguration.profiles of type ";
    check("profiles: x\n", &field("string", &format!("{profiles}[]v1.KubeSchedulerProfile")));
    check("profiles: [x]\n", &field("string", &format!("{profiles}v1.KubeSchedulerProfile")));
    let weight = "Plugin.profiles.plugins.score.enabled.weight of type int32";
    check("profiles: [{plugins: {score: {enabled: [{name: A, weight: x}]}}}]\n", &field("string", weight));
    let qps = "ClientConnectionConfiguration.clientConnection.qps of type float32";
    check("clientConnection: {qps: 1e50}\n", &field("number 1e+50", qps));
    let data = "ExtenderTLSConfig.extenders.tlsConfig.caData of type []uint8";
    check("extenders: [{tlsConfig: {caData: 5}}]\n", &field("number", data));
    // Only the first error in the order of the keys is reported.
    check("parallelism: x\nenableProfiling: 5\n", &field("number", embedded));
}

#[test]
fn malformed_durations_and_base64_give_gos_errors() {
    let duration = "LeaderElectionConfiguration.leaderElection.leaseDuration of type string";
    let number = format!("json: cannot unmarshal number into Go struct field {duration}");
    check("leaderElection: {leaseDuration: 15}\n", &number);
    check("leaderElection: {leaseDuration: 15x}\n", "time: unknown unit \"x\" in duration \"15x\"");
    check("leaderElection: {leaseDuration: null}\n", "time: invalid duration \"\"");
    // An error that ends the decoding takes precedence over a type mismatch found earlier.
    check(
        "clientConnection: 5\nleaderElection: {leaseDuration: 15x}\n",
        "time: unknown unit \"x\" in duration \"15x\"",
    );
    check("extenders: [{tlsConfig: {caData: '!!'}}]\n", "illegal base64 data at input byte 0");
}

#[test]
fn unknown_fields_in_args_are_errors() {
    check_args_strict("NodeResourcesFit", "{bogus: 1}", "unknown field \"bogus\"");
    let deep =
        "unknown field \"defaultConstraints[0].labelSelector.foo\", unknown field \"defaultConstraints[0].maxskew\"";
    check_args_strict("PodTopologySpread", "{defaultConstraints: [{maxskew: 1, labelSelector: {foo: 1}}]}", deep);
    let file = format!(
        "{JSON},\"profiles\":[{{\"pluginConfig\":[{{\"name\":\"NodeResourcesFit\",\
         \"args\":{{\"ignoredResources\":[],\"ignoredResources\":[]}}}}]}}]}}"
    );
    let place = "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for \
                 plugin NodeResourcesFit: strict decoding error: ";
    check_file(&file, &format!("{place}duplicate field \"ignoredResources\""));
}

#[test]
fn wrong_types_in_args_are_errors() {
    let field = |what: &str, field: &str| format!("json: cannot unmarshal {what} into Go struct field {field}");
    let resources = "NodeResourcesFitArgs.ignoredResources of type []string";
    check_args("NodeResourcesFit", "{ignoredResources: x}", &field("string", resources));
    let strategy = "ScoringStrategy.scoringStrategy.type of type v1.ScoringStrategyType";
    check_args("NodeResourcesFit", "{scoringStrategy: {type: 5}}", &field("number", strategy));
    let labels = "LabelSelector.defaultConstraints.labelSelector.matchLabels of type string";
    let args = "{defaultConstraints: [{labelSelector: {matchLabels: {a: 5}}}]}";
    check_args("PodTopologySpread", args, &field("number", labels));
    let operator = "NodeSelectorRequirement.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                    nodeSelectorTerms.matchExpressions.operator of type v1.NodeSelectorOperator";
    let args = "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: \
                [{key: a, operator: 5}]}]}}}";
    check_args("NodeAffinity", args, &field("number", operator));
    check_args("DynamicResources", "{filterTimeout: x}", "time: invalid duration \"x\"");
    let meta = "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { \
                APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    check_args("NodeResourcesFit", "x", meta);
}

#[test]
fn kind_of_args_must_match_the_plugin() {
    for args in ["{kind: NodeResourcesFitArgs}", "{apiVersion: kubescheduler.config.k8s.io/}", "null", "{}"] {
        check(&format!("profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"), "no error");
    }
    let other = "decoding .profiles[0].pluginConfig[0]: args for plugin NodeResourcesFit were not of type \
                 NodeResourcesFitArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io";
    check("profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {kind: NodeAffinityArgs, foo: 1}}]}]", other);
    let none = "no kind \"Bar\" is registered for version \"foo/v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    check_args("NodeResourcesFit", "{apiVersion: foo/v1, kind: Bar}", none);
    let none =
        "no kind \"NodeResourcesFitArgs\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    check_args("NodeResourcesFit", "{apiVersion: v1}", none);
}

#[test]
fn args_of_unknown_plugins_stay_raw() {
    let body = "profiles: [{pluginConfig: [{name: Mine, args: {b: off, a: 0x10}}, {name: ImageLocality, args: [x]}]}]";
    let config = decode(format!("{HEAD}{body}").as_bytes(), registry().catalog()).expect("reads");
    let raw = |at: usize| config.profiles[0].plugin_config[at].args.0.as_ref().map(super::Value::to_json);
    assert_eq!(raw(0), Some(serde_json::json!({"a": 16, "b": false})));
    assert_eq!(raw(1), Some(serde_json::json!(["x"])));
}

#[test]
fn utf8_and_utf16_files_are_read() {
    let text = format!("{HEAD}parallelism: 3\n");
    let utf16: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let bytes = |prefix: &[u8]| [prefix, text.as_bytes()].concat();
    for data in [bytes(b""), bytes(b"\xef\xbb\xbf"), utf16, text.replace('\n', "\r\n").into_bytes()] {
        assert_eq!(decode(&data, registry().catalog()).map(|config| config.parallelism), Ok(Some(3)));
    }
}

#[test]
fn binary_files_are_rejected() {
    assert_eq!(error(b"\x7fELF\x02\x01\x01\x00\x00"), "yaml: control characters are not allowed");
    assert_eq!(error(b"abc\xff\xfe"), "yaml: invalid leading UTF-8 octet");
    assert_eq!(error(b"abc: \xc3"), "yaml: incomplete UTF-8 octet sequence");
    assert_eq!(error(b"abc: \xe2\x28\xa1"), "yaml: invalid trailing UTF-8 octet");
    assert_eq!(error(&[0xff, 0xfe, 0x41]), "yaml: incomplete UTF-16 character");
    assert_eq!(error(&[0xff, 0xfe, 0x00, 0xdc]), "yaml: unexpected low surrogate area");
}

#[test]
fn syntax_errors_name_the_line() {
    check("a: b: c\n", "yaml: line 3: mapping values are not allowed in this context");
    check("profiles:\n\t- a\n", "yaml: line 4: found character that cannot start any token");
    check("a: \"b\n", "yaml: line 4: found unexpected end of stream");
    check("- a\n", "yaml: line 2: did not find expected key");
    check("a: `b`\n", "yaml: line 3: found character that cannot start any token");
    let json = "couldn't get version/kind; json parse error: ";
    check_file("{a: 1}\n", &format!("{json}invalid character 'a' looking for beginning of object key string"));
    check_file(&format!("{JSON}}} x"), &format!("{json}invalid character 'x' after top-level value"));
    check_file(JSON, &format!("{json}unexpected end of JSON input"));
}

/// A random number generator, seeded for reproducible tests.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % below.max(1)
    }
}

#[test]
fn damaged_files_do_not_panic() {
    const PIECES: [&[u8]; 24] = [
        b":",
        b": ",
        b"- ",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b"\n",
        b"\t",
        b"\"",
        b"'",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!x,",
        b"!%zz ",
        b"|",
        b"? ",
        b"%",
        b"\\",
        b"\xff",
        b"\0",
        b"\xef\xbb\xbf",
    ];
    let sound = format!(
        "{HEAD}parallelism: 4 # workers\nleaderElection: &x {{leaseDuration: 15s, resourceName: \"a\\tb\"}}\n\
         profiles:\n- schedulerName: >-\n    folded\n    name\n  plugins: {{score: {{enabled: [{{name: A, weight: 0x10}}]}}}}\n  \
         pluginConfig:\n  - name: NodeResourcesFit\n    args: !!map {{scoringStrategy: {{type: 'MostAllocated'}}}}\n"
    );
    for seed in 0..3000 {
        let mut dice = Dice(seed);
        let mut data = sound.clone().into_bytes();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(data.len());
            let until = (at + dice.roll(3) * dice.roll(8)).min(data.len());
            data.splice(at..until, PIECES[dice.roll(PIECES.len())].iter().copied());
        }
        // Any result is fine. A panic fails the test; the same seeds run every time.
        let _ = decode(&data, registry().catalog());
    }
}
