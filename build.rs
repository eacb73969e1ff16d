//! Records the commit and the compiler of a build, which `src/version.rs` reads with `env!`.
//!
//! `KUBE_SCHEDULER_COMMIT` in the environment names the commit. Without the variable, a release build asks git, and the commit is
//! `unknown` where git does not know one. Other builds never ask git: a commit would otherwise compile the crate again.

use std::env;
use std::path::Path;
use std::process::Command;

/// Environment variable that names the commit, for builds of sources without a repository.
const COMMIT: &str = "KUBE_SCHEDULER_COMMIT";

/// Commit of a build that does not know its own.
const UNKNOWN: &str = "unknown";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let given = env::var(COMMIT).ok().filter(|commit| !commit.is_empty());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| is_release.then(checked_out).flatten()).unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo::rustc-env={COMMIT}={commit}");
    println!("cargo::rustc-env=KUBE_SCHEDULER_COMPILER={}", compiler());
}

/// Returns the commit that is checked out in this folder, and has cargo watch the files that change with it.
fn checked_out() -> Option<String> {
    let folder = env::var("CARGO_MANIFEST_DIR").ok()?;
    let git = |arguments: &[&str]| said_by("git", &[&["-C", &folder, "rev-parse"][..], arguments].concat());
    // A copy of the sources may lie inside a repository of something else.
    if Path::new(&git(&["--show-toplevel"])?).canonicalize().ok()? != Path::new(&folder).canonicalize().ok()? {
        return None;
    }
    let branch = git(&["--symbolic-full-name", "HEAD"])?;
    // The reflog changes with each commit, also where a branch has no file of its own yet.
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        let path = Path::new(&folder).join(git(&["--git-path", name])?);
        // Cargo would run this again for each build if it watched a file that does not exist.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["HEAD"])
}

/// Returns the name and the version of the compiler, such as `rustc 1.95.0`.
fn compiler() -> String {
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = said_by(&compiler, &["--version"]).unwrap_or_default();
    let words: Vec<&str> = version.split_whitespace().take(2).collect();
    if words.is_empty() { "rustc".to_owned() } else { words.join(" ") }
}

/// Runs a command and returns its output without the line's end; none if the command fails or prints nothing.
fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
