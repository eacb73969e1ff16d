//! Writes of the schedulers: the same scenarios under upstream's binary and under ours, each on a control plane of its own. Every
//! write in the audit logs is compared, field by field.

mod scenarios;

use std::process::Command;

use libtest_mimic::Failed;
use serde_json::json;

use crate::support::audit::{self, Written};
use crate::support::cluster::{ControlPlane, SCHEDULER};
use crate::support::programs::program;
use crate::support::schedulers::at_once;
use crate::support::stage::on_stage;

pub(crate) use scenarios::scenario;

/// Runs all scenarios under both schedulers.
pub(crate) fn api_writes_equal_upstreams() -> Result<(), Failed> {
    let theirs = Command::new(program("kube-scheduler"));
    let ours = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    let [theirs, ours] = at_once([theirs, ours].map(|scheduler| move || play(scheduler)));
    let ((theirs, their_plane), (ours, our_plane)) = (theirs?, ours?);
    let differences = audit::compare(&theirs, &ours);
    if !differences.is_empty() {
        let folders = format!("{} and {}", their_plane.folder().display(), our_plane.folder().display());
        return Err(format!("{folders}:\n{}", differences.join("\n")).into());
    }
    println!("{} writes about {} objects are the same", theirs.count(), theirs.objects());
    their_plane.remove()?;
    Ok(our_plane.remove()?)
}

/// What a scheduler wrote in all scenarios.
fn play(mut command: Command) -> Result<(Written, ControlPlane), String> {
    let plane = ControlPlane::start()?;
    // One worker, since several find nodes in an order of their own.
    let config = json!({
        "parallelism": 1,
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "second-scheduler"}],
    });
    command.arg("--secure-port=0").arg("--config").arg(plane.write_config(config)?);
    let mut scheduler = plane.run("scheduler", &mut command)?;
    for &(name, scenario) in scenarios::ALL {
        let played = on_stage(&plane, &mut scheduler, name, scenario);
        played.map_err(|error| format!("{error}; {}", scheduler.tail()))?;
    }
    scheduler.terminate()?;
    let written = Written::read(&plane.audited(SCHEDULER)?)?;
    Ok((written, plane))
}
