//! The summary of a run.

use std::fmt::Write as _;

use crate::known::{self, Known};
use crate::log::Log;
use crate::mutant::Mutant;
use crate::run::Outcome;
use crate::scope::AREAS;

/// Numbers of the mutants of an area, by outcome.
#[derive(Clone, Copy, Default)]
struct Row {
    sample: usize,
    killed: usize,
    timeouts: usize,
    equivalent: usize,
    survived: usize,
    left: usize,
}

impl Row {
    fn add(&mut self, other: Self) {
        self.sample += other.sample;
        self.killed += other.killed;
        self.timeouts += other.timeouts;
        self.equivalent += other.equivalent;
        self.survived += other.survived;
        self.left += other.left;
    }

    /// Returns the percentage of killed mutants. Mutants that are equivalent or have not been tried do not count.
    fn rate(self) -> String {
        let killed = self.killed + self.timeouts;
        match killed + self.survived {
            0 => "-".to_owned(),
            tried => format!("{}.{}%", killed * 100 / tried, killed * 1000 / tried % 10),
        }
    }
}

/// Returns the summary, and the number of survivors that are not known to be equivalent.
pub fn summary(samples: &[Vec<&Mutant>], compiled: &[usize], log: &Log, known: &[Known]) -> (String, usize) {
    let mut text = String::new();
    let mut line = |name: &str, compiled: usize, row: Row| {
        let Row { sample, killed, timeouts, equivalent, survived, left } = row;
        let rate = row.rate();
        writeln!(
            text,
            "{name:<32}{compiled:>8}{sample:>8}{killed:>8}{timeouts:>9}{equivalent:>12}{survived:>10}{left:>6}{rate:>8}"
        )
        .expect("texts can be written to");
    };
    let mut total = Row::default();
    for ((area, sample), compiled) in AREAS.iter().zip(samples).zip(compiled) {
        let mut row = Row::default();
        for mutant in sample {
            row.add(of(mutant, log, known));
        }
        total.add(row);
        line(area.name, *compiled, row);
    }
    line("all", compiled.iter().sum(), total);
    let head = format!(
        "{:<32}{:>8}{:>8}{:>8}{:>9}{:>12}{:>10}{:>6}{:>8}\n",
        "", "mutants", "sample", "killed", "timeout", "equivalent", "survived", "left", "rate"
    );
    text.insert_str(0, &head);
    (text, total.survived)
}

fn of(mutant: &Mutant, log: &Log, known: &[Known]) -> Row {
    let mut row = Row { sample: 1, ..Row::default() };
    let count = match log.outcome(mutant) {
        None => &mut row.left,
        Some(Outcome::Failed(_)) => &mut row.killed,
        // A mutant that is known to change nothing times out only if the machine is busy.
        Some(Outcome::Passed | Outcome::TimedOut) if known::why(known, mutant).is_some() => &mut row.equivalent,
        Some(Outcome::TimedOut) => &mut row.timeouts,
        Some(Outcome::Passed) => &mut row.survived,
    };
    *count = 1;
    row
}

/// Returns the survivors that are not known. Each is formatted as an entry of the list of known mutants, without the reason.
pub fn survivors(samples: &[Vec<&Mutant>], log: &Log, known: &[Known]) -> String {
    let all = samples.iter().flatten().filter(|mutant| of(mutant, log, known).survived > 0);
    let entry = |mutant: &&&Mutant| {
        format!("# {}, {}\n{}\n{}\n{}\n", mutant.number, mutant.place(), mutant.file, mutant.code, mutant.change)
    };
    all.map(|mutant| entry(&mutant)).collect::<Vec<_>>().join("\n")
}
