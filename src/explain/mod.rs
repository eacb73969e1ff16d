//! The `explain` command, which explains where a pod would be scheduled, or why nowhere.
//!
//! The cluster is loaded from files, as by `simulate`, or read from a running cluster. Nothing is scheduled: each pod is
//! evaluated as if it were the next one.

mod change;
mod live;
mod page;
mod preemption;
mod what_if;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgGroup, Args, ValueEnum};
use serde::Serialize;

pub use change::Change;
pub use live::LiveError;
pub use preemption::PreemptionExplanation;

use what_if::WhatIf;

use crate::client::kubeconfig::LoadingRules;
use crate::framework::{Framework, Registry};
use crate::k8s::Pod;
use crate::model::PodInfo;
use crate::scheduler::{Evaluation, evaluate_then};
use crate::simulate::{Loading, Progress, SimulateArgs, SimulateError, load_cluster, say};

/// Explains where a pending pod would be scheduled, or why it is unschedulable. Prints the rejected nodes with the reasons, and
/// the feasible nodes with their scores. For an unschedulable pod, also prints single changes that would make it schedulable.
///
/// The cluster is read from files in the formats of `simulate`, or from a running cluster. A running cluster is only read:
/// nothing is written to it. It is found as kubectl finds it: by `--kubeconfig`, `$KUBECONFIG` or `~/.kube/config`. Without POD,
/// all pending pods are explained.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("cluster"))]
#[command(after_help = "Exit code: 0 if the pods were explained, 1 for invalid input or usage.")]
pub struct ExplainArgs {
    /// Files and folders to load, or `-` for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", group = "cluster")]
    pub files: Vec<PathBuf>,

    /// Path to the kubeconfig file of the running cluster
    #[arg(long, value_name = "FILE", group = "cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    pub context: Option<String>,

    /// Pod to explain: its name, or `namespace/name`
    #[arg(value_name = "POD")]
    pub pod: Option<String>,

    /// Explain only pods of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Path to a `KubeSchedulerConfiguration` file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Comma-separated list of feature gates: `Name=true,Other=false`
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Vec<String>,

    /// Emulated Kubernetes version, from 1.33 to 1.36. It decides the defaults of feature gates
    #[arg(long, value_name = "VERSION")]
    pub emulated_version: Vec<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    pub output: Form,
}

/// Output format of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A human-readable page.
    #[default]
    Table,
    /// A JSON document with every node and every plugin.
    Json,
}

/// Error that prevents an explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The cluster cannot be loaded.
    #[error(transparent)]
    Load(#[from] SimulateError),
    /// The running cluster cannot be read.
    #[error("kubeconfig {kubeconfig}: {error}")]
    Live {
        /// Paths of the kubeconfig files.
        kubeconfig: String,
        /// Why the cluster cannot be read.
        error: LiveError,
    },
    /// No pod has this name.
    #[error("no pod {name:?} {place}")]
    NoPod {
        /// The name that was given.
        name: String,
        /// The place that was searched, and advice.
        place: &'static str,
    },
    /// Several namespaces have a pod of this name.
    #[error("pod {name:?} exists in several namespaces: specify one of {keys}")]
    Ambiguous {
        /// The name that was given.
        name: String,
        /// Keys of the pods with this name.
        keys: String,
    },
    /// The pod already has a node.
    #[error("pod {pod} is already assigned to node {node}")]
    Placed {
        /// Key of the scheduled pod.
        pod: String,
        /// Name of the pod's node.
        node: String,
    },
    /// No profile schedules the pod.
    #[error(
        "pod {pod}: no profile has the schedulerName {scheduler:?}; pass a configuration that has it with --config"
    )]
    NotOurs {
        /// Key of the pod.
        pod: String,
        /// The scheduler name in the pod.
        scheduler: String,
    },
}

/// Explanations of pods, in the format of the tests' oracle.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Explanation of each requested pod.
    pub pods: Vec<PodExplanation>,
    /// Number of all pending pods, including these.
    #[serde(skip)]
    pub pending: usize,
    /// Number of pending pods of other schedulers, by scheduler name.
    #[serde(skip)]
    pub foreign: BTreeMap<String, usize>,
}

/// Explanation of one pod.
#[derive(Clone, Debug, Serialize)]
pub struct PodExplanation {
    /// Verdict and scores of every node.
    #[serde(flatten)]
    pub evaluation: Evaluation,
    /// Result of a simulated preemption. Present only if no node can take the pod as it is and the profile has the plugin
    /// `DefaultPreemption`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionExplanation>,
    /// Single changes after which some node could take the pod. Empty if some node can take it as it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

impl ExplainArgs {
    /// Whether the cluster is read from files. Otherwise it is a running one.
    fn reads_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Whether the pod's namespace is requested.
    fn covers(&self, pod: &Pod) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| pod.namespace() == namespace)
    }
}

/// Explains the requested pods with these plugins. Prints the duration to stderr.
#[expect(clippy::disallowed_methods, reason = "how long it took is shown on stderr only")]
pub fn explain(args: &ExplainArgs, plugins: Registry) -> Result<Explanation, ExplainError> {
    let began = Instant::now();
    let source = SimulateArgs {
        files: args.files.clone(),
        config: args.config.clone(),
        feature_gates: args.feature_gates.clone(),
        emulated_version: args.emulated_version.clone(),
        ..SimulateArgs::default()
    };
    let cluster = if args.reads_files() {
        load_cluster(&source, plugins)?
    } else {
        let file = args.kubeconfig.as_ref().map(|path| path.to_string_lossy());
        let rules = LoadingRules::from_environment(file.as_deref());
        live::load(&rules, args.context.as_deref(), &source, plugins).map_err(|error| match error {
            LiveError::Scheduler(error) => ExplainError::Load(error),
            error => ExplainError::Live { kubeconfig: rules.paths(), error },
        })?
    };
    let loaded = Instant::now();
    if cluster.has_extenders {
        say(format_args!(
            "warning: the configured extenders are not called, but could reject nodes or change their scores"
        ));
    }
    let pods = match &args.pod {
        Some(name) => vec![find(&cluster, name, args)?],
        None => cluster.pending.iter().filter(|pod| args.covers(pod.pod())).cloned().collect(),
    };
    let mut progress = Progress::new(pods.len(), "pods explained");
    let mut explained = Vec::new();
    for pod in &pods {
        explained.push(explain_pod(&cluster, profile(&cluster, pod)?, pod));
        progress.show(explained.len());
    }
    drop(progress);
    let (loading, explaining) = (loaded - began, loaded.elapsed());
    say(format_args!("loaded in {:.2} s, explained in {:.2} s", loading.as_secs_f64(), explaining.as_secs_f64()));
    let mut foreign = BTreeMap::new();
    if args.pod.is_none() {
        let is_pending = |pod: &&Arc<Pod>| pod.node_name().is_none() && !pod.is_terminal();
        for pod in cluster.others.iter().filter(is_pending).filter(|pod| args.covers(pod)) {
            *foreign.entry(pod.scheduler_name().to_owned()).or_default() += 1;
        }
    }
    Ok(Explanation { pods: explained, pending: cluster.pending.len(), foreign })
}

fn explain_pod(cluster: &Loading, profile: &Framework, pod: &Arc<PodInfo>) -> PodExplanation {
    let mut preemption = None;
    let evaluation = evaluate_then(profile, &cluster.snapshot, pod, cluster.now, &mut |cx, diagnosis| {
        preemption = preemption::explain(cluster, profile, cx, diagnosis);
    });
    let fits_nowhere = evaluation.host.is_empty() && evaluation.error.is_empty() && !cluster.snapshot.is_empty();
    let changes = if fits_nowhere { WhatIf::new(cluster, profile, pod).changes(&evaluation.nodes) } else { Vec::new() };
    PodExplanation { evaluation, preemption, changes }
}

fn profile<'a>(cluster: &'a Loading, pod: &PodInfo) -> Result<&'a Framework, ExplainError> {
    let scheduler = pod.pod().scheduler_name();
    let profile = cluster.profiles.iter().find(|profile| **profile.name() == *scheduler);
    profile
        .map(|profile| &**profile)
        .ok_or_else(|| ExplainError::NotOurs { pod: pod.key().to_string(), scheduler: scheduler.to_owned() })
}

/// Finds the pending pod with this name or key.
fn find(cluster: &Loading, name: &str, args: &ExplainArgs) -> Result<Arc<PodInfo>, ExplainError> {
    let is_it = |pod: &Pod| args.covers(pod) && (pod.name() == name || pod.key() == name);
    let found: Vec<&Arc<PodInfo>> = cluster.pending.iter().filter(|pod| is_it(pod.pod())).collect();
    match found[..] {
        [pod] => return Ok(pod.clone()),
        [] => {}
        _ => {
            let keys: Vec<&str> = found.iter().map(|pod| &**pod.key()).collect();
            return Err(ExplainError::Ambiguous { name: name.to_owned(), keys: keys.join(", ") });
        }
    }
    let Some(other) = cluster.others.iter().find(|pod| is_it(pod)) else {
        let place = if args.reads_files() {
            "in these files; for a pod of a workload, use the name that `simulate` prints"
        } else {
            "in this cluster, or it is completed"
        };
        return Err(ExplainError::NoPod { name: name.to_owned(), place });
    };
    let pod = other.key();
    Err(match other.node_name() {
        Some(node) => ExplainError::Placed { pod, node: node.to_owned() },
        None => ExplainError::NotOurs { pod, scheduler: other.scheduler_name().to_owned() },
    })
}
