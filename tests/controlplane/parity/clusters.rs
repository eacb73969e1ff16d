//! Thousands of random clusters, answered by upstream and by us.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::case::Case;
use super::compare::{Mismatch, compare};
use super::coverage::Coverage;
use super::oracle::Oracle;
use super::ours::Cluster;
use super::reach::{UNREACHABLE, Unreachable};
use super::{generate, ours, shrink};
use crate::support::cluster::{Process, wait_for};
use crate::support::programs;

/// How many cases are compared unless `KS_CASES` says otherwise.
const CASES: u64 = 3000;

/// Failures that are shrunk and reported; after these the comparison ends.
const REPORTED: usize = 5;

/// How many cases are written to files and read by both programs.
const FILES: u64 = 40;

/// How long a program may take for one of them.
const READ: Duration = Duration::from_mins(1);

/// An oracle for each set of feature gates.
#[derive(Default)]
pub(crate) struct Oracles(BTreeMap<&'static str, Oracle>);

impl Oracles {
    /// The oracle with these gates.
    pub(crate) fn with(&mut self, gates: &'static str) -> &mut Oracle {
        self.0.entry(gates).or_insert_with(|| Oracle::start(gates))
    }
}

/// A number from the environment, if there is one.
pub(crate) fn from_environment(name: &str) -> Result<Option<u64>, Failed> {
    match std::env::var(name) {
        Ok(text) => text.parse().map(Some).map_err(|error| format!("{name}={text}: {error}").into()),
        Err(_) => Ok(None),
    }
}

/// Compares `KS_CASES` cases from seed `KS_SEED` on, and checks that between them they reach what there is to reach. What is
/// rare may take up to twice as many.
pub(crate) fn random_clusters() -> Result<(), Failed> {
    let cases = from_environment("KS_CASES")?.unwrap_or(CASES);
    let first = from_environment("KS_SEED")?.unwrap_or(0);
    // A handful of cases says nothing about what is never reached.
    let (enough, most) = (first + cases, if cases >= CASES { first + 2 * cases } else { first + cases });
    let mut oracles = Oracles::default();
    let mut coverage = Coverage::default();
    let mut failures: Vec<String> = Vec::new();
    for seed in first..most {
        if seed >= enough && coverage.missing().is_empty() {
            break;
        }
        let case = generate::case(seed);
        let theirs = oracles.with(case.gates).ask(&case.request()).map_err(|error| format!("seed {seed}: {error}"))?;
        match ours::answer(&case).map(|ours| compare(&case, &theirs, &ours)) {
            Ok(mismatches) if mismatches.is_empty() => coverage.add(&case, &theirs),
            Ok(mismatches) => failures.push(report(&case, &mismatches, &mut oracles)),
            Err(error) => failures.push(format!("seed {seed}: we refuse the case: {error}")),
        }
        if failures.len() >= REPORTED {
            break;
        }
        if (seed + 1) % 1000 == 0 {
            eprintln!("seed {seed}: {} comparisons so far", coverage.pods());
        }
    }
    if !failures.is_empty() {
        return Err(failures.join("\n\n").into());
    }
    println!("{coverage}");
    let missing = if cases >= CASES { coverage.missing() } else { Vec::new() };
    if missing.is_empty() { Ok(()) } else { Err(format!("never reached:\n  {}", missing.join("\n  ")).into()) }
}

/// The files that failing cases are written to are cluster files: the oracle reads them, and so does the simulator.
pub(crate) fn cases_are_cluster_files() -> Result<(), Failed> {
    let folder = programs::folder().join("cases");
    for seed in 0..FILES {
        let case = generate::case(seed);
        // The API server, unlike the scheduler, refuses such a pod.
        if Value::from(case.objects.clone()).to_string().contains(generate::affinity::MALFORMED) {
            continue;
        }
        let cluster = case.write(&folder)?;
        let mut commands =
            [Command::new(programs::program("oracle")), Command::new(env!("CARGO_BIN_EXE_kube-scheduler"))];
        commands[0].arg("-f").arg(&cluster);
        commands[1].arg("simulate").arg(&cluster);
        for mut command in commands {
            if !case.config.is_null() {
                command.arg("--config").arg(cluster.with_file_name(format!("case-{seed}-config.yaml")));
            }
            if !case.gates.is_empty() {
                command.args(["--feature-gates", case.gates]);
            }
            let mut process = Process::start(&format!("case-{seed}"), &folder, &mut command)?;
            let status = wait_for(&format!("{command:?}"), READ, || Ok(process.ended()))?;
            // 2 says that pods are pending, which most cases have.
            if !matches!(status.code(), Some(0 | 2)) {
                return Err(format!("{command:?} ended with {status}; {}", process.tail()).into());
            }
        }
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Asks plugins alone what no pod that waits can make them say.
pub(crate) fn unreachable_reasons() -> Result<(), Failed> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {}});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "p", "uid": "p"},
        "spec": {"nodeName": "n2", "schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]},
    });
    let case = Case { seed: 0, gates: "", objects: vec![node], config: Value::Null, events: Vec::new() };
    let cluster = Cluster::new(&case)?;
    let mut oracle = Oracle::start(case.gates);
    for Unreachable { plugin, what, why, direct } in UNREACHABLE {
        println!("{plugin} never returns {what:?}: {why}{}", if *direct { "; called directly" } else { "" });
        if !direct {
            continue;
        }
        let mut request = case.request();
        request["direct"] = json!([{"plugin": plugin, "point": "Filter", "pod": pod, "node": "n1"}]);
        let theirs = oracle.ask(&request)?;
        let ours = cluster.filter(plugin, &pod, "n1")?;
        let (theirs, said) = (&theirs["direct"][0], &ours["reasons"][0]);
        if said != what || ours["reasons"] != theirs["status"]["reasons"] || ours["code"] != theirs["status"]["code"] {
            return Err(format!("{plugin}: upstream says {theirs}, we say {ours}").into());
        }
    }
    Ok(())
}

/// Shrinks a case that fails and says all about it.
fn report(case: &Case, mismatches: &[Mismatch], oracles: &mut Oracles) -> String {
    let kind = mismatches[0].kind();
    let oracle = oracles.with(case.gates);
    let mut mismatches_of = |case: &Case| {
        let theirs = oracle.ask(&case.request()).ok()?;
        Some(compare(case, &theirs, &ours::answer(case).ok()?))
    };
    let small = shrink::shrink(case, |case| {
        mismatches_of(case).is_some_and(|found| found.iter().any(|one| one.kind() == kind))
    });
    let still = mismatches_of(&small).unwrap_or_default();
    let mut text = format!("seed {}", case.seed);
    if !case.gates.is_empty() {
        let _ = write!(text, " (--feature-gates {})", case.gates);
    }
    match small.write(&programs::folder().join("failures")) {
        Ok(file) => {
            let _ = write!(text, ", shrunk to {}", file.display());
        }
        Err(error) => {
            let _ = write!(text, ", which could not be written: {error}");
        }
    }
    for mismatch in if still.is_empty() { mismatches } else { &still }.iter().take(8) {
        let _ = write!(text, "\n{mismatch}");
    }
    text
}
