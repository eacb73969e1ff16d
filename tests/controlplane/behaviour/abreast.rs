//! Sequences of changes under both schedulers, each change made when the effects of the one before have settled: what is
//! written about every pod, and every event, is the same. Random sequences, and recorded ones of clusters in which users,
//! upstream's controllers and kubelets were at work.
//!
//! Upstream leaves some choices to chance. So it plays each sequence `KS_RUNS` times, and only those are compared on which
//! all its runs agree. Where ours differs from a few runs, upstream plays more of them before it counts: of two
//! nodes that are alike it takes either, and three runs may take the same.

mod change;
mod record;
mod recorded;
mod sequence;
mod stories;

use std::time::Duration;

use libtest_mimic::Failed;

use crate::parity::clusters::from_environment;
use crate::support::audit::{self, Written};
use crate::support::cluster::{ControlPlane, SCHEDULER, wait_for};
use crate::support::schedulers::{Ours, Scheduler, Upstream, all_at_once};
use crate::support::stage::{Stage, on_stage};
use crate::surface::Whose;
use sequence::Sequence;

/// Sequences that are played unless `KS_CASES` says otherwise.
const SEQUENCES: u64 = 4;

/// How often upstream plays them unless `KS_RUNS` says otherwise.
const RUNS: usize = 2;

/// How often it has to have played a sequence alike for a difference to count.
const CERTAIN: usize = 8;

/// Control planes that run at the same time. With more of them what one waits for comes later than it looks.
const PLANES: usize = 3;

/// How long a scheduler may take until nothing happens any more: attempts wait for up to ten seconds, and for each other.
const SETTLED: Duration = Duration::from_mins(2);

/// Looks at a scheduler's metrics that have to be alike for it to count as settled.
const QUIET: usize = 12;

type Step = Box<dyn Fn(&Stage<'_>) -> Result<(), String> + Sync>;

/// A sequence as it is played.
struct Script {
    name: String,
    changes: Vec<Step>,
    /// Whether kubelets are played: what has come starts, and what is told to end does so, before the next change.
    has_kubelets: bool,
    /// What is shown of it where it plays differently.
    shown: String,
}

pub(crate) fn both_write_the_same_in_random_sequences() -> Result<(), Failed> {
    let count = from_environment("KS_CASES")?.unwrap_or(SEQUENCES);
    let first = from_environment("KS_SEED")?.unwrap_or(0);
    let script = |seed| {
        let sequence = Sequence::new(seed);
        let shown = sequence.to_string();
        let changes = sequence.steps.into_iter().map(|step| Box::new(move |stage: &Stage<'_>| step.take(stage)) as _);
        Script { name: format!("sequence-{seed}"), changes: changes.collect(), has_kubelets: true, shown }
    };
    compare(&(first..first + count).map(script).collect::<Vec<_>>())
}

/// With `KS_RECORD` the sequences are recorded anew before.
pub(crate) fn both_write_the_same_in_recorded_sequences() -> Result<(), Failed> {
    if from_environment("KS_RECORD")?.is_some() {
        recorded::record()?;
    }
    let script = |sequence: recorded::Recorded| {
        let make = |change: change::Change| Box::new(move |stage: &Stage<'_>| change.make(stage)) as _;
        let shown = format!("  see abreast/recorded/{}.jsonl", sequence.name);
        Script {
            changes: sequence.changes.into_iter().map(make).collect(),
            name: sequence.name,
            has_kubelets: false,
            shown,
        }
    };
    compare(&recorded::all()?.into_iter().map(script).collect::<Vec<_>>())
}

/// Plays all under both, and compares those on which upstream's runs agree.
fn compare(scripts: &[Script]) -> Result<(), Failed> {
    let runs = from_environment("KS_RUNS")?.map_or(Ok(RUNS), usize::try_from).map_err(|error| error.to_string())?;
    let all: Vec<&Script> = scripts.iter().collect();
    let mut theirs = play_all(&all, &[vec![Whose::Ours], vec![Whose::Upstreams; runs]].concat())?;
    let ours = theirs.remove(0);
    let mut different = Vec::new();
    let mut agreed = 0;
    let mut writes = 0;
    for (at, script) in scripts.iter().enumerate() {
        if theirs.iter().any(|run| run[at] != theirs[0][at]) {
            println!("{}: upstream's runs differ", script.name);
            continue;
        }
        agreed += 1;
        writes += ours[at].count();
        let found = audit::compare(&theirs[0][at], &ours[at]);
        if !found.is_empty() {
            let text = format!("{}:\n{}\n{}", script.name, script.shown, found.join("\n"));
            different.push((script, &theirs[0][at], text));
        }
    }
    let again: Vec<&Script> = different.iter().map(|(script, ..)| *script).collect();
    let more = if again.is_empty() { 0 } else { CERTAIN.saturating_sub(runs) };
    let more = play_all(&again, &vec![Whose::Upstreams; more])?;
    let mut differences = Vec::new();
    for (at, (script, theirs, text)) in different.into_iter().enumerate() {
        if more.iter().any(|run| run[at] != *theirs) {
            println!("{}: upstream's runs differ, and so does ours", script.name);
            agreed -= 1;
        } else {
            differences.push(text);
        }
    }
    println!("{agreed} of {} sequences on which {runs} runs of upstream agree; {writes} writes in them", scripts.len());
    if agreed == 0 {
        return Err("upstream agrees with itself on no sequence".into());
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n\n").into()) }
}

/// What a scheduler wrote in each sequence, run by run.
fn play_all(scripts: &[&Script], runs: &[Whose]) -> Result<Vec<Vec<Written>>, String> {
    let mut played = Vec::new();
    for runs in runs.chunks(PLANES) {
        let written = all_at_once(runs.iter().map(|whose| {
            move || {
                let plane = ControlPlane::start()?;
                let written = match whose {
                    Whose::Ours => play(&plane, Ours::start(&plane)?, scripts)?,
                    Whose::Upstreams => play(&plane, Upstream::start(&plane)?, scripts)?,
                };
                plane.remove()?;
                Ok(written)
            }
        }));
        played.extend(written.into_iter().collect::<Result<Vec<_>, String>>()?);
    }
    Ok(played)
}

/// What a scheduler wrote in each sequence.
fn play<S: Scheduler>(plane: &ControlPlane, mut scheduler: S, scripts: &[&Script]) -> Result<Vec<Written>, String> {
    for script in scripts {
        on_stage(plane, &mut scheduler, &script.name, |stage| {
            sequence::priority_classes(stage)?;
            for (at, change) in script.changes.iter().enumerate() {
                change(stage).and_then(|()| settle(stage)).map_err(|error| format!("change {}: {error}", at + 1))?;
                if script.has_kubelets {
                    stage.start_pods()?;
                    while stage.end_pod()? {
                        settle(stage)?;
                        stage.start_pods()?;
                    }
                }
            }
            Ok(())
        })?;
    }
    scheduler.stop()?;
    let audited = plane.audited(SCHEDULER)?;
    scripts.iter().map(|script| Written::read_namespace(&audited, &script.name, &script.name)).collect()
}

/// Waits until the scheduler has nothing to try, and nothing has happened for a while: no event was handled, no attempt made.
fn settle(stage: &Stage<'_>) -> Result<(), String> {
    let mut last = None;
    let mut quiet = 0;
    wait_for("the scheduler to settle", SETTLED, || {
        let queued = ["scheduler_pending_pods{queue=\"active\"}", "scheduler_pending_pods{queue=\"backoff\"}"];
        let happened = ["scheduler_event_handling_duration_seconds_count", "scheduler_schedule_attempts_total"];
        let seen = stage.sum(&happened)?;
        quiet = if stage.sum(&queued)? == 0 && last == Some(seen) { quiet + 1 } else { 0 };
        last = Some(seen);
        Ok((quiet >= QUIET).then_some(()))
    })
}
