//! Pods that are alike, one after the other: where each goes, and what one cycle keeps for the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::SimClock;
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::engine::Engine;
use kube_scheduler::k8s::{Node, Pod};
use kube_scheduler::model::PodInfo;
use kube_scheduler::plugins;
use libtest_mimic::Failed;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::case::Case;
use super::clusters::{Oracles, from_environment};
use super::generate::alike;

/// How many cases are compared unless `KS_CASES` says otherwise.
const CASES: u64 = 1000;

/// Asked again where this was given: the processor was away for longer than results are kept.
const EXPIRED: &str = "expired";

/// What has to be reached. `pod_failed` is never counted, and `expired` is a matter of time.
const REQUIRED: &[&str] = &[
    "no_hint",
    "hint_used",
    "hint_not_used",
    "pod_skipped",
    "node_missing",
    "node_not_full",
    "empty_list",
    "pod_incompatible",
    "pod_not_batchable",
    "no host",
    "host",
];

/// Compares cycle by cycle, and checks that every way in which results are used or given up was reached.
pub(crate) fn batched_equal_pods_are_placed_as_upstream() -> Result<(), Failed> {
    let cases = from_environment("KS_CASES")?.unwrap_or(CASES);
    let first = from_environment("KS_SEED")?.unwrap_or(0);
    let mut oracles = Oracles::default();
    let mut reached: BTreeMap<String, usize> = BTreeMap::new();
    for seed in first..first + cases {
        let (case, steps) = alike::case(seed);
        let request = json!({"id": seed, "objects": case.objects, "config": case.config, "consecutive": steps});
        let mut theirs = oracles.with(case.gates).ask(&request)?["consecutive"].take();
        while theirs.to_string().contains(EXPIRED) {
            theirs = oracles.with(case.gates).ask(&request)?["consecutive"].take();
        }
        let theirs = theirs.as_array().cloned().unwrap_or_default();
        let ours = cycles(&case, &steps[..theirs.len()]).map_err(|error| format!("seed {seed}: {error}"))?;
        for (at, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
            // Without a host, ours does not say which pod it was.
            let same_pod = ours["host"].as_str().is_some_and(str::is_empty) || theirs["pod"] == ours["pod"];
            let batching = theirs["batching"].as_object().cloned().unwrap_or_default();
            if !same_pod || theirs["host"] != ours["host"] || Value::from(batching.clone()) != ours["batching"] {
                let file = case.write(&crate::support::programs::folder().join("failures"))?;
                let place = format!("seed {seed}, cycle {at}, written to {}", file.display());
                return Err(format!("{place}:\n  upstream {theirs}\n  ours     {ours}").into());
            }
            let host = if theirs["host"] == "" { "no host" } else { "host" };
            for what in batching.keys().map(String::as_str).chain([host]) {
                *reached.entry(what.to_owned()).or_default() += 1;
            }
        }
    }
    for (what, count) in &reached {
        println!("{count:6} {what}");
    }
    let missing: Vec<&str> = REQUIRED.iter().copied().filter(|what| !reached.contains_key(*what)).collect();
    if cases < CASES || missing.is_empty() { Ok(()) } else { Err(format!("never reached: {missing:?}").into()) }
}

/// What the library does in each cycle, in the oracle's words.
fn cycles(case: &Case, steps: &[Value]) -> Result<Vec<Value>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let clock = SimClock::new(Timestamp::UNIX_EPOCH);
    let mut engine = engine(&runtime, case, &clock)?;
    fill(&engine, case, &clock)?;
    let shared = engine.shared.clone();
    let mut known: Vec<Arc<str>> = Vec::new();
    let mut counts = batching(&engine);
    let mut answers = Vec::new();
    for step in steps {
        if let Some(name) = step["removeNode"].as_str() {
            let node = shared.cache.node(name).ok_or_else(|| format!("no node {name}"))?;
            shared.cache.remove_node(node.node()).map_err(|error| error.to_string())?;
        }
        // What a cycle spawns is never driven: a pod that found a node stays assumed there.
        engine.scheduler.schedule_one(clock.now());
        let assumed = shared.cache.pods().into_iter().find(|pod| pod.assumed && !known.contains(pod.pod.key()));
        let (pod, host) = assumed.map_or_else(Default::default, |pod| {
            known.push(pod.pod.key().clone());
            (pod.pod.key().to_string(), pod.node.to_string())
        });
        let now = batching(&engine);
        let mut added = Map::new();
        for (label, count) in &now {
            let before = counts.get(label).copied().unwrap_or_default();
            if *count > before {
                added.insert(label.clone(), (count - before).into());
            }
        }
        counts = now;
        answers.push(json!({"pod": pod, "host": host, "batching": added}));
    }
    Ok(answers)
}

fn engine(runtime: &tokio::runtime::Runtime, case: &Case, clock: &SimClock) -> Result<Engine, String> {
    let _inside = runtime.enter();
    let gates = FeatureGates::default();
    let mut config = Config::parse(case.config.to_string().as_bytes(), &gates, plugins::registry().catalog())
        .map_err(|error| error.to_string())?;
    config.parallelism = 1;
    let wall = clock.clone();
    let client = ApiServer::new(Options::new(move || wall.now().wall)).client();
    let building = Engine::builder(client, config, plugins::registry()).gates(gates).clock(clock.clock());
    runtime.block_on(building.build()).map_err(|error| error.to_string())
}

/// Shows the scheduler all objects; pods queue in their order.
fn fill(engine: &Engine, case: &Case, clock: &SimClock) -> Result<(), String> {
    let shared = &engine.shared;
    let of_kind = |kind: &'static str| case.objects.iter().filter(move |object| object["kind"] == kind);
    for object in of_kind("Node") {
        shared.cache.set_node(Arc::new(Node::deserialize(object).map_err(|error| error.to_string())?));
    }
    for object in of_kind("Pod") {
        let pod = Arc::new(Pod::deserialize(object).map_err(|error| error.to_string())?);
        if pod.is_terminal() {
            continue;
        }
        shared.listers.put(pod.clone());
        let info = Arc::new(PodInfo::with_gates(pod, &shared.classes, shared.resource_gates));
        if info.pod().node_name().is_some() {
            shared.cache.add_pod(info).map_err(|error| error.to_string())?;
        } else {
            clock.advance(Duration::from_micros(1));
            shared.queue.add(info, clock.now());
        }
    }
    Ok(())
}

/// What was counted of batching so far, all profiles together.
fn batching(engine: &Engine) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let families = engine.shared.metrics.registry().gather();
    for family in families.iter().filter(|family| family.name().starts_with("scheduler_batch_")) {
        for metric in family.get_metric() {
            let label = metric.get_label().iter().find(|label| ["result", "reason"].contains(&label.name()));
            let label = label.map(|label| label.value().to_owned()).unwrap_or_default();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
            let count = metric.get_counter().get_value() as u64;
            *counts.entry(label).or_default() += count;
        }
    }
    counts
}
