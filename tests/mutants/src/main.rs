//! Mutation testing of the plugins and of the preemption evaluator.
//!
//! All mutants are compiled at once, each behind a switch ([`schemata`]), because building the package takes a minute and
//! running the tests that matter takes milliseconds. A mutant outside the sample costs only the time to compile it.

mod compile;
mod find;
mod hash;
mod known;
mod log;
mod mutant;
mod operators;
mod report;
mod run;
mod schemata;
mod scope;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use compile::{Package, Programs};
use log::Log;
use mutant::Mutant;
use run::{Outcome, Tests};
use scope::AREAS;
use tree::Tree;

/// Test targets beside the unit tests, the quickest first.
const TARGETS: &[&str] = &["parity", "it"];

/// Modules with the tests of the table of plugins, which are run for each area.
const TABLE: &[&str] = &["plugins::tests"];

/// Time limit of tests with a mutant, as a multiple of their time without a mutant.
const PATIENCE: u32 = 8;
/// Minimum of the time limit, because the machine may be busy with other work.
const LEAST_LIMIT: Duration = Duration::from_secs(20);

/// Time limit of the tests without a mutant.
const UNTIL_GIVEN_UP: Duration = Duration::from_mins(10);

/// Flips one operator or constant at a time, in the plugins and in the preemption evaluator, and says which of these
/// mutants no test notices.
#[derive(Parser)]
struct Args {
    /// Mutants a plugin; the evaluator gets three times as many
    #[arg(long, default_value_t = 20)]
    sample: usize,
    /// Draws the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs a part of the sample: K/N is every Nth mutant, from the Kth on
    #[arg(long, value_parser = shard, default_value = "1/1")]
    shard: (usize, usize),
    /// Samples this plugin, or "preemption evaluator", and no other
    #[arg(long)]
    area: Vec<String>,
    /// Takes the mutants with these numbers instead of a sample
    #[arg(long, value_delimiter = ',')]
    mutant: Vec<u32>,
    /// Lists the sample and runs nothing
    #[arg(long)]
    list: bool,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parsed.filter(|(k, n)| (1..=*n).contains(k)).ok_or_else(|| "K/N with 1 ≤ K ≤ N is wanted".to_owned())
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).context("the package is two folders up")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let work = target.join("mutants");
    let tree = Tree::read(root, work.join("tree"))?;
    let known = known::read(&fs::read_to_string(here.join("equivalent.txt"))?)?;
    let (sources, mut mutants) = mutant::all(&tree, root)?;
    let stale = known::stale(&known, &mutants);
    ensure!(stale.is_empty(), "equivalent.txt has what is no mutant any more:\n{}", stale.join("\n"));

    // The copy does not use the package's own target folder, because cargo takes both for the same package and would reuse the
    // artifacts of one for the other.
    let package = Package { tree: &tree, sources: &sources, target: &work.join("target") };
    let name = work.join(mutant::fingerprint(&tree, &mutants));
    let rejected = rejected(&package, &name.with_extension("rejected"))?;
    mutants.retain(|mutant| !rejected.contains(&mutant.number));
    let samples = samples(&args, &mutants);
    if args.list {
        for mutant in samples.iter().flatten() {
            println!("{}\t{}\t{}\t{}", mutant.number, AREAS[mutant.area].name, mutant.place(), mutant.change);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut log = Log::open(&name.with_extension("tsv"))?;
    let (k, n) = args.shard;
    let ours = samples.iter().flatten().skip(k - 1).step_by(n);
    let to_do: Vec<&Mutant> = ours.copied().filter(|mutant| log.outcome(mutant).is_none()).collect();
    if !to_do.is_empty() {
        let targets: Vec<String> = TARGETS.iter().map(|target| (*target).to_owned()).collect();
        let programs = package.build(&rejected, &targets)?;
        Trial::new(&programs, tree.folder())?.run(&to_do, &mut log)?;
    }

    let compiled = |area| mutants.iter().filter(|mutant| mutant.area == area).count();
    let compiled: Vec<usize> = (0..AREAS.len()).map(compiled).collect();
    let (summary, survived) = report::summary(&samples, &compiled, &log, &known);
    print!("{}{summary}", report::survivors(&samples, &log, &known));
    println!("{} more do not compile", rejected.len());
    Ok(if survived == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the mutants that do not compile. They are determined once, and then read from a file.
fn rejected(package: &Package<'_>, file: &Path) -> Result<BTreeSet<u32>> {
    if let Ok(text) = fs::read_to_string(file) {
        return Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?);
    }
    let rejected = package.reject()?;
    let lines: Vec<String> = rejected.iter().map(u32::to_string).collect();
    fs::write(file, lines.join("\n")).with_context(|| file.display().to_string())?;
    Ok(rejected)
}

/// Returns the mutants to try, by area.
fn samples<'m>(args: &Args, mutants: &'m [Mutant]) -> Vec<Vec<&'m Mutant>> {
    let of = |(area, named): (usize, &scope::Area)| {
        if !args.area.is_empty() && !args.area.iter().any(|name| name == named.name) {
            return Vec::new();
        }
        if args.mutant.is_empty() {
            return mutant::sample(mutants, area, args.sample, args.seed);
        }
        mutants.iter().filter(|mutant| mutant.area == area && args.mutant.contains(&mutant.number)).collect()
    };
    AREAS.iter().enumerate().map(of).collect()
}

/// The tests with which mutants are tried, each with its time limit.
struct Trial<'p> {
    /// The unit tests of each area.
    own: Vec<(Tests<'p>, Duration)>,
    /// All tests, program by program.
    all: Vec<(Tests<'p>, Duration)>,
}

impl<'p> Trial<'p> {
    /// Runs all tests without a mutant, to check that they pass and to derive the time limits.
    fn new(programs: &'p Programs, folder: &'p Path) -> Result<Self> {
        let timed = |program: &'p Path, filters: Vec<String>| {
            let tests = Tests { program, folder, filters };
            let (outcome, took) = tests.run(0, UNTIL_GIVEN_UP)?;
            ensure!(outcome == Outcome::Passed, "without a mutant: {}: {outcome:?}", program.display());
            Ok((tests, (took * PATIENCE).max(LEAST_LIMIT)))
        };
        eprintln!("running the tests without a mutant");
        let own = AREAS.iter().map(|area| {
            let modules = area.modules.iter().chain(TABLE).map(|module| format!("{module}::"));
            timed(&programs.lib, modules.collect())
        });
        let others = programs.others.iter().map(|(_, program)| timed(program, Vec::new()));
        let all = others.chain([timed(&programs.lib, Vec::new())]);
        Ok(Self { own: own.collect::<Result<_>>()?, all: all.collect::<Result<_>>()? })
    }

    /// Tries the mutants in two stages. First, each mutant is tried with the tests of its own area, which are quick. Then the
    /// mutants that survived are tried with all tests.
    fn run(&self, mutants: &[&Mutant], log: &mut Log) -> Result<()> {
        let mut left = Vec::new();
        for mutant in mutants {
            match stage(&self.own[mutant.area], mutant)? {
                Outcome::Passed => left.push(*mutant),
                outcome => log.record(mutant, outcome)?,
            }
        }
        for (at, mutant) in left.iter().enumerate() {
            eprintln!("{}/{}: {} {}: {}", at + 1, left.len(), mutant.number, mutant.place(), mutant.change);
            let mut outcomes = self.all.iter().map(|tests| stage(tests, mutant));
            let failed = outcomes.find_map(|outcome| (!matches!(outcome, Ok(Outcome::Passed))).then_some(outcome));
            log.record(mutant, failed.unwrap_or(Ok(Outcome::Passed))?)?;
        }
        Ok(())
    }
}

fn stage((tests, limit): &(Tests<'_>, Duration), mutant: &Mutant) -> Result<Outcome> {
    Ok(tests.run(mutant.number, *limit)?.0)
}
