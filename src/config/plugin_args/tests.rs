//! Tests of [`super`]: the arguments of an out-of-tree plugin, from the file to the plugin's factory.

use serde::{Deserialize, Serialize};

use super::super::catalog::PluginCatalog;
use super::super::types::Config;
use super::*;
use crate::config::Gate;

const FILE: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LimitArgs {
    limit: i32,
    zones: Vec<Zone>,
    note: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Zone {
    name: String,
}

impl PluginArgs for LimitArgs {
    const KIND: &'static str = "LimitArgs";

    fn set_defaults(&mut self, gates: &FeatureGates) {
        if self.limit == 0 {
            self.limit = if gates.enabled(Gate::GangScheduling) { 5 } else { 3 };
        }
    }

    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        if self.limit < 0 {
            errors.invalid(&path.child("limit"), self.limit, "must not be negative");
        }
    }
}

fn catalog() -> PluginCatalog {
    let mut catalog = PluginCatalog::default();
    catalog.add_args("Limit", ArgsType::of::<LimitArgs>());
    catalog
}

fn parse(args: &str) -> Result<Config, String> {
    let entries = format!("[{{name: Other, args: {{a: 1}}}}, {{name: Limit, args: {args}}}]");
    let file =
        format!("{FILE}profiles: [{{plugins: {{filter: {{enabled: [{{name: Limit}}]}}}}, pluginConfig: {entries}}}]");
    let config = Config::parse(file.as_bytes(), &FeatureGates::default(), &catalog());
    config.map_err(|error| error.to_string())
}

fn check(args: &str, expected: &LimitArgs) {
    let config = parse(args).unwrap_or_else(|error| panic!("{args}: {error}"));
    assert_eq!(config.profiles[0].args("Limit").get::<LimitArgs>(), Some(expected), "{args}");
}

fn check_error(args: &str, expected: &str) {
    assert_eq!(parse(args).err().as_deref(), Some(expected), "{args}");
}

#[test]
fn missing_arguments_keep_their_defaults() {
    let limit = |limit| LimitArgs { limit, ..LimitArgs::default() };
    check("null", &limit(3));
    check("{}", &limit(3));
    check("{limit: 7, note: null}", &limit(7));
    check("{apiVersion: kubescheduler.config.k8s.io/v1, kind: LimitArgs, limit: 7}", &limit(7));
}

#[test]
fn plugins_without_an_entry_get_default_arguments() {
    let check = |gates: &FeatureGates, expected: i32| {
        let file = format!("{FILE}profiles: [{{plugins: {{filter: {{enabled: [{{name: Limit}}]}}}}}}]");
        let config = Config::parse(file.as_bytes(), gates, &catalog()).expect("it reads");
        let args = config.profiles[0].args("Limit").get::<LimitArgs>().expect("they are typed");
        assert_eq!(args.limit, expected);
        assert_eq!(config.to_v1()["profiles"][0]["pluginConfig"][0]["args"]["limit"], expected);
    };
    check(&FeatureGates::default(), 3);
    check(&FeatureGates::default().with(Gate::GangScheduling, true), 5);
}

#[test]
fn unknown_and_mistyped_fields_are_errors() {
    let place = "decoding .profiles[0].pluginConfig[1]: ";
    let strict = |text: &str| {
        let inner = format!("strict decoding error: decoding args for plugin Limit: strict decoding error: {text}");
        format!("strict decoding error: {place}{inner}")
    };
    check_error("{limits: 7}", &strict("unknown field \"limits\""));
    check_error("{zones: [{}, {nam: a}]}", &strict("unknown field \"zones[1].nam\""));
    check_error("{apiversion: ''}", &strict("unknown field \"apiversion\""));
    let wrong = |text: &str| format!("{place}decoding args for plugin Limit: {text}");
    check_error("{limit: many}", &wrong("limit: invalid type: string \"many\", expected i32"));
    check_error("{zones: [{name: 1}]}", &wrong("zones[0].name: invalid type: integer `1`, expected a string"));
    let other = "no kind \"OtherArgs\" is registered for version \"kubescheduler.config.k8s.io/v1\" in scheme \
                 \"pkg/runtime/scheme.go:111\"";
    check_error("{kind: OtherArgs}", &wrong(other));
}

#[test]
fn repeated_fields_are_errors() {
    let file = "{\"apiVersion\":\"kubescheduler.config.k8s.io/v1\",\"kind\":\"KubeSchedulerConfiguration\",\"profiles\":[{\
                \"pluginConfig\":[{\"name\":\"Limit\",\"args\":{\"limit\":1,\"zones\":[{\"name\":\"a\",\"name\":\"b\"}],\
                \"limit\":2}}]}]}";
    let error = Config::parse(file.as_bytes(), &FeatureGates::default(), &catalog()).expect_err("two are given twice");
    let expected = "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for \
                    plugin Limit: strict decoding error: duplicate field \"zones[0].name\", duplicate field \"limit\"";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn validation_names_the_path_of_the_field() {
    let config = parse("{limit: -1}").expect("it reads");
    let text = "profiles[0].pluginConfig[1].args.limit: Invalid value: -1: must not be negative";
    assert_eq!(config.faults(&FeatureGates::default(), &catalog()), [text]);
}

#[test]
fn effective_configuration_has_kind_and_defaults() {
    let written = parse("{zones: [{name: a}]}").expect("it reads").to_v1();
    let expected = serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "LimitArgs",
        "limit": 3, "zones": [{"name": "a"}], "note": null,
    });
    assert_eq!(written["profiles"][0]["pluginConfig"][0]["args"], expected);
}

#[test]
fn factories_take_typed_raw_or_no_arguments() {
    let typed = AnyArgs::from(LimitArgs { limit: 7, ..LimitArgs::default() });
    assert_eq!(LimitArgs::from_config(&typed).map(|args| args.limit), Ok(7));
    let refused = LimitArgs::from_config(&AnyArgs::None).expect_err("no arguments");
    assert_eq!(refused.to_string(), "want args to be of type LimitArgs, got none");
    assert_eq!(<()>::from_config(&AnyArgs::None), Ok(()));
    let raw = AnyArgs::Raw(serde_json::json!({"limit": 3}));
    assert_eq!(RawArgs::from_config(&raw), Ok(RawArgs(Some(serde_json::json!({"limit": 3})))));
    assert_eq!(RawArgs::from_config(&AnyArgs::None), Ok(RawArgs(None)));
}

#[test]
fn raw_arguments_decode_as_any_type() {
    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Mine {
        limit: u32,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Strict {
        other: u32,
    }
    let raw = RawArgs(Some(serde_json::json!({"limit": 3})));
    assert_eq!(raw.clone().decode::<Mine>(), Ok(Mine { limit: 3 }));
    assert_eq!(RawArgs(None).decode::<Mine>(), Ok(Mine::default()));
    assert_eq!(RawArgs(None).decode::<()>(), Ok(()));
    let error = raw.decode::<Strict>().expect_err("another shape");
    assert_eq!(error.to_string(), "cannot read args (raw): missing field `other`");
}
