//! The `simulate` command, which schedules the pods of cluster files in a simulated cluster and in virtual time.
//!
//! Only the API server is simulated. Informers, cache, queue, plugins, cycles and API writes are those of production.
//! One thread runs the tasks until they are idle, takes one step of the scheduler, and jumps to the next deadline.

mod args;
mod budgets;
mod controllers;
mod daemon;
mod documents;
mod files;
mod generate;
mod hash;
mod json;
mod load;
mod owned;
mod progress;
mod report;
mod say;
mod table;
mod workloads;
mod world;
mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

pub use args::{Output, SimulateArgs};
pub use load::{Input, LoadError, Loaded, Origin, load};
pub use report::{EventReport, NodeReport, PodReport, PreemptedReport, Report, Totals};
pub use say::say;

pub(crate) use progress::Progress;
use report::{UsageBefore, assigned_node};
pub(crate) use table::columns;
use world::{Running, World, WorldOptions};

use crate::apiserver::kinds;
use crate::clock::Now;
use crate::config::{Config, ConfigError, FeatureGates, GateError, GateFlags, PluginCatalog};
use crate::engine::{Engine, TaskEnd};
use crate::framework::preemption::MinCandidates;
use crate::framework::{Framework, Registry};
use crate::k8s::Pod;
use crate::model::{PodInfo, ResourceGates, Snapshot};

/// Maximum number of pods created for workloads, and of nodes and pods of a generated cluster. Kubernetes is tested up to
/// 150,000 pods per cluster. A request for much more than that is probably a mistake, and each pod takes about ten kilobytes of
/// memory.
const MAX_MADE: usize = 1_000_000;

/// Start of every simulation: 2026-01-01T00:00:00Z.
const EPOCH_SECONDS: u64 = 1_767_225_600;

/// Error that prevents a simulation.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SimulateError {
    /// Neither files nor numbers were given.
    #[error("nothing to simulate: specify files, or --nodes and --pods")]
    NoInput,
    /// A file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The configuration is invalid or not supported.
    #[error("{file}: {error}")]
    Config {
        /// Name of the file.
        file: String,
        /// Why the configuration is rejected.
        error: String,
    },
    /// The feature gates are invalid.
    #[error(transparent)]
    Gates(Arc<GateError>),
    /// The API server rejects an object.
    #[error("{origin}: {object}: {error}")]
    Object {
        /// Origin of the object in the input.
        origin: String,
        /// The object as `Kind namespace/name`.
        object: String,
        /// Message of the API server.
        error: String,
    },
    /// The API server rejects a generated object.
    #[error("generating a cluster: {0}")]
    Generate(String),
    /// The scheduler cannot be built.
    #[error("{0}")]
    Engine(String),
    /// The requested number of objects is too large.
    #[error("--{flag} {number}: must be at most {most}")]
    TooMany {
        /// Name of the flag.
        flag: &'static str,
        /// Value of the flag.
        number: usize,
        /// Maximum value of the flag.
        most: usize,
    },
    /// The async runtime cannot be started.
    #[error("starting the async runtime: {0}")]
    Runtime(String),
    /// A task that must not end has ended.
    #[error(transparent)]
    Task(Arc<TaskEnd>),
    /// Pods are being scheduled or terminated, but no event is due that could move them.
    #[error("simulation is stuck: pods are in flight or terminating, but no event is due")]
    Stuck,
}

/// A loaded cluster before any pending pod is scheduled.
#[derive(Debug)]
pub struct Loading {
    /// The profiles, in the order of the configuration.
    pub profiles: Vec<Arc<Framework>>,
    /// The nodes, with the pods on them.
    pub snapshot: Snapshot,
    /// Unassigned pods of these profiles, by namespace and name.
    pub pending: Vec<Arc<PodInfo>>,
    /// All pods that are not in `pending`.
    pub others: Vec<Arc<Pod>>,
    /// The number of candidates that `DefaultPreemption` looks for, by profile.
    pub preemption: BTreeMap<String, MinCandidates>,
    /// Whether extenders are configured. Only a scheduling cycle asks them.
    pub has_extenders: bool,
    /// Gates that decide which resources of a pod count.
    pub resource_gates: ResourceGates,
    /// The time at which the cluster was loaded.
    pub now: Now,
}

impl Loading {
    /// Returns the cluster in an engine's cache at this moment.
    pub(crate) fn of(
        engine: &Engine,
        preemption: BTreeMap<String, MinCandidates>,
        now: Now,
    ) -> Result<Self, SimulateError> {
        let (shared, profiles) = (&engine.shared, &engine.profiles);
        let mut snapshot = Snapshot::default();
        shared.cache.update_snapshot(&mut snapshot).map_err(|error| SimulateError::Engine(error.to_string()))?;
        let is_ours = |pod: &Pod| profiles.iter().any(|profile| **profile.name() == *pod.scheduler_name());
        let mut pods = shared.pods.list();
        pods.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        let (pending, others): (Vec<_>, Vec<_>) =
            pods.into_iter().partition(|pod| pod.node_name().is_none() && is_ours(pod));
        let info = |pod| Arc::new(PodInfo::with_gates(pod, &shared.classes, shared.resource_gates));
        Ok(Self {
            profiles: profiles.clone(),
            snapshot,
            pending: pending.into_iter().map(info).collect(),
            others,
            preemption,
            has_extenders: !shared.extenders.is_empty(),
            resource_gates: shared.resource_gates,
            now,
        })
    }
}

/// Loads a cluster like [`simulate`], without scheduling any pod.
pub fn load_cluster(args: &SimulateArgs, plugins: Registry) -> Result<Loading, SimulateError> {
    let running = start(args, plugins)?;
    let loading = running.look();
    // As in `simulate`, the world is not dropped, since the process ends soon.
    std::mem::forget(running);
    loading
}

/// Runs a simulation with these plugins. Prints warnings and the duration to stderr.
#[expect(clippy::disallowed_methods, reason = "how long it took is shown on stderr only")]
pub fn simulate(args: &SimulateArgs, plugins: Registry) -> Result<Report, SimulateError> {
    let began = Instant::now();
    let mut running = start(args, plugins)?;
    let before = UsageBefore::take(&running);
    let pods = running.server().list(&kinds::PODS);
    let placed = pods.iter().filter(|pod| assigned_node(pod).is_some()).map(|pod| pod.uid().to_owned()).collect();
    let mut progress = Progress::new(pods.len(), "pods");
    running.run(&mut progress)?;
    drop(progress);
    let report = Report::new(&running, before, &placed, args.events);
    // The process ends soon, and dropping a large world would only delay that.
    std::mem::forget(running);
    let seconds = began.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = report.totals.placed as f64 / seconds;
    say(format_args!("took {seconds:.2} s of real time, {rate:.0} pods placed per second"));
    Ok(report)
}

/// Loads or generates the cluster, and starts a scheduler on it.
fn start(args: &SimulateArgs, plugins: Registry) -> Result<Running, SimulateError> {
    for (flag, number) in [("nodes", args.nodes), ("pods", args.pods)] {
        if let Some(number) = number.filter(|number| *number > MAX_MADE) {
            return Err(SimulateError::TooMany { flag, number, most: MAX_MADE });
        }
    }
    let gates = gates(args)?;
    let config = config(args, &gates, plugins.catalog())?;
    let mut world = World::new(WorldOptions { config, gates, plugins, seed: args.seed })?;
    match (args.nodes, args.pods) {
        (Some(nodes), Some(pods)) => world.generate(nodes, pods)?,
        _ if args.files.is_empty() => return Err(SimulateError::NoInput),
        _ => {
            let input = load(&args.files)?;
            for (kind, count) in &input.ignored {
                say(format_args!("warning: ignoring {count} × {kind}: not used by scheduling"));
            }
            world.load(input.objects)?;
        }
    }
    world.start().map_err(|error| error.in_config(args))
}

impl SimulateError {
    /// Adds the configuration file to the error of an engine that cannot be built.
    pub(crate) fn in_config(self, args: &SimulateArgs) -> Self {
        match (self, &args.config) {
            (Self::Engine(error), Some(path)) => Self::Config { file: path.display().to_string(), error },
            (error, _) => error,
        }
    }
}

/// Returns the feature gates that the flags set.
pub(crate) fn gates(args: &SimulateArgs) -> Result<FeatureGates, SimulateError> {
    FeatureGates::from_flags(GateFlags {
        feature_gates: &args.feature_gates,
        emulated_version: &args.emulated_version,
        ..GateFlags::default()
    })
    .map_err(|error| SimulateError::Gates(Arc::new(error)))
}

/// Reads and validates the configuration, and warns of fields that are not supported.
pub(crate) fn config(
    args: &SimulateArgs,
    gates: &FeatureGates,
    plugins: &PluginCatalog,
) -> Result<Config, SimulateError> {
    let Some(path) = &args.config else { return Ok(Config::defaults(gates, plugins)) };
    let file = path.display().to_string();
    let config = Config::load(path, gates, plugins)
        .map_err(|error: ConfigError| SimulateError::Config { file: file.clone(), error: error.to_string() })?;
    config
        .validate(gates, plugins)
        .map_err(|error| SimulateError::Config { file: file.clone(), error: error.to_string() })?;
    for warning in config.warnings() {
        say(format_args!("warning: {file}: {warning}"));
    }
    Ok(config)
}
