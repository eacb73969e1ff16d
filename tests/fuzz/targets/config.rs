//! Configuration files: any bytes are either refused with a text, or defaulted, expanded into what runs and checked.
#![no_main]

use std::sync::LazyLock;

use kube_scheduler::config::{AnyArgs, Config, ExtensionPoint, FeatureGates, Gate, Profile, ProfileChecker, expand};
use kube_scheduler::framework::Registry;
use libfuzzer_sys::fuzz_target;

/// The plugins that configurations are read for.
static PLUGINS: LazyLock<Registry> = LazyLock::new(kube_scheduler::plugins::registry);

fuzz_target!(|data: &[u8]| {
    let defaults = FeatureGates::default();
    let config = check(data, &defaults);
    check(data, &FeatureGates::at(33));
    check(data, &defaults.clone().with(Gate::GangScheduling, true));
    // JSON is YAML too; a comment before it makes it so. What both readers take, they take for the same.
    let Some(config) = config.filter(|_| data.first() == Some(&b'{')) else { return };
    let mut yaml = b"# YAML\n".to_vec();
    yaml.extend_from_slice(data);
    if let Ok(other) = Config::parse(&yaml, &defaults, PLUGINS.catalog()) {
        assert_eq!(without_raw_args(config), without_raw_args(other));
    }
});

/// Reads the bytes and uses what comes of it.
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

/// Expands a profile. Each plugin runs at most once at a point, and only at points that it has.
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

/// Stands in for a registry: the two plugins that every profile needs, and others that have every point but theirs. A
/// name that begins in lower case is not registered.
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

/// Arguments of plugins from outside are kept as text, which YAML and JSON may write differently.
fn without_raw_args(mut config: Config) -> Config {
    for profile in &mut config.profiles {
        profile.plugin_config.retain(|plugin| !matches!(plugin.args, AnyArgs::Raw(_)));
    }
    config
}
