//! Runs tests with a mutant alive.

use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::schemata::VARIABLE;

/// Memory limit of a test process in KiB. A mutant may cause an endless loop that fills a list.
const MEMORY: u32 = 8 << 20;

/// Outcome of running tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// The test that failed, or the status with which the process ended.
    Failed(String),
    TimedOut,
}

/// Tests of one test program.
pub struct Tests<'p> {
    pub program: &'p Path,
    /// The folder in which cargo would run the program.
    pub folder: &'p Path,
    /// Parts of the names of the tests to run. If it is empty, all tests are run.
    pub filters: Vec<String>,
}

impl Tests<'_> {
    /// Runs the tests until the first one fails, with this mutant, or without a mutant if `mutant` is 0. Returns the outcome
    /// and the duration.
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
            // The process gets its own group, so that processes that a test has started are killed with it.
            .process_group(0)
            .spawn()
            .with_context(|| self.program.display().to_string())
    }
}

/// Reads the output of the process. Kills the process when the first test fails, or when the time is up.
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
