//! The operator's interface, compared with upstream's binary: flags with their types and defaults, feature gates, command lines
//! and configuration files, good and bad, with their texts and exit codes.

pub(crate) mod clients;
mod configs;
pub(crate) mod deploy;
pub(crate) mod election;
pub(crate) mod endpoints;
pub(crate) mod explain;
pub(crate) mod families;
mod flags;
mod gates;
mod lines;
pub(crate) mod scraped;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) use configs::configurations_are_read_the_same;
pub(crate) use flags::flags_are_upstreams;
pub(crate) use gates::gates_are_upstreams;
pub(crate) use lines::command_lines_are_read_the_same;

use crate::support::programs::{folder, program};
use crate::support::schedulers::all_at_once;

/// Of a hundred comparisons so many have to agree; the others are printed.
const AGREEING_PERCENT: usize = 95;

/// Result of a scheduler run that exits before it schedules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// The error as it is told, without when and where.
    pub(crate) error: String,
    pub(crate) stdout: String,
}

/// Which scheduler is run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Upstreams,
    Ours,
}

impl Whose {
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Upstreams => program("kube-scheduler"),
            Self::Ours => env!("CARGO_BIN_EXE_kube-scheduler").into(),
        }
    }

    /// Runs it with these arguments in a folder. `timeout` ends one that would go on.
    pub(crate) fn run(self, arguments: &[String], folder: &Path) -> Result<Ended, String> {
        self.run_with(arguments, folder, &[])
    }

    /// The same with these variables, and no others.
    pub(crate) fn run_with(
        self,
        arguments: &[String],
        folder: &Path,
        variables: &[(String, String)],
    ) -> Result<Ended, String> {
        let output = Command::new("timeout")
            .arg("20")
            .arg(self.program())
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.program().display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code();
        if code == Some(124) {
            return Err(format!("{} {arguments:?} did not end: {}", self.program().display(), text(&output.stderr)));
        }
        Ok(Ended { code, error: error_in(&text(&output.stderr)), stdout: text(&output.stdout) })
    }
}

/// A folder for the files of a test, empty.
pub(crate) fn scratch(name: &str) -> Result<PathBuf, String> {
    let folder = folder().join("run").join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// The cases of a text: each begins with a line `=== name`, and has its text below. Fails if there are fewer than `least`.
fn named_cases(text: &str, least: usize) -> Result<Vec<(&str, &str)>, String> {
    let cases: Vec<(&str, &str)> = text.split("=== ").skip(1).filter_map(|case| case.split_once('\n')).collect();
    if cases.len() < least { Err(format!("only {} files", cases.len())) } else { Ok(cases) }
}

/// What is said of an error: after `Error: `, as klog's `err`, or all there is.
fn error_in(stderr: &str) -> String {
    for line in stderr.lines().rev() {
        if let Some(text) = line.strip_prefix("Error: ") {
            return text.to_owned();
        }
        if let Some((_, text)) = line.split_once("\"command failed\" err=") {
            return serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
        }
        if let Ok(object) = serde_json::from_str::<serde_json::Value>(line)
            && object["msg"] == "command failed"
        {
            return object["err"].as_str().unwrap_or_default().to_owned();
        }
    }
    // klog writes texts of several lines in a form of their own.
    match stderr.split_once("\"command failed\" err=<\n") {
        Some((_, text)) => text.strip_suffix(" >\n").unwrap_or(text).to_owned(),
        None => stderr.to_owned(),
    }
}

/// Runs `compare` on each case, two at a time, and judges how many agree. What differs is printed.
pub(crate) fn judge<T: Sync>(
    cases: &[T],
    name: impl Fn(&T) -> String + Sync,
    compare: impl Fn(&T) -> Result<Option<String>, String> + Sync,
) -> Result<(), String> {
    let half = cases.len().div_ceil(2).max(1);
    let work = |cases: &[T]| -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for case in cases {
            found.extend(compare(case)?.map(|difference| format!("{}:\n{difference}", name(case))));
        }
        Ok(found)
    };
    let work = &work;
    let found = all_at_once(cases.chunks(half).map(|cases| move || work(cases)));
    let found: Result<Vec<Vec<String>>, String> = found.into_iter().collect();
    let found: Vec<String> = found?.into_iter().flatten().collect();
    let agreed = cases.len() - found.len();
    println!("{agreed} of {} agree", cases.len());
    for difference in &found {
        println!("{difference}");
    }
    if agreed * 100 < cases.len() * AGREEING_PERCENT { Err("too few agree".to_owned()) } else { Ok(()) }
}
