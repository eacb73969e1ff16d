//! Allowances for findings that are not mended yet: `debt.tsv` has a check, a folder and a number on each line.
//!
//! The number has to be exact, so that it only becomes smaller. `TIDY_WRITE_DEBT=1` writes the actual numbers; a review
//! sees each one that grew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::{relative, root};

/// One place that breaks a rule.
pub(crate) struct Finding {
    /// The source file.
    pub(crate) file: PathBuf,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The text that breaks the rule, or the reason.
    pub(crate) text: String,
}

/// Keeps the tests from writing the file at the same time.
static FILE: Mutex<()> = Mutex::new(());

/// Compares a check's findings with its allowances.
///
/// # Panics
///
/// If a folder has more findings than it is allowed, or fewer.
pub(crate) fn check(name: &str, found: Vec<Finding>) {
    let _guard = FILE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut by_folder: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in found {
        by_folder.entry(folder(&finding.file)).or_default().push(finding);
    }
    if std::env::var_os("TIDY_WRITE_DEBT").is_some() {
        write(name, &by_folder);
        return;
    }
    let mut allowed = read();
    allowed.retain(|(check, _), _| check == name);
    let mut wrong = Vec::new();
    for (folder, findings) in &by_folder {
        let limit = allowed.remove(&(name.to_owned(), folder.clone())).unwrap_or(0);
        if findings.len() > limit {
            wrong.push(format!("{folder}: {} findings, {limit} allowed:", findings.len()));
            wrong.extend(findings.iter().map(describe));
        } else if findings.len() < limit {
            wrong.push(format!("{folder}: {} findings, {limit} allowed: lower debt.tsv", findings.len()));
        }
    }
    wrong.extend(allowed.keys().map(|(_, folder)| format!("{folder}: no findings: remove its line from debt.tsv")));
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

fn describe(finding: &Finding) -> String {
    format!("  {}:{}: {}", relative(&finding.file).display(), finding.line, finding.text)
}

/// The module of `src` or the folder of `tests` that a file is in.
fn folder(file: &Path) -> String {
    let parts: Vec<String> = relative(file).iter().take(2).map(|part| part.to_string_lossy().into_owned()).collect();
    parts.join("/").trim_end_matches(".rs").to_owned()
}

fn path() -> PathBuf {
    root().join("tests/tidy/debt.tsv")
}

/// The allowances by check and folder.
fn read() -> BTreeMap<(String, String), usize> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    let line = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [check, folder, count] = columns[..] else { panic!("debt.tsv: {line}: three columns") };
        let count = count.parse().unwrap_or_else(|error| panic!("debt.tsv: {line}: {error}"));
        ((check.to_owned(), folder.to_owned()), count)
    };
    text.lines().map(line).collect()
}

fn write(name: &str, found: &BTreeMap<String, Vec<Finding>>) {
    let mut all = read();
    all.retain(|(check, _), _| check != name);
    all.extend(found.iter().map(|(folder, findings)| ((name.to_owned(), folder.clone()), findings.len())));
    let lines = all.iter().map(|((check, folder), count)| format!("{check}\t{folder}\t{count}\n"));
    fs::write(path(), lines.collect::<String>()).expect("a writable debt.tsv");
}
