//! The command line of `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Schedules the pods of cluster files against a cluster in memory, in virtual time, and says where each went or why it
/// could not.
///
/// FILE is YAML or JSON as `kubectl get -o yaml` or a manifest has it: several documents, lists, whole folders, or `-` for
/// standard input. Deployments and other workloads get the pods that they lack. The same input and seed give the same
/// output, byte for byte.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Exit code: 0 when all pods were placed, 2 when some are pending, 1 on bad input or usage.")]
pub struct SimulateArgs {
    /// Files and folders to load; `-` is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Path to a `KubeSchedulerConfiguration` file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Seed of all random choices: names of generated pods, UIDs, ties that extenders leave
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Number of nodes of a cluster to generate instead of reading files
    #[arg(long, value_name = "N", requires = "pods", conflicts_with = "files")]
    pub nodes: Option<usize>,

    /// Number of pods to place on the generated cluster
    #[arg(long, value_name = "M", requires = "nodes", conflicts_with = "files")]
    pub pods: Option<usize>,

    /// Feature gates, as `Name=true,Other=false`
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<String>,

    /// Kubernetes version whose feature gates apply, from 1.33 to 1.36
    #[arg(long, value_name = "VERSION")]
    pub emulated_version: Vec<String>,

    /// Output format: tables for people, or a document for tools
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,

    /// Print the events that the scheduler wrote, too
    #[arg(long)]
    pub events: bool,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Tables that people read.
    #[default]
    Table,
    /// A document in JSON.
    Json,
    /// A document in YAML.
    Yaml,
}
