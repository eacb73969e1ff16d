//! The subcommand `version`, which prints versions.

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::version;

/// Print the version of this program and of the compatible Kubernetes release
///
/// `kube-scheduler --version` prints only the version of Kubernetes, as upstream's kube-scheduler does.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct VersionArgs {
    /// Output format; text by default
    #[arg(short, long, value_enum)]
    output: Option<VersionOutput>,
}

/// Machine-readable forms of the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VersionOutput {
    Json,
    Yaml,
}

/// Everything that the `version` command prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    program: &'static str,
    version: &'static str,
    git_commit: &'static str,
    kubernetes_version: &'static str,
    compiler: &'static str,
    platform: &'static str,
}

/// Returns the text that the command prints.
pub(super) fn text(args: VersionArgs) -> anyhow::Result<String> {
    let versions = Versions {
        program: version::PROGRAM,
        version: version::OWN,
        git_commit: version::COMMIT,
        kubernetes_version: version::KUBERNETES,
        compiler: version::COMPILER,
        platform: version::PLATFORM,
    };
    Ok(match args.output {
        None => format!(
            "{} version: {}\nGit commit: {}\nKubernetes version: {}\nCompiler: {}\nPlatform: {}\n",
            versions.program,
            versions.version,
            versions.git_commit,
            versions.kubernetes_version,
            versions.compiler,
            versions.platform
        ),
        Some(VersionOutput::Json) => serde_json::to_string_pretty(&versions)? + "\n",
        Some(VersionOutput::Yaml) => serde_yaml::to_string(&versions)?,
    })
}
