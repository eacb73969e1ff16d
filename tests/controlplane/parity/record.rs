//! Records what upstream says of a few of the random cases, chosen and made smaller so that between them they reach every
//! outcome that all of them reach. `tests/parity` compares with the records where there is no Go.
//!
//! What upstream leaves to the order of a map is settled before it is written down, so that recording twice gives the same
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use libtest_mimic::Failed;
use serde_json::Value;

use super::case::Case;
use super::clusters::{Oracles, from_environment};
use super::compare::compare;
use super::corpus::{self, Recorded};
use super::coverage::Coverage;
use super::generate;
use super::shrink;

/// How many seeds the cases are chosen from unless `KS_CASES` says otherwise.
const SEEDS: u64 = 10_000;

/// How many cases are to reach each outcome, if so many do.
const TIMES: usize = 3;

/// How often upstream is asked about a case before its answer counts.
const RUNS: usize = 5;

/// Outcomes by number, and what each seed reaches.
#[derive(Default)]
struct Reached {
    numbers: BTreeMap<String, usize>,
    by_seed: BTreeMap<u64, Vec<usize>>,
}

impl Reached {
    fn add(&mut self, seed: u64, coverage: &Coverage) {
        let numbers = coverage.outcomes().map(|outcome| {
            let next = self.numbers.len();
            *self.numbers.entry(outcome.to_owned()).or_insert(next)
        });
        self.by_seed.insert(seed, numbers.collect());
    }

    /// Seeds with the outcomes that each is there for: always the one next that reaches most of what is still wanted.
    fn choose(&self) -> Vec<(u64, BTreeSet<usize>)> {
        let mut wanted = vec![TIMES; self.numbers.len()];
        let mut left = self.by_seed.clone();
        let mut chosen = Vec::new();
        loop {
            let gain = |numbers: &Vec<usize>| numbers.iter().filter(|number| wanted[**number] > 0).count();
            let best = left.iter().max_by_key(|(seed, numbers)| (gain(numbers), std::cmp::Reverse(**seed)));
            let Some((seed, numbers)) = best.filter(|(_, numbers)| gain(numbers) > 0) else { return chosen };
            let (seed, numbers): (u64, BTreeSet<usize>) =
                (*seed, numbers.iter().copied().filter(|number| wanted[*number] > 0).collect());
            left.remove(&seed);
            for number in &numbers {
                wanted[*number] -= 1;
            }
            chosen.push((seed, numbers));
        }
    }

    fn of(&self, coverage: &Coverage) -> BTreeSet<usize> {
        coverage.outcomes().filter_map(|outcome| self.numbers.get(outcome).copied()).collect()
    }
}

/// With `KS_RECORD` set, records anew. Otherwise checks that upstream still says what was recorded.
pub(crate) fn recorded_answers_equal_upstreams() -> Result<(), Failed> {
    let mut oracles = Oracles::default();
    if from_environment("KS_RECORD")?.is_some() {
        return record(&mut oracles);
    }
    let mut wrong = Vec::new();
    for recorded in corpus::all()? {
        let case = &recorded.case;
        let now = Recorded { case: case.clone(), answer: agreed(case, &mut oracles)? };
        // Read back, since what is empty is left out.
        if corpus::parse(&corpus::render(&now))? != recorded {
            let mismatches = compare(case, &recorded.answer, &now.answer);
            let mismatches: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
            wrong.push(format!("case {}: recorded as upstream, now as ours\n{}", case.seed, mismatches.join("\n")));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n").into()) }
}

fn record(oracles: &mut Oracles) -> Result<(), Failed> {
    let seeds = from_environment("KS_CASES")?.unwrap_or(SEEDS);
    let mut reached = Reached::default();
    for seed in 0..seeds {
        let case = generate::case(seed);
        let answer = ask(&case, oracles)?;
        reached.add(seed, &Coverage::of(&case, &answer));
    }
    let chosen = reached.choose();
    eprintln!("{} outcomes, {} cases", reached.numbers.len(), chosen.len());
    let mut files = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (seed, outcomes) in chosen {
        let keeps = |case: &Case, oracles: &mut Oracles| {
            ask(case, oracles).is_ok_and(|answer| reached.of(&Coverage::of(case, &answer)).is_superset(&outcomes))
        };
        let case = shrink::drop_objects(&generate::case(seed), |case| keeps(case, oracles));
        let answer = agreed(&case, oracles)?;
        for outcome in Coverage::of(&case, &answer).outcomes() {
            *counts.entry(outcome.to_owned()).or_default() += 1;
        }
        files.insert(seed, corpus::render(&Recorded { case, answer }));
    }
    if corpus::folder().exists() {
        std::fs::remove_dir_all(corpus::folder())?;
    }
    std::fs::create_dir_all(corpus::folder())?;
    for (seed, text) in &files {
        std::fs::write(corpus::file(*seed), text)?;
    }
    let mut list = String::new();
    for (outcome, count) in &counts {
        let _ = writeln!(list, "{count}\t{outcome}");
    }
    std::fs::write(corpus::outcomes_file(), list)?;
    let size: usize = files.values().map(String::len).sum();
    eprintln!("recorded {} cases, {size} bytes", files.len());
    Ok(())
}

/// What upstream says, once what is up to chance is settled.
fn ask(case: &Case, oracles: &mut Oracles) -> Result<Value, String> {
    let answer = oracles.with(case.gates).ask(&case.request());
    let mut answer = answer.map_err(|error| format!("case {}: {error}", case.seed))?;
    settle(&mut answer);
    Ok(answer)
}

/// What several runs of upstream agree on; an error if they differ.
fn agreed(case: &Case, oracles: &mut Oracles) -> Result<Value, String> {
    let first = ask(case, oracles)?;
    for _ in 1..RUNS {
        let again = ask(case, oracles)?;
        if again != first {
            return Err(format!("case {}: upstream says {first}, and again {again}", case.seed));
        }
    }
    Ok(first)
}

/// Of what upstream leaves to chance, takes the first: of equal nodes and candidates by name, of reasons by letter.
fn settle(answer: &mut Value) {
    for pod in answer["pods"].as_array_mut().into_iter().flatten() {
        for node in pod["nodes"].as_array_mut().into_iter().flatten() {
            if let Some(reasons) = node["reasons"].as_array_mut() {
                reasons.sort_by_key(ToString::to_string);
            }
        }
        if pod["preFilter"]["nodes"].is_array() {
            settle_host(pod);
        }
        if pod["postFilter"]["ties"].is_array() {
            settle_nomination(&mut pod["postFilter"]);
        }
    }
    if let Some(fields) = answer.as_object_mut() {
        fields.retain(|name, _| matches!(name.as_str(), "pods" | "events" | "registered"));
    }
}

/// Nodes that `PreFilter` names are tried in the order of a map.
fn settle_host(pod: &mut Value) {
    let nodes = pod["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(host) = nodes.iter().find(|node| node["node"] == pod["host"]) else { return };
    let equals = nodes.iter().filter(|node| node["code"] == "Success" && node["total"] == host["total"]);
    let first = equals.min_by_key(|node| node["node"].to_string()).map(|node| node["node"].clone());
    let scores = host["total"].is_number();
    pod["host"] = first.unwrap_or_default();
    if !scores {
        // The search ends after some or other of them.
        pod.as_object_mut().map(|pod| pod.remove("evaluatedNodes"));
    }
}

fn settle_nomination(answer: &mut Value) {
    let mut equals: Vec<Value> = answer["ties"].as_array().cloned().unwrap_or_default();
    equals.push(answer["nominated"].clone());
    equals.sort_by_key(ToString::to_string);
    let first = equals.remove(0);
    let candidates = answer["candidates"].as_array().map_or(&[][..], Vec::as_slice);
    let victims = candidates.iter().find(|candidate| candidate["node"] == first).map(|one| one["victims"].clone());
    answer["victims"] = victims.unwrap_or_default();
    answer["nominated"] = first;
    answer["ties"] = equals.into();
}
