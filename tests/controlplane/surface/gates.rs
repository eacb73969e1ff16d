//! The feature gates by upstream's registry.

use std::collections::BTreeMap;
use std::process::Command;

use kube_scheduler::config::{BINARY_MINOR, Gate, OLDEST_MINOR, Stage};
use libtest_mimic::Failed;
use serde::Deserialize;

use crate::support::programs::program;

#[derive(Deserialize)]
struct Theirs {
    stages: Vec<Step>,
    needs: Vec<String>,
}

#[derive(Deserialize)]
struct Step {
    since: String,
    stage: String,
    default: bool,
    locked: bool,
}

/// Same gates, at each version that can be emulated with the same stage, default and lock, and with the same needs.
pub(crate) fn feature_gates_equal_upstreams() -> Result<(), Failed> {
    let output = Command::new(program("gates")).output().map_err(|error| error.to_string())?;
    let theirs: BTreeMap<String, Theirs> = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let mut differences = Vec::new();
    for name in theirs.keys().map(String::as_str).chain(Gate::ALL.iter().map(|gate| gate.name())) {
        let (Some(theirs), Some(ours)) = (theirs.get(name), Gate::find(name)) else {
            differences.push(format!("{name} is not on both sides"));
            continue;
        };
        let needs: Vec<&str> = ours.needs().map(Gate::name).collect();
        if needs != theirs.needs {
            differences.push(format!("{name} needs {:?}, here {needs:?}", theirs.needs));
        }
        for minor in OLDEST_MINOR..=BINARY_MINOR {
            let (stage, default, locked) = at(theirs, minor);
            if (stage, default, locked) != (ours.stage(minor), ours.default_at(minor), ours.locked(minor)) {
                differences.push(format!("{name} at 1.{minor}: upstream {stage:?} {default} {locked}"));
            }
        }
    }
    println!("{} gates", theirs.len());
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}

/// Stage, default and lock at a version.
fn at(gate: &Theirs, minor: u8) -> (Stage, bool, bool) {
    let since = |step: &&Step| {
        let (major, since) = step.since.split_once('.').unwrap_or(("0", "0"));
        major == "0" || since.parse::<u8>().is_ok_and(|since| since <= minor)
    };
    match gate.stages.iter().rfind(since) {
        None => (Stage::PreAlpha, false, false),
        Some(step) => {
            let stage = match step.stage.as_str() {
                "ALPHA" => Stage::Alpha,
                "BETA" => Stage::Beta,
                "GA" => Stage::Ga,
                "DEPRECATED" => Stage::Deprecated,
                _ => Stage::PreAlpha,
            };
            (stage, step.default, step.locked)
        }
    }
}
