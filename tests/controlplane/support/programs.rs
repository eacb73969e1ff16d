//! The programs of the Go module in `tests/controlplane`, built on first use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The version that the programs report. Follows the module's `go.mod`.
const VERSION: &str = "v1.36.3";
const MINOR: &str = "36";

/// Folder for all output of these tests: `controlplane` in cargo's target folder.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    // The test runs from <target>/<profile>/deps.
    FOLDER.get_or_init(|| {
        let exe = std::env::current_exe().expect("a running test has a path");
        exe.ancestors().nth(3).expect("cargo runs tests from its target folder").join("controlplane")
    })
}

/// The path of one of the programs. The first call builds all of them, which takes minutes where nothing is cached and
/// seconds where nothing has changed; it ends the process with a message where that fails.
pub(crate) fn program(name: &str) -> PathBuf {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    if let Err(error) = BUILT.get_or_init(build) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
    folder().join("bin").join(name)
}

fn build() -> Result<(), String> {
    let bin = folder().join("bin");
    std::fs::create_dir_all(&bin).map_err(|error| format!("creating {}: {error}", bin.display()))?;
    eprintln!("building the control plane, kubectl and the oracle into {}", bin.display());
    let variable = |package: &str, name: &str, value: &str| format!("-X {package}.{name}={value}");
    let flags: Vec<String> = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
        .iter()
        .flat_map(|package| {
            [("gitVersion", VERSION), ("gitMajor", "1"), ("gitMinor", MINOR)]
                .map(|(name, value)| variable(package, name, value))
        })
        .collect();
    let status = Command::new("go")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane"))
        .args(["build", "-mod=readonly", "-trimpath", "-ldflags", &flags.join(" "), "-o"])
        .arg(format!("{}/", bin.display()))
        .arg("./cmd/...")
        .status()
        .map_err(|error| {
            format!("these tests need Go, which cannot be run ({error}): install the version that tests/controlplane/go.mod names")
        })?;
    if !status.success() {
        return Err(format!("go build failed: {status}"));
    }
    eprintln!("built");
    Ok(())
}
