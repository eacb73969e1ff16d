//! Runs tests with a mutant alive.

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::schemata::VARIABLE;

/// What a process may ask for, in KiB: a mutant may make a loop endless that fills a list.
const MEMORY: u32 = 8 << 20;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// By this test, or by what became of the process.
    Failed(String),
    TimedOut,
}

/// A program with tests, and which of them.
pub struct Tests<'p> {
    pub program: &'p Path,
    /// Where cargo would run it.
    pub folder: &'p Path,
    /// What the names of the tests have in them; all tests if there is none.
    pub filters: Vec<String>,
}

impl Tests<'_> {
    /// Runs the tests with this mutant, or with none for 0, until the first one fails, and says how long that took.
    pub fn run(&self, mutant: u32, limit: Duration) -> Result<(Outcome, Duration)> {
        let start = now();
        let mut child = self.start(mutant)?;
        let outcome = watch(&mut child, start + limit)?;
        Ok((outcome, now() - start))
    }

    fn start(&self, mutant: u32) -> Result<Child> {
        Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
            .arg(self.program)
            .args(&self.filters)
            .env(VARIABLE, mutant.to_string())
            .env("CARGO_MANIFEST_DIR", self.folder)
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A group of its own, so that what a test has started ends with it.
            .process_group(0)
            .spawn()
            .with_context(|| self.program.display().to_string())
    }
}

/// Reads what the process prints, and ends it with the first test that fails or when time is up.
fn watch(child: &mut Child, until: Instant) -> Result<Outcome> {
    let output = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let outcome = loop {
        match lines.recv_timeout(until.saturating_duration_since(now())) {
            Ok(line) => {
                if let Some(test) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
                    break Some(Outcome::Failed(test.to_owned()));
                }
            }
            Err(RecvTimeoutError::Timeout) => break Some(Outcome::TimedOut),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if outcome.is_some() {
        let group = format!("-{}", child.id());
        Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().context("kill")?;
    }
    let status = child.wait()?;
    Ok(outcome.unwrap_or_else(|| match (status.success(), status.signal()) {
        (true, _) => Outcome::Passed,
        (_, Some(signal)) => Outcome::Failed(format!("signal {signal}")),
        _ => Outcome::Failed(status.to_string()),
    }))
}

#[expect(clippy::disallowed_methods, reason = "the tool, unlike the product, runs in the time of the machine")]
fn now() -> Instant {
    Instant::now()
}
