//! Rules of the source tree that no compiler checks: import directions, circles of files, file sizes, doc comments, citations
//! of upstream, unused files, and words that do not belong in the repository.

mod branches;
mod circles;
mod citations;
mod docs;
mod findings;
mod modules;
mod resolve;
mod sizes;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules that every module may import, except these modules themselves.
const COMMON: [&str; 2] = ["go", "apimachinery"];

/// For each module, the modules that its code may import. The rows are in the order in which a reader meets the modules:
/// vocabulary, contract, plugins, state, behaviour, process. An import in the opposite direction is a mistake, or requires a
/// change of this table. Every module may also import the modules in [`COMMON`].
const IMPORTS: &[(&str, &str)] = &[
    ("go", ""),
    ("apimachinery", "go"),
    ("k8s", ""),
    ("clock", ""),
    ("metrics", ""),
    ("version", ""),
    ("model", "k8s"),
    ("config", "k8s version"),
    ("listers", "model k8s"),
    ("framework", "config model k8s listers metrics clock"),
    ("plugins", "framework config model k8s listers metrics clock"),
    ("cache", "model k8s"),
    ("queue", "framework config model k8s listers metrics clock"),
    ("client", "config k8s metrics clock"),
    ("dispatcher", "client k8s model metrics clock"),
    ("events", "client k8s model metrics clock"),
    ("election", "client events config k8s metrics clock"),
    ("scheduler", "cache queue framework config listers model k8s metrics events dispatcher clock"),
    ("extender", "scheduler framework client config model k8s metrics clock version"),
    ("ingest", "scheduler cache queue listers framework client config model k8s metrics clock"),
    ("apiserver", "config k8s clock version"),
    ("testing", "framework config model k8s listers metrics clock"),
    ("engine", "scheduler cache queue framework config listers model k8s metrics events dispatcher client clock"),
    (
        "simulate",
        "engine extender ingest apiserver plugins scheduler cache queue framework config listers model k8s metrics events dispatcher client clock",
    ),
    (
        "explain",
        "simulate engine extender ingest client plugins scheduler framework config listers model k8s metrics clock version",
    ),
    ("serve", "client listers k8s metrics config clock"),
    ("app", "*"),
];

/// Texts that must not occur in the repository: local paths and services, and macros that mark unfinished code.
const BANNED: &[&str] = &["/work/", "/root/", "artifactory", "todo!(", "unimplemented!("];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The path below the repository's root.
fn relative(path: &Path) -> &Path {
    path.strip_prefix(root()).unwrap_or(path)
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|actual| actual == extension) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&root().join("src"), "rs", &mut found);
    found.sort();
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a readable source"))).collect()
}

/// The top-level module that a source file belongs to; none for `lib.rs` and `main.rs`.
fn module(path: &Path) -> Option<String> {
    let relative = path.strip_prefix(root().join("src")).expect("a file under src");
    let first = relative.iter().next()?.to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(name, "lib" | "main")).then(|| name.to_owned())
}

/// The part of a source before its tests, without comments.
fn code(text: &str) -> String {
    let mut tests = text.match_indices("#[cfg(test)]\nmod ");
    let begins = |at: usize| text[at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    let end = tests.find(|(at, _)| begins(*at)).map_or(text.len(), |(at, _)| at);
    let text = &text[..end];
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Whether the file is compiled for tests only. Such a file may import any module.
fn is_test(path: &Path, sources: &[(PathBuf, String)]) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let declared = [format!("#[cfg(test)]\nmod {stem};"), format!("#[cfg(test)]\npub(crate) mod {stem};")];
    stem.ends_with("tests")
        || path.components().any(|part| part.as_os_str() == "tests")
        || sources.iter().any(|(_, text)| declared.iter().any(|text_of| text.contains(text_of)))
}

/// The modules that `crate::…` paths in the text name.
fn named(text: &str) -> BTreeSet<String> {
    let identifier = |text: &str| {
        text.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect::<String>()
    };
    let mut found = BTreeSet::new();
    for after in text.split("crate::").skip(1) {
        if let Some(group) = after.strip_prefix('{') {
            let mut depth = 0;
            let mut at_item = true;
            for (at, letter) in group.char_indices() {
                match letter {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => at_item = true,
                    letter if letter.is_whitespace() => {}
                    _ if at_item => {
                        found.insert(identifier(&group[at..]));
                        at_item = false;
                    }
                    _ => {}
                }
            }
        } else {
            found.insert(identifier(after));
        }
    }
    found
}

#[test]
fn imports_follow_the_allowed_directions() {
    let table: BTreeMap<&str, BTreeSet<&str>> =
        IMPORTS.iter().map(|(module, allowed)| (*module, allowed.split_whitespace().collect())).collect();
    let mut wrong = Vec::new();
    let sources = sources();
    for (path, text) in &sources {
        let Some(module) = module(path) else { continue };
        if is_test(path, &sources) {
            continue;
        }
        let Some(allowed) = table.get(module.as_str()) else {
            wrong.push(format!("{}: module {module} is not in the table", path.display()));
            continue;
        };
        let is_common = COMMON.contains(&module.as_str());
        for target in named(&code(text)) {
            if target != module
                && (is_common || !COMMON.contains(&target.as_str()))
                && !allowed.contains("*")
                && !allowed.contains(target.as_str())
                && table.contains_key(target.as_str())
            {
                wrong.push(format!("{}: {module} must not import {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_docs() {
    let silent: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//! "))
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "without //! docs:\n{}", silent.join("\n"));
}

#[test]
fn every_source_file_is_a_module() {
    let sources = sources();
    let all: String = sources.iter().map(|(_, text)| text.as_str()).collect();
    let dead: Vec<String> = sources
        .iter()
        .filter(|(path, _)| {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let name = if stem == "mod" {
                path.parent().and_then(|folder| folder.file_name()).and_then(|name| name.to_str()).unwrap_or_default()
            } else {
                stem
            };
            let declared = [format!("mod {name};"), format!("mod {name} {{"), format!("\"{stem}.rs\"")];
            !matches!(stem, "lib" | "main") && !declared.iter().any(|text| all.contains(text))
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(dead.is_empty(), "no module names these files:\n{}", dead.join("\n"));
}

#[test]
fn repository_text_has_no_forbidden_words() {
    let mut found = Vec::new();
    for folder in ["src", "tests", "config", "deploy", "docs", ".ci"] {
        for extension in ["rs", "go", "md", "yaml", "toml", "sh", "tsv", "json"] {
            files(&root().join(folder), extension, &mut found);
        }
    }
    found.extend(
        [
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "Cargo.toml",
            "deny.toml",
            "build.rs",
            ".ci/run",
        ]
        .map(|name| root().join(name)),
    );
    let mut wrong = Vec::new();
    for path in found.into_iter().filter(|path| !path.ends_with("tests/tidy/main.rs")) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = BANNED.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn main_rs_only_starts_the_app() {
    let main = fs::read_to_string(root().join("src/main.rs")).expect("a readable main.rs");
    assert!(main.lines().count() < 25, "main.rs only starts the app");
}
