//! Builds the package with all mutants that compile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::mutant::Source;
use crate::schemata::{self, Numbered, Placed};
use crate::tree::Tree;

/// Maximum number of builds until all mutants compile. Type errors hide errors of the borrow checker, which hide errors of code
/// generation, so a few rounds are normal. Many rounds mean that this tool has a bug.
const MOST_ROUNDS: usize = 25;

/// Paths of the built test programs.
pub struct Programs {
    /// The program with the unit tests.
    pub lib: PathBuf,
    /// The programs of the other requested test targets, with the targets' names.
    pub others: Vec<(String, PathBuf)>,
}

/// The rewritten copy of the package.
pub struct Package<'t> {
    pub tree: &'t Tree,
    pub sources: &'t [Source],
    /// Folder for the output of cargo.
    pub target: &'t Path,
}

impl Package<'_> {
    /// Returns the numbers of all mutants that do not compile.
    pub fn reject(&self) -> Result<BTreeSet<u32>> {
        let mut rejected = BTreeSet::new();
        for round in 1..=MOST_ROUNDS {
            let placed = self.write(&rejected)?;
            eprintln!("building with all mutants but {}, round {round}", rejected.len());
            let errors = self.cargo(&["build", "--lib"])?.1;
            if errors.is_empty() {
                return Ok(rejected);
            }
            let before = rejected.len();
            for error in &errors {
                rejected.extend(at_fault(error, &placed));
            }
            ensure!(rejected.len() > before, "no mutant is to blame for this:\n{}", rendered(&errors));
        }
        bail!("after {MOST_ROUNDS} rounds there are still mutants that do not compile")
    }

    /// Builds the unit tests and these test targets, without the mutants in `rejected`.
    pub fn build(&self, rejected: &BTreeSet<u32>, targets: &[String]) -> Result<Programs> {
        self.write(rejected)?;
        eprintln!("building the tests");
        let mut arguments = vec!["test", "--no-run", "--lib"];
        for target in targets {
            arguments.extend(["--test", target]);
        }
        let (artifacts, errors) = self.cargo(&arguments)?;
        ensure!(errors.is_empty(), "{}", rendered(&errors));
        let program = |kind: &str, name: &str| {
            let mut found = artifacts.iter().filter(|artifact| {
                let target = &artifact["target"];
                artifact["profile"]["test"] == true && target["kind"][0] == kind && target["name"] == name
            });
            let path = found.find_map(|artifact| artifact["executable"].as_str());
            path.map(PathBuf::from).with_context(|| format!("cargo built no tests of {kind} {name}"))
        };
        let others = targets.iter().map(|target| Ok((target.clone(), program("test", target)?)));
        Ok(Programs { lib: program("lib", "kube_scheduler")?, others: others.collect::<Result<_>>()? })
    }

    fn write(&self, rejected: &BTreeSet<u32>) -> Result<BTreeMap<PathBuf, Vec<Placed>>> {
        let (mut texts, mut placed) = (BTreeMap::new(), BTreeMap::new());
        for source in self.sources {
            let sites = source.sites.iter().zip(&source.first).map(|(site, first)| Numbered {
                site,
                numbers: (*first..).take(site.changes.len()).map(|n| (!rejected.contains(&n)).then_some(n)).collect(),
            });
            let (text, switches) = schemata::rewrite(self.tree.text(&source.path)?, &sites.collect::<Vec<_>>());
            texts.insert(source.path.clone(), text);
            placed.insert(source.path.clone(), switches);
        }
        let root = self.tree.text(Path::new("src/lib.rs"))?;
        texts.insert("src/lib.rs".into(), format!("#![allow(warnings)]\n{root}\npub mod mutant;\n"));
        texts.insert("src/mutant.rs".into(), schemata::module());
        self.tree.write(&texts)?;
        Ok(placed)
    }

    /// Runs cargo on the copy. Returns its messages about built artifacts, and its error messages.
    fn cargo(&self, arguments: &[&str]) -> Result<(Vec<Value>, Vec<Value>)> {
        let output = Command::new("cargo")
            .args(arguments)
            .args(["--message-format", "json", "--quiet", "--target-dir"])
            .arg(self.target)
            .current_dir(self.tree.folder())
            .stderr(Stdio::piped())
            .output()
            .context("cargo")?;
        let (mut artifacts, mut errors) = (Vec::new(), Vec::new());
        for line in String::from_utf8(output.stdout)?.lines() {
            let mut message: Value = serde_json::from_str(line)?;
            match message["reason"].as_str() {
                Some("compiler-artifact") => artifacts.push(message),
                Some("compiler-message") if message["message"]["level"] == "error" => {
                    errors.push(message["message"].take());
                }
                _ => {}
            }
        }
        // The message "aborting due to …" has no span.
        errors.retain(|error| error["spans"].as_array().is_some_and(|spans| !spans.is_empty()));
        let failed = !output.status.success();
        ensure!(!failed || !errors.is_empty(), "cargo: {}", String::from_utf8_lossy(&output.stderr));
        Ok((artifacts, errors))
    }
}

fn rendered(errors: &[Value]) -> String {
    errors.iter().filter_map(|error| error["rendered"].as_str()).collect()
}

/// Returns the mutants that may cause a compiler error. This is the mutant whose code contains a span of the error. If there is
/// none, these are the mutants of the innermost switch around a span. Without such a switch, these are all mutants within the
/// spans.
fn at_fault(error: &Value, placed: &BTreeMap<PathBuf, Vec<Placed>>) -> Vec<u32> {
    let spans = error["spans"].as_array().into_iter().flatten();
    let mut spans: Vec<(bool, &[Placed], Range<usize>)> = spans
        .filter_map(|span| {
            let switches = placed.get(Path::new(span["file_name"].as_str()?))?;
            let at = |name: &str| usize::try_from(span[name].as_u64()?).ok();
            Some((span["is_primary"] != true, &**switches, at("byte_start")?..at("byte_end")?))
        })
        .collect();
    spans.sort_by_key(|(secondary, ..)| *secondary);
    let around = |outer: &Range<usize>, inner: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
    for (_, switches, span) in &spans {
        let arms = switches.iter().flat_map(|switch| &switch.arms);
        if let Some((number, _)) = arms.into_iter().find(|(_, arm)| around(arm, span)) {
            return vec![*number];
        }
        if let Some(switch) = switches.iter().rev().find(|switch| around(&switch.range, span)) {
            return switch.arms.iter().map(|(number, _)| *number).collect();
        }
    }
    let within = spans.iter().flat_map(|(_, switches, span)| {
        switches.iter().filter(|switch| around(span, &switch.range)).flat_map(|switch| &switch.arms)
    });
    within.map(|(number, _)| *number).collect()
}
