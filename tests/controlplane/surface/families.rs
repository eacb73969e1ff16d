//! The metrics of both schedulers after the same scenario: families, types, how settled they are, labels, buckets and series.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::json;

use crate::behaviour::effects::scenario;
use crate::support::cluster::{ControlPlane, free_ports, wait_for};
use crate::support::process::Process;
use crate::support::programs::program;
use crate::support::schedulers::{at_once, client_of};
use crate::support::stage::on_stage;
use crate::surface::scraped::compare_findings;

/// Scenarios that make series of most families.
pub(crate) const SCENARIOS: [&str; 6] = ["binds", "no-nodes", "room-later", "gates", "preempts", "binding-refused"];

/// Families that upstream has because of what it is made of: Go, its queues, informers and transports, and an API server's
/// library, of which a scheduler uses little.
const THEIRS_ALONE: [&str; 11] = [
    "go_",
    "workqueue_",
    "informer_",
    "apiserver_",
    "aggregator_",
    "rest_client_exec_plugin_",
    "rest_client_transport_",
    "authentication_token_cache_",
    "field_validation_",
    "promhttp_",
    "etcd_",
];

/// The one family that upstream does not have: the version and the build of this program.
const OURS_ALONE: &str = "kube_scheduler_rs_build_info";

/// Families whose series are a matter of time, of the processor, or of how often things are sampled.
const SERIES_VARY: [&str; 8] = [
    "scheduler_plugin_execution_duration_seconds",
    "scheduler_goroutines",
    "scheduler_cache_size",
    "scheduler_event_handling_duration_seconds",
    "scheduler_queueing_hint_execution_duration_seconds",
    "scheduler_queue_incoming_pods_total",
    "scheduler_inflight_events",
    "scheduler_pod_scheduling_sli_duration_seconds",
];

/// A family as a scrape shows it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Family {
    kind: String,
    stability: String,
    labels: BTreeSet<String>,
    buckets: BTreeSet<String>,
    series: BTreeSet<String>,
}

/// Plays the scenarios under both and compares what they show.
pub(crate) fn metrics_are_upstreams() -> Result<(), Failed> {
    let [theirs, ours] = at_once([false, true].map(|ours| move || scrape(ours)));
    let (theirs, ours) = (theirs?, ours?);
    compare_findings(&theirs, &ours)?;
    let (theirs, ours) = (read(&theirs), read(&ours));
    let is_compared = |name: &&String| !THEIRS_ALONE.iter().any(|prefix| name.starts_with(prefix));
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).filter(is_compared).collect();
    let mut differences = Vec::new();
    for name in &names {
        match (theirs.get(*name), ours.get(*name)) {
            (Some(theirs), Some(ours)) => differences.extend(compare(name, theirs, ours)),
            (None, Some(_)) if *name == OURS_ALONE => {}
            (theirs, _) => {
                let whose = if theirs.is_some() { "upstream" } else { "ours" };
                differences.push(format!("{name}: only {whose}"));
            }
        }
    }
    let document = include_str!("../../../docs/reference.md");
    let is_documented = |name: &str| name.starts_with("process_") || document.contains(&format!("`{name}`"));
    differences
        .extend(names.iter().filter(|name| !is_documented(name)).map(|name| format!("{name} is not documented")));
    println!("{} families compared", names.len());
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}

fn compare(name: &str, theirs: &Family, ours: &Family) -> Option<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, theirs: String, ours: String| {
        if theirs != ours {
            found.push(format!("{name}: {what}: upstream {theirs}, ours {ours}"));
        }
    };
    differ("type", theirs.kind.clone(), ours.kind.clone());
    differ("stability", theirs.stability.clone(), ours.stability.clone());
    // A family without series shows neither labels nor buckets.
    if !theirs.series.is_empty() && !ours.series.is_empty() {
        differ("labels", format!("{:?}", theirs.labels), format!("{:?}", ours.labels));
        differ("buckets", format!("{:?}", theirs.buckets), format!("{:?}", ours.buckets));
    }
    if name.starts_with("scheduler_") && !SERIES_VARY.contains(&name) {
        differ("series", format!("{:?}", theirs.series), format!("{:?}", ours.series));
    }
    (!found.is_empty()).then(|| found.join("\n"))
}

/// Returns the metrics of a scheduler after the scenarios.
fn scrape(ours: bool) -> Result<String, String> {
    let plane = ControlPlane::start()?;
    let [port] = free_ports()?;
    let config = json!({"parallelism": 1, "percentageOfNodesToScore": 100});
    let program = if ours { env!("CARGO_BIN_EXE_kube-scheduler").into() } else { program("kube-scheduler") };
    let mut command = Command::new(program);
    command.arg("--config").arg(plane.write_config(config)?).args(["--bind-address=127.0.0.1", "--secure-port"]);
    command.arg(port.to_string()).arg("--authorization-always-allow-paths=/metrics");
    let mut scheduler: Process = plane.run("scheduler", &mut command)?;
    for name in SCENARIOS {
        let scenario = scenario(name).ok_or_else(|| format!("no scenario {name}"))?;
        on_stage(&plane, &mut scheduler, name, scenario).map_err(|error| format!("{error}; {}", scheduler.tail()))?;
    }
    let client = client_of(&plane, port)?;
    let ask = || {
        let request = http::Request::get("/metrics").body(Vec::new()).map_err(|error| error.to_string())?;
        Ok(plane.runtime.block_on(client.request_text(request)).ok())
    };
    // The second time the first one has been counted.
    wait_for("the metrics", crate::support::cluster::READY, ask)?;
    let text = wait_for("the metrics", crate::support::cluster::READY, ask)?;
    scheduler.terminate()?;
    plane.remove()?;
    Ok(text)
}

fn read(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            let stability = help.strip_prefix('[').and_then(|help| help.split_once(']')).map_or("", |(level, _)| level);
            stability.clone_into(&mut families.entry(name.to_owned()).or_default().stability);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
        } else if let Some((sample, _)) = line.rsplit_once(' ') {
            read_sample(sample, &mut families);
        }
    }
    families
}

fn read_sample(sample: &str, families: &mut BTreeMap<String, Family>) {
    let (full, labels) = sample.split_once('{').unwrap_or((sample, ""));
    let stem = ["_bucket", "_sum", "_count"].iter().find_map(|ending| full.strip_suffix(ending));
    let name = stem.filter(|stem| families.contains_key(*stem)).unwrap_or(full);
    let Some(family) = families.get_mut(name) else { return };
    let mut series = Vec::new();
    for pair in labels.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty()) {
        let (label, value) = pair.split_once("=\"").unwrap_or((pair, ""));
        let value = value.trim_end_matches('"');
        if label == "le" {
            family.buckets.insert(value.to_owned());
        } else {
            family.labels.insert(label.to_owned());
            series.push(format!("{label}={value}"));
        }
    }
    family.series.insert(series.join(","));
}
