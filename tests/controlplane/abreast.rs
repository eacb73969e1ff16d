//! Random sequences of changes under both schedulers, each change made when the effects of the one before have settled: what
//! is written about every pod, and every event, is the same.
//!
//! Upstream leaves some choices to chance. So it plays each sequence `KS_RUNS` times, and only those are compared on which
//! all its runs agree.

mod sequence;

use std::time::Duration;

use libtest_mimic::Failed;

use crate::audit::{self, Written};
use crate::cluster::{ControlPlane, SCHEDULER, wait_for};
use crate::parity::from_environment;
use crate::schedulers::{Ours, Scheduler, Upstream};
use crate::stage::{Stage, on_stage};
use sequence::Sequence;

/// Sequences that are played unless `KS_CASES` says otherwise.
const SEQUENCES: u64 = 4;

/// How often upstream plays them unless `KS_RUNS` says otherwise.
const RUNS: u64 = 2;

/// How long a scheduler may take until nothing happens any more: attempts wait for up to ten seconds, and for each other.
const SETTLED: Duration = Duration::from_mins(2);

/// Looks at a scheduler's metrics that have to be alike for it to count as settled.
const QUIET: usize = 12;

pub(crate) fn both_write_the_same_in_random_sequences() -> Result<(), Failed> {
    let count = from_environment("KS_CASES")?.unwrap_or(SEQUENCES);
    let first = from_environment("KS_SEED")?.unwrap_or(0);
    let runs = from_environment("KS_RUNS")?.unwrap_or(RUNS);
    let sequences: Vec<Sequence> = (first..first + count).map(Sequence::new).collect();
    let plane = ControlPlane::start()?;
    let mut theirs = Vec::new();
    for run in 0..runs {
        theirs.push(play(&plane, Upstream::start(&plane)?, &sequences, run)?);
    }
    plane.remove()?;
    let plane = ControlPlane::start()?;
    let ours = play(&plane, Ours::start(&plane)?, &sequences, 0)?;
    plane.remove()?;
    let mut differences = Vec::new();
    let mut agreed = 0;
    let mut writes = 0;
    for (at, sequence) in sequences.iter().enumerate() {
        if theirs.iter().any(|run| run[at] != theirs[0][at]) {
            continue;
        }
        agreed += 1;
        writes += ours[at].count();
        let found = audit::compare(&theirs[0][at], &ours[at]);
        if !found.is_empty() {
            differences.push(format!("seed {}:\n{sequence}\n{}", sequence.seed, found.join("\n")));
        }
    }
    println!("{agreed} of {count} sequences on which {runs} runs of upstream agree; {writes} writes in them");
    if agreed == 0 {
        return Err("upstream agrees with itself on no sequence".into());
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n\n").into()) }
}

/// What a scheduler wrote in each sequence.
fn play<S: Scheduler>(
    plane: &ControlPlane,
    mut scheduler: S,
    sequences: &[Sequence],
    run: u64,
) -> Result<Vec<Written>, String> {
    let name = |sequence: &Sequence| format!("sequence-{}-{run}", sequence.seed);
    for sequence in sequences {
        on_stage(plane, &mut scheduler, &name(sequence), |stage| {
            sequence::priority_classes(stage)?;
            for step in &sequence.steps {
                step.take(stage)?;
                settle(stage)?;
                while stage.end_pods()? {
                    settle(stage)?;
                }
            }
            Ok(())
        })?;
    }
    scheduler.stop()?;
    let audited = plane.audited(SCHEDULER)?;
    sequences
        .iter()
        .map(|sequence| Written::read_namespace(&audited, &name(sequence), &format!("sequence-{}", sequence.seed)))
        .collect()
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
