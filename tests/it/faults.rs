//! Nothing is lost, whatever goes wrong. A seeded script deletes, changes and makes pods and nodes at every step of the
//! cycle, breaks and delays watches, answers requests with errors and fails as a plugin; after every event each pod has to be
//! in exactly one place, and in the end each that fits is bound exactly once.
//!
//! ```sh
//! KS_FAULT_SEEDS=1000 cargo test --test it faults::   # how many
//! KS_FAULT_SEED=17 cargo test --test it faults::      # one, with everything that happened
//! ```

mod cluster;
mod coverage;
mod deaths;
mod probe;
mod script;
mod world;

use std::panic::AssertUnwindSafe;

use coverage::{Act, Coverage, Step};
use world::World;

/// Seeds of a usual run: enough to reach every fault once, in a few seconds.
const SEEDS: u64 = 60;

/// From how many seeds on a run has to reach every fault at every step.
const WHOLE: u64 = 1_000;

/// Lives one life: what was reached and what happened, or how it went wrong.
fn live(seed: u64) -> Result<(Coverage, Vec<String>), String> {
    let mut world = World::new(seed);
    let script = world.script.clone();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| world.live()));
    let (trace, coverage) = script.trace();
    let wrong = match outcome {
        Ok(Ok(())) => return Ok((coverage, trace)),
        Ok(Err(wrong)) => wrong.join("\n  "),
        Err(_) => "a panic, see above".to_owned(),
    };
    let last = trace[trace.len().saturating_sub(60)..].join("\n");
    let again = format!("KS_FAULT_SEED={seed} cargo test --test it faults::");
    Err(format!("{last}\nseed {seed} at {:?}:\n  {wrong}\nagain: {again}", world.now()))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number: {text}")))
}

#[test]
fn injected_faults_lose_no_pod() {
    if let Some(seed) = number("KS_FAULT_SEED") {
        let (_, trace) = live(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
        println!("{}", trace.join("\n"));
        return;
    }
    let seeds = number("KS_FAULT_SEEDS").unwrap_or(SEEDS);
    let (mut reached, mut failed) = (Coverage::default(), Vec::new());
    for seed in 0..seeds {
        match live(seed) {
            Ok((coverage, _)) => reached.add(&coverage),
            Err(wrong) => {
                eprintln!("{wrong}\n");
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "{} of {seeds} seeds went wrong: {failed:?}", failed.len());
    let wanted = if seeds >= WHOLE { Coverage::everything() } else { Coverage::sample() };
    let missing = reached.missing(&wanted);
    let (total, kinds) = (reached.total(), wanted.len());
    println!("{seeds} seeds passed: {total} faults, {} of {kinds} kinds reached", kinds - missing.len());
    assert!(seeds < SEEDS || missing.is_empty(), "never reached in {seeds} seeds: {missing:#?}");
}

#[test]
fn same_seed_gives_the_same_trace() {
    let lives = [(); 2].map(|()| live(3).expect("a life that goes well").1);
    assert_eq!(lives[0], lives[1]);
}

/// A pod that finishes during its cycle is bound by the server, and no informer ever speaks of it again.
#[test]
fn reproduce_pod_finished_in_its_cycle_stays_assumed() {
    World::plain().survive(&[(Step::PreFilter, Act::FinishPod)]);
}
