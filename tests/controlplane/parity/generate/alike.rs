//! Clusters where pods that are alike come one after the other, and fill the nodes that they are put on.

use kube_scheduler::clock::Rng;
use serde_json::{Value, json};

use super::config::{args_of, with_profiles, without};
use super::{Gen, Topic, node, pod};
use crate::parity::case::{BUILT, Case, tidy};

/// What a case concentrates on: what decides about nodes without looking at other pods, which would keep pods from being
/// signed.
const TOPICS: &[Topic] = &[Topic::Affinity, Topic::Taints, Topic::Ports, Topic::Resources, Topic::Images];

/// The case of this seed, and the node that is taken away before each of its cycles, if one is.
pub(crate) fn case(seed: u64) -> (Case, Vec<Value>) {
    let mut rng = Rng::from_seed(seed);
    // Where a case concentrates on something, most pods fit nowhere.
    let focus = if rng.chance(1, 3) { vec![TOPICS[rng.index(TOPICS.len())]] } else { Vec::new() };
    let mut g = Gen {
        rng,
        focus,
        compares: false,
        nodes: Vec::new(),
        profiles: vec!["default-scheduler".to_owned()],
        classes: false,
        malformed: 0,
    };
    let count = g.between(4, 14);
    g.nodes = (0..count).map(|at| format!("node-{at}")).collect();
    let config = config(&mut g);
    let mut objects: Vec<Value> = (0..count).map(|at| node::node(&mut g, at)).collect();
    let existing = g.between(0, 4);
    objects.extend((0..existing).map(|at| pod::existing(&mut g, at)));
    let kinds: Vec<Value> = (0..g.pick(&[1, 1, 2, 3])).map(|at| kind(&mut g, at)).collect();
    let pods = g.between(3, 12);
    let mut at = 0;
    while at < pods {
        let kind = g.pick(&kinds.iter().collect::<Vec<_>>()).clone();
        for _ in 0..g.between(1, 5) {
            objects.push(one(&mut g, kind.clone(), at));
            at += 1;
        }
    }
    objects.iter_mut().for_each(tidy);
    let mut gone = Vec::new();
    let mut steps = Vec::new();
    for _ in 0..at {
        let node = g.node_name();
        let goes = g.percent(8) && node != "ghost" && !gone.contains(&node);
        steps.push(if goes { json!({"removeNode": node}) } else { json!({}) });
        gone.extend(goes.then_some(node));
    }
    (Case { seed, gates: "", objects, config, events: Vec::new() }, steps)
}

/// One or two profiles; most sign pods, since they spread none by default.
fn config(g: &mut Gen) -> Value {
    if g.percent(25) {
        g.profiles.push("second".to_owned());
    }
    with_profiles(g, profile)
}

fn profile(g: &mut Gen, name: &str) -> Value {
    let others = ["SchedulingGates", "DefaultPreemption"];
    let enabled: Vec<Value> =
        BUILT.iter().filter(|(name, _)| !others.contains(name)).map(|(name, _)| json!({"name": name})).collect();
    let mut plugins = json!({"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}});
    if g.percent(6) {
        plugins["score"] = without("*");
    }
    let mut profile = json!({"schedulerName": name, "plugins": plugins});
    if g.percent(90) {
        profile["pluginConfig"] = json!([args_of("PodTopologySpread", json!({"defaultingType": "List"}))]);
    }
    profile
}

/// What some of the pods are like. Mostly a node has room for one of them.
fn kind(g: &mut Gen, at: usize) -> Value {
    let mut kind = pod::pending(g, at);
    let port = 9000 + at;
    if g.percent(80) {
        kind["spec"]["containers"][0]["ports"] = json!([{"containerPort": port, "hostPort": port, "protocol": "TCP"}]);
    }
    kind["spec"]["schedulerName"] = g.profile().into();
    for field in ["schedulingGates", "nodeName"] {
        kind["spec"].as_object_mut().expect("a pod has a spec").remove(field);
    }
    let fields = kind["metadata"].as_object_mut().expect("a pod has metadata");
    fields.retain(|field, _| !field.starts_with("deletion"));
    kind["status"] = json!({"phase": "Pending"});
    kind
}

/// One of these.
fn one(g: &mut Gen, mut pod: Value, at: usize) -> Value {
    pod["metadata"]["name"] = format!("pending-{at}").into();
    pod["metadata"]["uid"] = format!("pending-{at}").into();
    if g.percent(4) {
        pod["status"]["nominatedNodeName"] = g.node_name().into();
    }
    if g.percent(2) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        pod["metadata"]["deletionGracePeriodSeconds"] = 30.into();
    }
    if g.percent(3) {
        pod["spec"]["nodeSelector"] = json!({"no-such-label": "x"});
    }
    pod
}
