//! Whether the ties that the oracle lists are all that upstream leaves to chance when it preempts.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::generate;
use crate::parity::Oracles;

/// Where the cases start, so that they are others than those of the comparison.
const FIRST: u64 = 900_000;

/// How many cases are asked about.
const CASES: u64 = 3000;

/// How often each is.
const RUNS: usize = 5;

/// How often a case with ties is, so that each of them comes up: of two, one stays away with a chance of 1 in 2^39.
const RUNS_OF_TIES: usize = 40;

/// A nomination and its victims.
type Choice = (String, String);

/// Asks upstream five times about each case. Where no tie is listed, all runs have to nominate the same node and to find the
/// same victims; where ties are, the runs choose among these and the node that was nominated first, and between them choose
/// every one of these.
pub(crate) fn five_runs_agree_but_for_ties() -> Result<(), Failed> {
    let mut oracles = Oracles::default();
    let (mut nominations, mut ties, mut wrong) = (0, 0, Vec::new());
    for seed in FIRST..FIRST + CASES {
        let case = generate::case(seed);
        let request = case.request();
        let mut ask = || oracles.with(case.gates).ask(&request);
        let first = ask()?;
        if !pods(&first).iter().any(|pod| pod["postFilter"]["code"] == "Success") {
            continue;
        }
        let has_ties = pods(&first).iter().any(|pod| pod["postFilter"]["ties"].is_array());
        let runs = if has_ties { RUNS_OF_TIES } else { RUNS };
        let mut answers = vec![first];
        for _ in 1..runs {
            answers.push(ask()?);
        }
        for at in 0..pods(&answers[0]).len() {
            let post_filters: Vec<&Value> = answers.iter().map(|answer| &pods(answer)[at]["postFilter"]).collect();
            let first = post_filters[0];
            if first["code"] != "Success" {
                continue;
            }
            nominations += 1;
            ties += usize::from(first["ties"].is_array());
            let chosen: BTreeSet<Choice> = post_filters.into_iter().map(choice).collect();
            if chosen != possible(first) {
                wrong.push(format!("seed {seed}: listed {:?}, chosen {chosen:?}", possible(first)));
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
