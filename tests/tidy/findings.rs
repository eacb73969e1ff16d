//! Findings: the places that break a rule of the source tree.

use std::path::PathBuf;

use crate::relative;

/// One place that breaks a rule.
pub(crate) struct Finding {
    /// The source file that breaks the rule.
    pub(crate) file: PathBuf,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// The text that breaks the rule, or the reason.
    pub(crate) text: String,
}

/// Fails if a check has findings, and prints each with its place.
///
/// # Panics
///
/// If there is a finding.
pub(crate) fn check(name: &str, found: &[Finding]) {
    let describe =
        |finding: &Finding| format!("  {}:{}: {}", relative(&finding.file).display(), finding.line, finding.text);
    let lines: Vec<String> = found.iter().map(describe).collect();
    assert!(found.is_empty(), "{name}:\n{}", lines.join("\n"));
}
