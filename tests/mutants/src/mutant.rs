//! All mutants with their numbers, and the samples that are drawn from them.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::find::{self, Site};
use crate::hash::hash;
use crate::scope::{self, AREAS};
use crate::tree::Tree;

/// A file with its sites.
pub struct Source {
    /// Path within the package.
    pub path: PathBuf,
    pub sites: Vec<Site>,
    /// The number of the first change of each site.
    pub first: Vec<u32>,
}

/// A mutant: one change of one site.
pub struct Mutant {
    /// Number of the mutant, from 1 on. It stays the same as long as no source changes.
    pub number: u32,
    /// Index of the mutant's area in [`AREAS`].
    pub area: usize,
    pub file: String,
    /// Line of the site, counted from 1.
    pub line: usize,
    /// Column of the site, counted from 1.
    pub column: usize,
    /// The line of code on which the site begins, trimmed.
    pub code: String,
    /// The original code and its replacement.
    pub change: String,
    /// Number of earlier mutants in the file with the same line of code and the same change.
    twin: usize,
}

impl Mutant {
    /// Returns the place as `src/….rs:line:column`.
    pub fn place(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// Returns the lot of the mutant. The mutants with the lowest lots are the sample. When a source changes, only the lots of
    /// the changed code change.
    fn lot(&self, seed: u64) -> u64 {
        let twin = self.twin.to_string();
        let (file, code, change) = (self.file.as_bytes(), self.code.as_bytes(), self.change.as_bytes());
        hash([&seed.to_le_bytes()[..], file, code, change, twin.as_bytes()])
    }
}

/// Finds and numbers all mutants of the tree.
pub fn all(tree: &Tree, root: &Path) -> Result<(Vec<Source>, Vec<Mutant>)> {
    let (mut sources, mut mutants) = (Vec::new(), Vec::new());
    for (area, modules) in AREAS.iter().enumerate() {
        for module in modules.modules {
            for file in scope::files(&root.join("src"), module)? {
                let path = file.strip_prefix(root)?.to_owned();
                let is_new = sources.iter().all(|source: &Source| source.path != path);
                ensure!(is_new, "{} belongs to two areas", path.display());
                let text = tree.text(&path)?;
                let sites = find::sites(text)?;
                let mut first = Vec::new();
                for site in &sites {
                    first.push(u32::try_from(mutants.len())? + 1);
                    describe(area, &path, text, site, &mut mutants);
                }
                sources.push(Source { path, sites, first });
            }
        }
    }
    Ok((sources, mutants))
}

/// Returns a name for the results of these mutants of this source tree. Results for other mutants or sources have another name.
pub fn fingerprint(tree: &Tree, mutants: &[Mutant]) -> String {
    let sources = tree.fingerprint().to_le_bytes();
    let changes = mutants.iter().map(|mutant| mutant.change.as_bytes());
    format!("{:016x}", hash(changes.chain([&sources[..]])))
}

fn describe(area: usize, path: &Path, text: &str, site: &Site, mutants: &mut Vec<Mutant>) {
    let file = path.display().to_string();
    let before = &text[..site.range.start];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let code = text[start..].lines().next().unwrap_or_default().trim().to_owned();
    let original = short(&text[site.range.clone()]);
    for change in &site.changes {
        let change = format!("{original} → {}", short(&change.shown));
        let alike = |other: &&Mutant| other.file == file && other.code == code && other.change == change;
        mutants.push(Mutant {
            number: mutants.last().map_or(1, |last| last.number + 1),
            area,
            file: file.clone(),
            line: before.matches('\n').count() + 1,
            column: text[start..site.range.start].chars().count() + 1,
            code: code.clone(),
            twin: mutants.iter().rev().take_while(|other| other.file == file).filter(alike).count(),
            change,
        });
    }
}

/// Returns the text on one line, truncated if it is long.
fn short(text: &str) -> String {
    const MOST: usize = 90;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Draws the sample of an area: `size` times the area's weight of the mutants that compile, or all of them if there are fewer.
pub fn sample(mutants: &[Mutant], area: usize, size: usize, seed: u64) -> Vec<&Mutant> {
    let mut drawn: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.area == area).collect();
    drawn.sort_by_key(|mutant| mutant.lot(seed));
    drawn.truncate(size * AREAS[area].weight);
    drawn.sort_by_key(|mutant| mutant.number);
    drawn
}
