//! Citations of upstream's sources, looked up in the Go modules that are pinned beside this file.
//!
//! A citation stands in backticks, in a comment or in a document, such as `pkg/scheduler/schedule_one.go#ScheduleOne @v1.36.3`.
//! `tests/controlplane/cmd/symbols` says which paths and symbols there are. The rules for the text are:
//!
//! - Several citations in a row may share the version, which follows the last one.
//! - Several symbols of one file may stand in braces, separated by commas.
//! - A symbol without a path belongs to the last path before it in the same comment. Where the comment has no path, it belongs to
//!   a path in the file's module docs.
//! - A path that is no Go file has to have the version. So does a citation of a folder.
//! - A citation with another version than 1.36.3 is of another release, and is not looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::Failed;

use crate::support::programs::program;

/// Version that ends a citation.
const VERSION: &str = " @v1.36.3";

/// A citation in a source or a document.
struct Citation {
    /// File and line, for messages.
    place: String,
    /// The citation as it is written.
    text: String,
    /// The sources that the citation can refer to. One of them has to exist.
    candidates: Vec<String>,
}

/// Every file and symbol that is cited exists upstream.
pub(crate) fn citations_resolve() -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "docs", "deploy"] {
        collect(&root.join(folder), &mut files)?;
    }
    files.extend(fs::read_dir(root)?.flatten().map(|entry| entry.path()).filter(|path| is_document(path)));
    files.sort();
    let mut citations = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root)?.display().to_string();
        citations.extend(cited(&name, &fs::read_to_string(file)?));
    }
    if citations.is_empty() {
        return Err("no citation was found".into());
    }
    let all: BTreeSet<&str> = citations.iter().flat_map(|citation| &citation.candidates).map(String::as_str).collect();
    let unknown = unresolved(&all)?;
    let mut wrong = Vec::new();
    for citation in &citations {
        if let Some(reason) = citation.candidates.first().and_then(|first| unknown.get(first))
            && citation.candidates.iter().all(|candidate| unknown.contains_key(candidate))
        {
            wrong.push(format!("{}: `{}`: {reason}", citation.place, citation.text));
        }
    }
    println!("{} citations of {} symbols and files", citations.len(), all.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Finds the sources and documents of a folder.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if is_document(&path) || has_extension(&path, "rs") || has_extension(&path, "go") {
            found.push(path);
        }
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    has_extension(path, "md")
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|actual| actual == extension)
}

/// Looks citations up with the `symbols` command. Returns those that do not resolve, with the reasons.
fn unresolved(citations: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, String> {
    let mut command = Command::new(program("symbols"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("starting symbols: {error}"))?;
    let mut input = child.stdin.take().ok_or("symbols has no standard input")?;
    let lines = citations.iter().copied().collect::<Vec<_>>().join("\n") + "\n";
    // The command answers as it reads, so that both pipes have to be served at the same time.
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().map_err(|error| format!("running symbols: {error}"))?;
    writer
        .join()
        .map_err(|_| "writing to symbols panicked")?
        .map_err(|error| format!("writing to symbols: {error}"))?;
    if !output.status.success() {
        return Err(format!("symbols ended with {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.split_once(": ")).map(|(c, why)| (c.to_owned(), why.to_owned())).collect())
}

/// Finds the citations of one file.
fn cited(name: &str, text: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    let mut module_paths: Vec<String> = Vec::new();
    for block in blocks(text, is_document(Path::new(name))) {
        let mut path = None;
        for (line, span) in &block.spans {
            let Some((own, symbol)) = parse(span) else { continue };
            let candidates = match (own, &path) {
                (Some(own), _) => {
                    path = Some(own.to_owned());
                    if block.is_module_docs {
                        module_paths.push(own.to_owned());
                    }
                    vec![own.to_owned()]
                }
                (None, Some(path)) => vec![path.clone()],
                (None, None) if module_paths.is_empty() => vec![String::new()],
                (None, None) => module_paths.clone(),
            };
            let braces: &[char] = &['{', '}'];
            let symbols = symbol.map_or_else(
                || vec![String::new()],
                |symbol| symbol.trim_matches(braces).split(',').map(|symbol| format!("#{symbol}")).collect(),
            );
            for symbol in symbols {
                let candidates = candidates.iter().map(|path| format!("{path}{symbol}")).collect();
                found.push(Citation { place: format!("{name}:{line}"), text: span.clone(), candidates });
            }
        }
    }
    found
}

/// Reads a path and a symbol from a text in backticks; none if the text is no citation.
fn parse(span: &str) -> Option<(Option<&str>, Option<&str>)> {
    let (text, is_versioned) = span.strip_suffix(VERSION).map_or((span, false), |text| (text, true));
    if text.contains(" @") || (text.contains(char::is_whitespace) && !is_versioned) {
        return None;
    }
    let (path, symbol) = text.split_once('#').map_or((text, None), |(path, symbol)| (path, Some(symbol)));
    let is_name = |symbol: &str| symbol.chars().all(|letter| letter.is_alphanumeric() || "._{},".contains(letter));
    if path.is_empty() {
        return symbol.filter(|symbol| !symbol.is_empty() && is_name(symbol)).map(|symbol| (None, Some(symbol)));
    }
    let is_ours = Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists();
    ((has_extension(Path::new(path), "go") && !is_ours) || is_versioned).then_some((Some(path), symbol))
}

/// A comment, or a paragraph of a document.
struct Block {
    is_module_docs: bool,
    /// Texts in backticks, with their line numbers.
    spans: Vec<(usize, String)>,
}

fn blocks(text: &str, is_document: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut kind = None;
    for (number, line) in text.lines().chain([""]).enumerate() {
        let comment = comment_of(line, is_document);
        if comment.map(|(is_module_docs, _)| is_module_docs) != kind {
            if let Some(is_module_docs) = kind {
                blocks.push(Block { is_module_docs, spans: spans(&lines) });
            }
            lines.clear();
            kind = comment.map(|(is_module_docs, _)| is_module_docs);
        }
        lines.extend(comment.map(|(_, text)| (number + 1, text)));
    }
    blocks
}

/// Returns the text of a comment's line, and whether it belongs to the docs of the module; none for code.
fn comment_of(line: &str, is_document: bool) -> Option<(bool, &str)> {
    let line = line.trim_start();
    if is_document {
        return (!line.is_empty()).then_some((false, line));
    }
    let text = line.strip_prefix("//")?;
    Some((text.starts_with('!'), text.trim_start_matches(['/', '!'])))
}

/// Returns the texts in backticks, which may go on in the next line.
fn spans(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in lines {
        let mut parts = line.trim().split('`').peekable();
        while let Some(part) = parts.next() {
            if let Some((_, text)) = &mut open {
                text.push_str(part);
            }
            if parts.peek().is_some() {
                match open.take() {
                    Some(span) => found.push(span),
                    None => open = Some((*number, String::new())),
                }
            }
        }
        if let Some((_, text)) = &mut open {
            text.push(' ');
        }
    }
    found
}
