//! Requeueing of waiting pods. Each kind of change that can help a pod wakes it at once, and a change that cannot help wakes no pod.
//! The same changes happen under upstream's scheduler and under ours. By their metrics both move the same pods for the same events,
//! and try them equally often.

mod trials;

use std::collections::BTreeMap;
use std::time::Duration;

use libtest_mimic::Failed;

use crate::support::cluster::ControlPlane;
use crate::support::schedulers::{Ours, Scheduler, Upstream, at_once};
use crate::support::stage::on_stage;

/// Trials that upstream loses now and then: it tells pods of a node's end before its cache has lost the node, and a pod that is
/// tried in between waits for the flush. Then there is nothing to compare.
const RACES: [&str; 1] = ["domain-removed"];

/// What each trial came to, by its name.
type Outcomes = BTreeMap<&'static str, Outcome>;

/// What a scheduler did in a trial.
struct Outcome {
    /// How often pods were moved to a queue from which they are tried, by event, and how many attempts failed.
    counts: BTreeMap<String, u64>,
    /// From the change that helps to the binding.
    delay: Duration,
}

/// Plays all trials under both schedulers.
pub(crate) fn wakes_pods_as_upstream_does() -> Result<(), Failed> {
    let [theirs, ours]: [Box<dyn FnOnce() -> _ + Send>; 2] =
        [Box::new(|| play(Upstream::start, &RACES)), Box::new(|| play(Ours::start, &[]))];
    let [theirs, ours] = at_once([theirs, ours]);
    let (theirs, ours) = (theirs?, ours?);
    let mut differences = Vec::new();
    println!("{:24} {:>12} {:>12}", "bound after", "upstream", "ours");
    for (name, ours) in &ours {
        let Some(theirs) = theirs.get(name) else {
            println!("{name:24} {:>12} {:>9} ms", "too late", ours.delay.as_millis());
            continue;
        };
        println!("{name:24} {:>9} ms {:>9} ms", theirs.delay.as_millis(), ours.delay.as_millis());
        if theirs.counts != ours.counts {
            differences.push(format!("{name}:\n  upstream {:?}\n  ours     {:?}", theirs.counts, ours.counts));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}

fn play<S: Scheduler>(
    start: impl FnOnce(&ControlPlane) -> Result<S, String>,
    races: &[&str],
) -> Result<Outcomes, String> {
    let plane = ControlPlane::start()?;
    let mut scheduler = start(&plane)?;
    let mut played = BTreeMap::new();
    for trial in trials::all() {
        let before = counts(&scheduler.metrics(&plane)?);
        let delay = on_stage(&plane, &mut scheduler, trial.name, |stage| {
            if races.contains(&trial.name) { trial.try_to_play(stage) } else { trial.play(stage).map(Some) }
        })?;
        let Some(delay) = delay else { continue };
        let mut counts = counts(&scheduler.metrics(&plane)?);
        for (what, count) in before {
            if let Some(now) = counts.get_mut(&what) {
                *now -= count;
            }
        }
        counts.retain(|_, count| *count > 0);
        played.insert(trial.name, Outcome { counts, delay });
    }
    scheduler.stop()?;
    plane.remove()?;
    Ok(played)
}

/// The counts that are compared. Whether a pod is moved to activeQ or to backoffQ, and how it leaves that, is a matter of
/// time.
fn counts(metrics: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in metrics.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let label = |name: &str| {
            let (_, rest) = series.split_once(&format!("{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let what = if series.starts_with("scheduler_queue_incoming_pods_total{") {
            match (label("event"), label("queue")) {
                (Some("BackoffComplete" | "PopFromBackoffQ") | None, _) => continue,
                (Some(event), Some("unschedulable" | "gated")) => format!("{event} leaves it waiting"),
                (Some(event), _) => format!("{event} moves it"),
            }
        } else if series.starts_with("scheduler_schedule_attempts_total{") && label("result") != Some("scheduled") {
            format!("failed attempts: {}", label("result").unwrap_or_default())
        } else {
            continue;
        };
        let value: f64 = value.parse().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let value = value as u64;
        *counts.entry(what).or_default() += value;
    }
    counts
}
