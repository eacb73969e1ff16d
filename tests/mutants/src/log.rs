//! Log of the outcomes with one line for each mutant, so that an interrupted run can continue.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::mutant::Mutant;
use crate::run::Outcome;
use crate::scope::AREAS;

/// The outcomes for one source tree, by the numbers of the mutants. Several processes may append to the same file.
pub struct Log {
    file: File,
    outcomes: BTreeMap<u32, Outcome>,
}

impl Log {
    /// Opens the log, or creates it if it does not exist.
    pub fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let outcomes = text.lines().filter_map(read).collect();
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self { file: file.with_context(|| path.display().to_string())?, outcomes })
    }

    /// Returns the outcome of a mutant, if it has been tried.
    pub fn outcome(&self, mutant: &Mutant) -> Option<&Outcome> {
        self.outcomes.get(&mutant.number)
    }

    /// Appends the outcome of a mutant.
    pub fn record(&mut self, mutant: &Mutant, outcome: Outcome) -> Result<()> {
        let Mutant { number, area, change, code, .. } = mutant;
        let (area, place) = (AREAS[*area].name, mutant.place());
        let (word, by) = match &outcome {
            Outcome::Passed => ("survived", ""),
            Outcome::Failed(by) => ("killed", &**by),
            Outcome::TimedOut => ("timeout", ""),
        };
        // One write, so that lines of several processes do not mix.
        let line = format!("{number}\t{area}\t{place}\t{change}\t{word}\t{by}\t{code}\n");
        self.file.write_all(line.as_bytes())?;
        self.outcomes.insert(*number, outcome);
        Ok(())
    }
}

fn read(line: &str) -> Option<(u32, Outcome)> {
    let mut fields = line.split('\t');
    let number = fields.next()?.parse().ok()?;
    let outcome = match (fields.nth(3)?, fields.next()?) {
        ("survived", _) => Outcome::Passed,
        ("killed", by) => Outcome::Failed(by.to_owned()),
        ("timeout", _) => Outcome::TimedOut,
        _ => return None,
    };
    Some((number, outcome))
}
