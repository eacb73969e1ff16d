//! Configurations: the default one, others of the plugins that are built, several profiles, weights and arguments.

use serde_json::{Map, Value, json};

use super::{Gen, Topic, affinity, placement, spread};
use crate::parity::case::BUILT;

/// API version of configurations and of arguments.
const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// Plugins of which `Filter` may be disabled alone.
const FILTERS: &[&str] = &[
    "NodePorts",
    "NodeResourcesFit",
    "TaintToleration",
    "NodeAffinity",
    "NodeName",
    "NodeUnschedulable",
    "PodTopologySpread",
    "InterPodAffinity",
];

/// Plugins of which `Score` may be disabled alone.
const SCORES: &[&str] = &[
    "ImageLocality",
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "PodTopologySpread",
    "InterPodAffinity",
];

/// Plugins of which `PreFilter` may be disabled alone.
const PRE_FILTERS: &[&str] = &[
    "NodePorts",
    "NodeResourcesFit",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "PodTopologySpread",
    "InterPodAffinity",
    "InterPodAffinity",
];

/// Plugins of which `PreScore` may be disabled alone.
const PRE_SCORES: &[&str] = &[
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "NodeAffinity",
    "TaintToleration",
    "PodTopologySpread",
    "InterPodAffinity",
];

/// A configuration, or null for the defaults; the names of its profiles become those that pods ask for.
pub(super) fn config(g: &mut Gen) -> Value {
    g.profiles = vec!["default-scheduler".to_owned()];
    if g.percent(12) {
        return Value::Null;
    }
    for name in ["second", "third"] {
        if g.percent(15) {
            g.profiles.push(name.to_owned());
        }
    }
    with_profiles(g, profile)
}

/// A configuration with a profile of each name that pods may ask for.
pub(super) fn with_profiles(g: &mut Gen, profile: impl Fn(&mut Gen, &str) -> Value) -> Value {
    let profiles: Vec<Value> = g.profiles.clone().into_iter().map(|name| profile(g, &name)).collect();
    json!({
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": profiles,
    })
}

fn profile(g: &mut Gen, name: &str) -> Value {
    let mut plugins = json!({"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled(g)}});
    if let Some(plugin) = pick_in(g, 15, FILTERS) {
        plugins["filter"] = without(plugin);
    }
    if let Some(plugin) = pick_in(g, 15, SCORES) {
        plugins["score"] = match g.between(0, 2) {
            0 => without(plugin),
            1 => json!({"disabled": [{"name": plugin}], "enabled": [{"name": plugin, "weight": g.between(1, 20)}]}),
            _ => without("*"),
        };
    }
    // Filters and scores that have to do without what was to be prepared for them.
    if let Some(plugin) = pick_in(g, 8, PRE_FILTERS) {
        plugins["preFilter"] = without(plugin);
        if g.percent(60) {
            plugins["filter"] = without(plugin);
            // Only then does scoring get to see malformed terms.
            if plugin == "InterPodAffinity" {
                g.malformed = 30;
                g.focus.push(Topic::PodAffinity);
            }
        }
    }
    if let Some(plugin) = pick_in(g, 6, PRE_SCORES) {
        plugins["preScore"] = without(plugin);
    }
    json!({"schedulerName": name, "plugins": plugins, "pluginConfig": plugin_config(g)})
}

/// Picks one of these plugins in `percent` of a hundred cases.
fn pick_in(g: &mut Gen, percent: u64, plugins: &[&'static str]) -> Option<&'static str> {
    g.percent(percent).then(|| g.pick(plugins))
}

/// A set of plugins that disables one of them, or all with `*`.
pub(super) fn without(plugin: &str) -> Value {
    json!({"disabled": [{"name": plugin}]})
}

/// Most of the built plugins, with weights, now and then in another order.
fn enabled(g: &mut Gen) -> Vec<Value> {
    let mut enabled = Vec::new();
    for (name, scores) in BUILT {
        let needed = matches!(*name, "PrioritySort" | "DefaultBinder");
        if !needed && g.percent(7) {
            continue;
        }
        let mut entry = json!({"name": name});
        if *scores && g.percent(40) {
            entry["weight"] = g.pick(&[1, 2, 3, 7, 100]).into();
        }
        enabled.push(entry);
    }
    if g.percent(25) {
        g.rng.shuffle(&mut enabled);
    }
    enabled
}

fn plugin_config(g: &mut Gen) -> Vec<Value> {
    let mut config = Vec::new();
    if g.percent(60) {
        config.push(args_of("NodeResourcesFit", fit(g)));
    }
    if g.percent(30) {
        config.push(args_of("NodeResourcesBalancedAllocation", json!({"resources": resources(g, false)})));
    }
    if g.percent(20) {
        // Both may not be 0.
        let (absolute, percentage) = g.pick(&[(1, 0), (2, 0), (0, 1), (0, 50), (1, 30), (100, 100)]);
        let args = json!({"minCandidateNodesAbsolute": absolute, "minCandidateNodesPercentage": percentage});
        config.push(args_of("DefaultPreemption", args));
    }
    if g.percent(80) {
        config.push(args_of("PodTopologySpread", spread::args(g)));
    }
    if g.percent(35) {
        config.push(args_of("InterPodAffinity", affinity::args(g)));
    }
    if g.percent(25) {
        let mut affinity = Map::new();
        if g.percent(40) {
            affinity.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), added_required(g));
        }
        if g.percent(70) {
            affinity.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), added_preferred(g).into());
        }
        config.push(args_of("NodeAffinity", json!({"addedAffinity": affinity})));
    }
    config
}

/// The entry of `pluginConfig` for a plugin with these arguments.
pub(super) fn args_of(plugin: &str, mut args: Value) -> Value {
    args["apiVersion"] = API_VERSION.into();
    args["kind"] = format!("{plugin}Args").into();
    json!({"name": plugin, "args": args})
}

/// Terms that the configuration's validation takes: unlike those of pods, their values are looked at.
fn added_required(g: &mut Gen) -> Value {
    loop {
        let required = placement::required(g);
        if parses(&required["nodeSelectorTerms"]) {
            return required;
        }
    }
}

fn added_preferred(g: &mut Gen) -> Vec<Value> {
    let mut preferred = placement::preferred(g);
    preferred.retain(|term| parses(&json!([term["preference"]])));
    preferred
}

fn parses(terms: &Value) -> bool {
    let text = terms.to_string();
    !["not a value!", "abc", "1.5", "9223372036854775808", "-3"].iter().any(|broken| text.contains(broken))
}

/// Resources to score by; each once.
fn resources(g: &mut Gen, weighted: bool) -> Vec<Value> {
    let mut resources = Vec::new();
    for name in ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "foo.io/nic", "hugepages-2Mi"] {
        if g.percent(45) {
            let weight = if weighted { g.pick(&[1, 1, 2, 5, 100]) } else { 1 };
            resources.push(json!({"name": name, "weight": weight}));
        }
    }
    if resources.is_empty() {
        resources.push(json!({"name": "cpu", "weight": 1}));
    }
    resources
}

fn fit(g: &mut Gen) -> Value {
    let mut args = json!({});
    if g.percent(30) {
        args["ignoredResources"] = json!([g.pick(&["example.com/gpu", "foo.io/nic"])]);
    }
    if g.percent(30) {
        args["ignoredResourceGroups"] = json!([g.pick(&["example.com", "foo.io"])]);
    }
    let kind = g.pick(&["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]);
    let mut strategy = json!({"type": kind, "resources": resources(g, true)});
    if kind == "RequestedToCapacityRatio" {
        strategy["requestedToCapacityRatio"] = json!({"shape": shape(g)});
    }
    if g.percent(80) {
        args["scoringStrategy"] = strategy;
    }
    args
}

/// Points with rising utilization.
fn shape(g: &mut Gen) -> Vec<Value> {
    let mut at = g.between(0, 30);
    let mut points = Vec::new();
    for _ in 0..g.between(1, 4) {
        points.push(json!({"utilization": at, "score": g.between(0, 10)}));
        at += g.between(1, 40);
        if at > 100 {
            break;
        }
    }
    points
}
