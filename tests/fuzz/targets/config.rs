//! Configuration files: any bytes are either rejected with an error text, or parsed, validated and expanded.
#![no_main]

use std::sync::LazyLock;

use kube_scheduler::config::{AnyArgs, Config, ExtensionPoint, FeatureGates, Gate, Profile, ProfileChecker, expand};
use kube_scheduler::framework::Registry;
use libfuzzer_sys::fuzz_target;

/// The plugins for which configurations are parsed.
static PLUGINS: LazyLock<Registry> = LazyLock::new(kube_scheduler::plugins::registry);

fuzz_target!(|data: &[u8]| {
    let defaults = FeatureGates::default();
    let config = check(data, &defaults);
    check(data, &FeatureGates::at(33));
    check(data, &defaults.clone().with(Gate::GangScheduling, true));
    // JSON is YAML, too, and a comment before it selects the YAML parser. If both parsers accept the text, their results must
    // be equal.
    let Some(config) = config.filter(|_| data.first() == Some(&b'{')) else { return };
    let mut yaml = b"# YAML\n".to_vec();
    yaml.extend_from_slice(data);
    if let Ok(other) = Config::parse(&yaml, &defaults, PLUGINS.catalog()) {
        assert_eq!(without_raw_args(config), without_raw_args(other));
    }
});

/// Parses the bytes, and validates and expands the configuration.
fn check(data: &[u8], gates: &FeatureGates) -> Option<Config> {
    let config = match Config::parse(data, gates, PLUGINS.catalog()) {
        Ok(config) => config,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    assert!(!config.profiles.is_empty(), "defaults add a profile");
    let faults = config.faults(gates, PLUGINS.catalog());
    let verdict = config.validate(gates, PLUGINS.catalog());
    assert_eq!(faults.is_empty(), verdict.is_ok());
    if let Err(error) = verdict {
        assert!(!error.to_string().is_empty());
    }
    let mut checker = ProfileChecker::default();
    for profile in &config.profiles {
        check_profile(profile, &mut checker);
    }
    Some(config)
}

/// Expands a profile, and checks that each plugin runs at most once at a point, and only at points that it implements.
fn check_profile(profile: &Profile, checker: &mut ProfileChecker) {
    let expanded = match expand(profile, &implements) {
        Ok(expanded) => expanded,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for point in ExtensionPoint::ALL {
        let plugins = expanded.point(point);
        for (at, plugin) in plugins.iter().enumerate() {
            assert_eq!(implements(&plugin.name, point), Some(true), "{} at {point:?}", plugin.name);
            assert!(plugins[..at].iter().all(|other| other.name != plugin.name), "{} twice", plugin.name);
            let scores = matches!(point, ExtensionPoint::Score | ExtensionPoint::PlacementScore);
            assert_eq!(plugin.weight != 0, scores, "{} at {point:?}", plugin.name);
        }
    }
    assert_eq!(expanded.point(ExtensionPoint::QueueSort).len(), 1);
    assert!(!expanded.point(ExtensionPoint::Bind).is_empty());
    if let Err(error) = checker.check(profile, &expanded) {
        assert!(!error.to_string().is_empty());
    }
}

/// Stands in for a registry. The two plugins that every profile needs implement only their own points. Any other plugin
/// implements all points but these two. A plugin whose name does not begin with an upper-case letter is not registered.
fn implements(plugin: &str, point: ExtensionPoint) -> Option<bool> {
    let own = match plugin {
        "PrioritySort" => Some(ExtensionPoint::QueueSort),
        "DefaultBinder" => Some(ExtensionPoint::Bind),
        _ => None,
    };
    match own {
        Some(own) => Some(own == point),
        None if !plugin.starts_with(|letter: char| letter.is_ascii_uppercase()) => None,
        None => Some(!matches!(point, ExtensionPoint::QueueSort | ExtensionPoint::Bind)),
    }
}

/// Removes the arguments of out-of-tree plugins, which are kept as written. YAML and JSON may decode them differently.
fn without_raw_args(mut config: Config) -> Config {
    for profile in &mut config.profiles {
        profile.plugin_config.retain(|plugin| !matches!(plugin.args, AnyArgs::Raw(_)));
    }
    config
}
