//! Mutation testing of the plugins and of the preemption evaluator.
//!
//! All mutants are compiled at once, each behind a switch ([`schemata`]), because building the package takes a minute and
//! running the tests that matter takes milliseconds. What is not drawn costs nothing but the time to compile it.

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

/// The tests of the table of plugins, which go for all of them.
const TABLE: &[&str] = &["plugins::tests"];

/// How many times as long as without a mutant tests may take, and what they may take at least: machines have other things
/// to do, too.
const PATIENCE: u32 = 8;
const LEAST_LIMIT: Duration = Duration::from_secs(20);

/// How long tests may take without a mutant.
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

    // Not the folder of the package itself: to cargo a copy is the same package, and one would pass for the other.
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

/// The mutants that do not compile, which is found out once and then read from a file.
fn rejected(package: &Package<'_>, file: &Path) -> Result<BTreeSet<u32>> {
    if let Ok(text) = fs::read_to_string(file) {
        return Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?);
    }
    let rejected = package.reject()?;
    let lines: Vec<String> = rejected.iter().map(u32::to_string).collect();
    fs::write(file, lines.join("\n")).with_context(|| file.display().to_string())?;
    Ok(rejected)
}

/// What is to be tried, by area.
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

/// Tests that mutants have to get past, and how long each stage may take.
struct Trial<'p> {
    /// The unit tests of each area.
    own: Vec<(Tests<'p>, Duration)>,
    /// All tests, program by program.
    all: Vec<(Tests<'p>, Duration)>,
}

impl<'p> Trial<'p> {
    /// Sees that all tests pass without a mutant, and how long they take.
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

    /// Tries the mutants: all of them on the tests of their own areas, which take no time, and those that are left on all
    /// tests.
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
