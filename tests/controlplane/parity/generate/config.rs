//! Configurations: the default one, others of the plugins that are built, several profiles, weights and arguments.

use serde_json::{Map, Value, json};

use super::{Gen, Topic, affinity, placement, spread};
use crate::parity::case::BUILT;

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
    let profiles: Vec<Value> = g.profiles.clone().into_iter().map(|name| profile(g, &name)).collect();
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": profiles,
    })
}

fn profile(g: &mut Gen, name: &str) -> Value {
    let mut plugins = json!({"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled(g)}});
    if g.percent(15) {
        let plugin = g.pick(&[
            "NodePorts",
            "NodeResourcesFit",
            "TaintToleration",
            "NodeAffinity",
            "NodeName",
            "NodeUnschedulable",
            "PodTopologySpread",
            "InterPodAffinity",
        ]);
        plugins["filter"] = json!({"disabled": [{"name": plugin}]});
    }
    if g.percent(15) {
        let plugin = g.pick(&[
            "ImageLocality",
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesBalancedAllocation",
            "PodTopologySpread",
            "InterPodAffinity",
        ]);
        plugins["score"] = match g.between(0, 2) {
            0 => json!({"disabled": [{"name": plugin}]}),
            1 => json!({"disabled": [{"name": plugin}], "enabled": [{"name": plugin, "weight": g.between(1, 20)}]}),
            _ => json!({"disabled": [{"name": "*"}]}),
        };
    }
    // Filters and scores that have to do without what was to be prepared for them.
    if g.percent(8) {
        let plugin = g.pick(&[
            "NodePorts",
            "NodeResourcesFit",
            "NodeAffinity",
            "NodeDeclaredFeatures",
            "PodTopologySpread",
            "InterPodAffinity",
            "InterPodAffinity",
        ]);
        plugins["preFilter"] = json!({"disabled": [{"name": plugin}]});
        if g.percent(60) {
            plugins["filter"] = json!({"disabled": [{"name": plugin}]});
            // Only then does scoring get to see malformed terms.
            if plugin == "InterPodAffinity" {
                g.malformed = 30;
                g.focus.push(Topic::PodAffinity);
            }
        }
    }
    if g.percent(6) {
        let plugin = g.pick(&[
            "NodeResourcesBalancedAllocation",
            "NodeResourcesFit",
            "NodeAffinity",
            "TaintToleration",
            "PodTopologySpread",
            "InterPodAffinity",
        ]);
        plugins["preScore"] = json!({"disabled": [{"name": plugin}]});
    }
    json!({"schedulerName": name, "plugins": plugins, "pluginConfig": plugin_config(g)})
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
        config.push(json!({"name": "NodeResourcesFit", "args": fit(g)}));
    }
    if g.percent(30) {
        let args = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesBalancedAllocationArgs",
            "resources": resources(g, false),
        });
        config.push(json!({"name": "NodeResourcesBalancedAllocation", "args": args}));
    }
    if g.percent(20) {
        // Both may not be 0.
        let (absolute, percentage) = g.pick(&[(1, 0), (2, 0), (0, 1), (0, 50), (1, 30), (100, 100)]);
        let args = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "DefaultPreemptionArgs",
            "minCandidateNodesAbsolute": absolute, "minCandidateNodesPercentage": percentage,
        });
        config.push(json!({"name": "DefaultPreemption", "args": args}));
    }
    if g.percent(80) {
        config.push(json!({"name": "PodTopologySpread", "args": spread::args(g)}));
    }
    if g.percent(35) {
        config.push(json!({"name": "InterPodAffinity", "args": affinity::args(g)}));
    }
    if g.percent(25) {
        let mut affinity = Map::new();
        if g.percent(40) {
            affinity.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), added_required(g));
        }
        if g.percent(70) {
            affinity.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), added_preferred(g).into());
        }
        let args = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeAffinityArgs", "addedAffinity": affinity,
        });
        config.push(json!({"name": "NodeAffinity", "args": args}));
    }
    config
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
    let mut args = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "NodeResourcesFitArgs"});
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
