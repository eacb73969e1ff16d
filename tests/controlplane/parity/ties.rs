//! Whether the ties that the oracle lists are all that upstream leaves to chance when it preempts.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use serde_json::Value;

use super::clusters::Oracles;
use super::generate;

/// Where the cases start, so that they are others than those of the comparison.
const FIRST: u64 = 900_000;

/// How many cases are looked through for crowded clusters.
const CASES: u64 = 8000;

/// How often each is.
const RUNS: usize = 5;

/// How often a case with ties is at most, until each of them has come up: of two, the rarer one does once in eight times,
/// so that it stays away once in 10^11 times.
const RUNS_OF_TIES: usize = 200;

/// A nomination and its victims.
type Choice = (String, String);

/// Asks upstream five times about each case. Where no tie is listed, all runs have to nominate the same node and to find the
/// same victims; where ties are, the runs choose among these and the node that was nominated first, and go on until every
/// one of these was chosen.
pub(crate) fn five_upstream_runs_differ_only_in_ties() -> Result<(), Failed> {
    let mut oracles = Oracles::default();
    let (mut nominations, mut ties, mut wrong) = (0, 0, Vec::new());
    for seed in FIRST..FIRST + CASES {
        let case = generate::case(seed);
        if !generate::is_crowded(&case) {
            continue;
        }
        let request = case.request();
        let mut ask = || oracles.with(case.gates).ask(&request);
        let first = ask()?;
        if !pods(&first).iter().any(|pod| pod["postFilter"]["code"] == "Success") {
            continue;
        }
        let mut answers = vec![first];
        for run in 1..RUNS_OF_TIES {
            if run >= RUNS && nominations_of(&answers).iter().all(|(possible, chosen)| possible.is_subset(chosen)) {
                break;
            }
            answers.push(ask()?);
        }
        for (possible, chosen) in nominations_of(&answers) {
            nominations += 1;
            ties += usize::from(possible.len() > 1);
            if chosen != possible {
                wrong.push(format!("seed {seed}: listed {possible:?}, chosen {chosen:?}"));
            }
        }
    }
    println!("{nominations} nominations, {ties} of them with ties");
    if ties == 0 {
        return Err("no case has a tie".into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn pods(answer: &Value) -> &[Value] {
    answer["pods"].as_array().map_or(&[], Vec::as_slice)
}

/// Of each pod that preempts, what upstream may choose by its first answer, and what it has chosen.
fn nominations_of(answers: &[Value]) -> Vec<(BTreeSet<Choice>, BTreeSet<Choice>)> {
    let mut found = Vec::new();
    for (at, pod) in pods(&answers[0]).iter().enumerate() {
        if pod["postFilter"]["code"] == "Success" {
            let chosen = answers.iter().map(|answer| choice(&pods(answer)[at]["postFilter"]));
            found.push((possible(&pod["postFilter"]), chosen.collect()));
        }
    }
    found
}

fn choice(answer: &Value) -> Choice {
    (answer["nominated"].to_string(), answer["victims"].to_string())
}

/// What upstream may choose, by its first answer.
fn possible(answer: &Value) -> BTreeSet<Choice> {
    let candidates = answer["candidates"].as_array().map_or(&[][..], Vec::as_slice);
    let ties = answer["ties"].as_array().map_or(&[][..], Vec::as_slice);
    let is_possible =
        |candidate: &&Value| candidate["node"] == answer["nominated"] || ties.contains(&candidate["node"]);
    let choices = candidates.iter().filter(is_possible);
    choices.map(|candidate| (candidate["node"].to_string(), candidate["victims"].to_string())).collect()
}
