//! Compares the public API of the crate with the listing that is checked in, or writes the listing anew.
//!
//! rustdoc describes the API as JSON, which the stable compiler writes only with `RUSTC_BOOTSTRAP`. Cargo must not have that
//! variable: build scripts look at it, and all dependencies would be compiled again. So cargo runs this program in place of
//! rustdoc, and this program runs rustdoc with the variable.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, anyhow, bail};
use public_api::Builder;

/// Variable that tells this program to run rustdoc.
const AS_RUSTDOC: &str = "KUBE_SCHEDULER_API_AS_RUSTDOC";

/// Modules and items whose API is stable, as `CONTRIBUTING.md` says.
const STABLE: [&str; 24] = [
    "apimachinery::FieldError",
    "apimachinery::FieldErrors",
    "apimachinery::FieldPath",
    "apimachinery::field_error",
    "app",
    "clock",
    "config::AnyArgs",
    "config::ArgsError",
    "config::ArgsType",
    "config::ExtensionPoint",
    "config::FactoryArgs",
    "config::FeatureGates",
    "config::Gate",
    "config::PluginArgs",
    "config::RawArgs",
    "config::ReadArgs",
    "config::ReadArgsResult",
    "config::WrittenArgs",
    "framework",
    "k8s",
    "listers",
    "model",
    "testing",
    "version",
];

/// Maximum number of changes that are printed.
const SHOWN: usize = 100;

fn main() -> ExitCode {
    if std::env::var_os(AS_RUSTDOC).is_some() {
        let error = Command::new("rustdoc").args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").exec();
        eprintln!("error: rustdoc: {error}");
        return ExitCode::FAILURE;
    }
    match run(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Option<&str>) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let listing = root.join("tests/api/public-api.txt");
    let actual = public_items(&describe(&root)?)?;
    match command {
        Some("record") => std::fs::write(&listing, actual.join("\n") + "\n").context("writing the listing"),
        Some("check") => {
            let text = std::fs::read_to_string(&listing).context("reading the listing")?;
            compare(&text.lines().collect::<Vec<_>>(), &actual)
        }
        _ => bail!("say what to do: check or record"),
    }
}

/// Has rustdoc describe the crate. Returns the path of the JSON file.
fn describe(root: &Path) -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["rustdoc", "--quiet", "--locked", "--lib", "--target-dir"]).arg(&target);
    cargo.args(["--", "-Zunstable-options", "--output-format=json", "--cap-lints=allow"]);
    cargo.env("RUSTDOC", std::env::current_exe()?).env(AS_RUSTDOC, "1");
    let status = cargo.status().context("running cargo rustdoc")?;
    if !status.success() {
        bail!("cargo rustdoc ended with {status}");
    }
    Ok(target.join("doc/kube_scheduler.json"))
}

/// Returns the public items of the stable modules, sorted, one a line.
fn public_items(json: &Path) -> anyhow::Result<Vec<String>> {
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("reading {}", json.display()))?;
    let mut lines: Vec<String> = api.items().map(ToString::to_string).filter(|line| is_stable(line)).collect();
    lines.sort();
    lines.dedup();
    if lines.is_empty() { Err(anyhow!("no public item was found")) } else { Ok(lines) }
}

/// Whether the first path in a line is of a stable module or item.
fn is_stable(line: &str) -> bool {
    let path = line.split_once("kube_scheduler::").map_or("", |(_, rest)| rest);
    STABLE.iter().any(|stable| {
        let rest = path.strip_prefix(stable);
        rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
    })
}

fn compare(listed: &[&str], actual: &[String]) -> anyhow::Result<()> {
    let listed: BTreeSet<&str> = listed.iter().copied().collect();
    let actual: BTreeSet<&str> = actual.iter().map(String::as_str).collect();
    let removed = listed.difference(&actual).map(|line| format!("- {line}"));
    let added = actual.difference(&listed).map(|line| format!("+ {line}"));
    let changes: Vec<String> = removed.chain(added).collect();
    if changes.is_empty() {
        println!("the public API is as listed: {} items", actual.len());
        return Ok(());
    }
    let shown = changes.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("\n");
    bail!(
        "the public API has {} changes that tests/api/public-api.txt does not list:\n{shown}\n\
         If they are meant, run `cargo run --manifest-path tests/api/Cargo.toml record` and commit the listing.",
        changes.len()
    )
}
