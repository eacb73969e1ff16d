//! The command line of `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Schedules the pending pods of cluster files on a simulated cluster, in virtual time. Prints the node of each pod, or the
/// reason why it is pending.
///
/// FILE is a manifest or the output of `kubectl get -o yaml` or `-o json`, a folder of such files, or `-` for standard input. A
/// file may have several documents and lists. Missing pods of Deployments and other workloads are created. The same input and
/// seed always give the same output.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Exit code: 0 if all pods were placed, 2 if some are pending, 1 for invalid input or usage.")]
pub struct SimulateArgs {
    /// Files and folders to load, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Path to a `KubeSchedulerConfiguration` file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Seed for random names, UIDs, and choices between nodes with equal scores
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Generate a cluster with this number of nodes instead of reading files
    #[arg(long, value_name = "N", requires = "pods", conflicts_with = "files")]
    pub nodes: Option<usize>,

    /// Number of pending pods in the generated cluster
    #[arg(long, value_name = "M", requires = "nodes", conflicts_with = "files")]
    pub pods: Option<usize>,

    /// Comma-separated list of feature gates: `Name=true,Other=false`
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<String>,

    /// Emulated Kubernetes version, from 1.33 to 1.36. It decides the defaults of feature gates
    #[arg(long, value_name = "VERSION")]
    pub emulated_version: Vec<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,

    /// Also print the events that the scheduler wrote
    #[arg(long)]
    pub events: bool,
}

/// Output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Human-readable tables.
    #[default]
    Table,
    /// A JSON document.
    Json,
    /// A YAML document.
    Yaml,
}
