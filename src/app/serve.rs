//! Runs the scheduler of a real cluster: parses flags, loads the configuration, connects, and starts the engine.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::anyhow;
use tracing::{error, info};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::endpoints::{self, About, Progress};
use super::lead::{Replica, until_told};
use super::logging::{self, Verbosity};
use super::{DONE, FAILED, connect, signals};
use crate::client::{Fence, RateLimiter, RestClient, Sending, Transport};
use crate::clock::{Clock, Rng};
use crate::config::flags::LogFormat;
use crate::config::{Config, DEFAULT_SCHEDULER_NAME, FeatureGates, FlagError, Flags, Gate, OLDEST_MINOR, VersionFlag};
use crate::election::{Candidacy, Elector, LeaseLock, Term, Times, Versions, watch};
use crate::engine::Engine;
use crate::events::{EventBroadcaster, EventTask, EventsApi};
use crate::extender;
use crate::framework::{BoxFuture, Registry};
use crate::go::errno;
use crate::ingest::Ingest;
use crate::metrics::component::{Build, OwnBuild};
use crate::metrics::{self, ElectionMetrics, RestMetrics};
use crate::plugins::admission::node_check;
use crate::plugins::node_resources;
use crate::simulate::say;
use crate::version::{self, KUBERNETES, PLATFORM};

/// Name of the leader election in metrics and health checks, whatever the name of the lease.
/// Follows `cmd/kube-scheduler/app/options/options.go#makeLeaderElectionConfig @v1.36.3`.
const ELECTION: &str = "kube-scheduler";

/// Runs the command that the flags describe.
/// Follows `cmd/kube-scheduler/app/server.go#NewSchedulerCommand`, `#runCommand @v1.36.3`.
pub(super) fn run(plugins: Registry, arguments: Vec<OsString>) -> ExitCode {
    let flags = match parse(arguments) {
        Ok(flags) => flags,
        Err(error) => {
            let usage = if matches!(error, FlagError::Usage(_)) { Flags::usage() } else { String::new() };
            say(format_args!("{usage}Error: {}", error.to_string().trim_end()));
            return ExitCode::from(FAILED);
        }
    };
    if flags.global.help == Some(true) {
        let _ = write!(std::io::stdout(), "{}", Flags::help());
        return ExitCode::from(DONE);
    }
    let verbosity = Verbosity::new(flags.verbosity(), flags.logs.levels());
    let gates = match flags.gates() {
        Ok(gates) => gates,
        Err(error) => {
            logging::start(LogFormat::Text, &verbosity);
            return failed(&anyhow!("{error}"));
        }
    };
    match &flags.global.version {
        Some(VersionFlag::Print) => return print_version(format_args!("Kubernetes {KUBERNETES}")),
        Some(VersionFlag::Raw) => return print_version(format_args!("{}", raw_version())),
        Some(VersionFlag::No | VersionFlag::Report(_)) | None => {}
    }
    if let Err(error) = flags.logs.check(&gates) {
        say(format_args!("{error}"));
        return ExitCode::from(FAILED);
    }
    logging::start(flags.logs.format(), &verbosity);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow!(error)),
    };
    match runtime.block_on(schedule(plugins, &flags, gates, verbosity)) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

fn print_version(text: std::fmt::Arguments<'_>) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::from(DONE)
}

/// Formats all build information as Go prints it. Follows `component-base/version/base.go @v1.36.3`.
fn raw_version() -> String {
    format!(
        "version.Info{{Major:\"1\", Minor:\"36\", EmulationMajor:\"\", EmulationMinor:\"\", MinCompatibilityMajor:\"\", \
         MinCompatibilityMinor:\"\", GitVersion:\"{KUBERNETES}\", GitCommit:\"\", GitTreeState:\"\", BuildDate:\"\", \
         GoVersion:\"\", Compiler:\"rustc\", Platform:\"{PLATFORM}\"}}"
    )
}

fn parse(arguments: Vec<OsString>) -> Result<Flags, FlagError> {
    let text = |argument: OsString| argument.to_string_lossy().into_owned();
    Flags::parse(arguments.into_iter().skip(1).map(text))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    error!(err = format_args!("{error:#}"), "command failed");
    ExitCode::from(FAILED)
}

/// Logs two kinds of warnings to stderr: those of plugins, such as ignored preferences, and those about unreadable objects.
pub(super) fn log_warnings() {
    let filter = tracing_subscriber::filter::Targets::new()
        .with_target("kube_scheduler::plugins", tracing::Level::WARN)
        .with_target("kube_scheduler::ingest::decode", tracing::Level::WARN)
        .with_default(tracing_subscriber::filter::LevelFilter::OFF);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .log_internal_errors(false);
    // If a process runs several `App`s, the log of the first one stays in use.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
}

async fn schedule(
    plugins: Registry,
    flags: &Flags,
    gates: FeatureGates,
    verbosity: Verbosity,
) -> anyhow::Result<ExitCode> {
    signals::ignore();
    flags.check(&gates).map_err(|error| anyhow!(error))?;
    for warning in gates.warnings() {
        tracing::warn!("{warning}");
    }
    let mut config = flags.config(&gates, plugins.catalog()).map_err(|error| anyhow!("{error}"))?;
    let clock = Clock::real();
    let connection = connect::transport(&config, flags, &clock)?;
    let extenders = extender::build(&mut config, node_resources::ignore_resources)?;
    let effective = config.to_v1();
    let metrics = registry(&gates)?;
    let rest = RestMetrics::new(&metrics, &connection.host())?;
    let written_to = flags.misc.write_config_to.as_deref().filter(|path| !path.is_empty());
    // A process that only writes its configuration takes no part in the election, so the election's times are not checked.
    let candidate = match written_to {
        Some(_) if config.leader_election.leader_elect => {
            Times::check_lock(&config.leader_election).map_err(|error| anyhow!(error))?;
            None
        }
        Some(_) => None,
        None => candidate(&config, &connection, &clock, &metrics, &rest)?,
    };
    let client = connect::client(&connection, "scheduler", &rest);
    let (delays_cache, profiling) = (config.delay_cache_until_active, config.enable_profiling);
    let engine = Engine::builder(client.clone(), config, plugins)
        .gates(gates)
        .extenders(extenders)
        .clock(clock.clone())
        .sending(Sending {
            fence: candidate.as_ref().map(|candidate| candidate.fence.clone()),
            metrics: Some(rest.clone()),
        })
        .metrics(metrics)
        .seed(seed())
        .hostname(hostname())
        .max_in_unschedulable(flags.pod_max_in_unschedulable_pods().to_std().unwrap_or_default())
        .build()
        .await?;
    let candidacy = candidate.as_ref().filter(|_| gates.enabled(Gate::CoordinatedLeaderElection)).map(|candidate| {
        // The client shares the scheduler's rate limit, but its requests do not require the lease.
        let sending = Sending { metrics: Some(rest.clone()), ..Sending::default() };
        let rest = engine.shared.writes.rest().clone().sending(sending);
        Candidacy::new(rest, candidate.elector.identity(), versions(&gates))
    });
    let progress = Arc::new(Progress::default());
    let about = About {
        config: effective.clone(),
        profiling,
        verbosity,
        term: candidate.as_ref().map(|candidate| candidate.term.clone()),
        knows_candidate: candidacy.as_ref().map(|candidacy| Box::new(candidacy.synced()) as Box<_>),
        progress: progress.clone(),
        seed: seed(),
    };
    let server = endpoints::bind(flags, &engine, about, &rest).await?;
    if let Some(path) = written_to {
        return write_config(path, &effective);
    }
    info!(version = KUBERNETES, "Starting Kubernetes Scheduler");
    info!(
        version = version::OWN,
        commit = version::COMMIT,
        compiler = version::COMPILER,
        platform = PLATFORM,
        "Running {} instead of upstream's kube-scheduler",
        version::PROGRAM
    );
    tracing::warn!("Pods with PersistentVolumeClaims or ResourceClaims are not supported yet and stay pending");
    let candidacy = candidacy.map(|candidacy| {
        let seen = watch(client.clone(), candidacy.name(), clock);
        Box::pin(candidacy.run(seen)) as BoxFuture<'static, ()>
    });
    let check = node_check(engine.profiles[0].handle()).map_err(|error| anyhow::anyhow!("{error}"))?;
    let ingest =
        Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client).with_seed(seed()).with_node_check(check);
    info!(resources = ingest.resources(), "Watching resources");
    engine.start_metrics();
    let elector = candidate.map(|candidate| {
        engine.tasks.serve("event recorder of the lease", candidate.events.run());
        if candidacy.is_some() { candidate.elector.coordinated() } else { candidate.elector }
    });
    until_told(engine, ingest, Replica { elector, candidacy, delays_cache, server, progress }).await
}

/// Returns the versions by which leaders are chosen.
/// Follows `component-base/compatibility/version.go#effectiveVersion @v1.36.3`.
fn versions(gates: &FeatureGates) -> Versions {
    let binary = KUBERNETES.trim_start_matches('v').to_owned();
    Versions { binary, emulation: format!("1.{}.0", gates.emulated_minor()) }
}

/// Creates a registry with the metrics of every component. Names must be unique in it, so a process has one registry.
fn registry(gates: &FeatureGates) -> Result<prometheus::Registry, prometheus::Error> {
    let registry = prometheus::Registry::new();
    metrics::process::register(&registry)?;
    let emulated = gates.emulated_minor();
    let (emulation, min_compat) = (format!("1.{emulated}"), format!("1.{}", (emulated - 1).max(OLDEST_MINOR)));
    let build = Build {
        major: "1",
        minor: "36",
        git_version: KUBERNETES,
        platform: PLATFORM,
        compiler: "rustc",
        emulation: &emulation,
        min_compat: &min_compat,
    };
    let gates = Gate::ALL.iter().map(|gate| (gate.name(), gate.stage(emulated).name(), gates.enabled(*gate)));
    metrics::component::register(&registry, build, gates)?;
    let own = OwnBuild {
        version: version::OWN,
        git_commit: version::COMMIT,
        compiler: version::COMPILER,
        platform: PLATFORM,
    };
    metrics::component::register_own(&registry, own)?;
    Ok(registry)
}

/// The parts of a candidate in leader election.
struct Candidate {
    elector: Elector,
    term: Term,
    fence: Fence,
    events: EventTask,
}

/// Creates the candidate that the configuration asks for. Follows `cmd/kube-scheduler/app/options/options.go#Config`,
/// `#makeLeaderElectionConfig @v1.36.3`.
fn candidate(
    config: &Config,
    connection: &Transport,
    clock: &Clock,
    metrics: &prometheus::Registry,
    requests: &RestMetrics,
) -> anyhow::Result<Option<Candidate>> {
    let election = &config.leader_election;
    if !election.leader_elect {
        return Ok(None);
    }
    let times = Times::checked(election).map_err(|error| anyhow!(error))?;
    let limits = &config.client_connection;
    let rest = |client| {
        let limiter = RateLimiter::of_client(limits.qps, limits.burst);
        let sending = Sending { metrics: Some(requests.clone()), ..Sending::default() };
        RestClient::new(client, limiter, clock.clone()).sending(sending)
    };
    let mut rng = Rng::from_seed(seed());
    let identity = format!("{}_{}", hostname(), rng.uuid());
    let term = Term::new(clock.clone(), times.lease_duration, ELECTION);
    // Upstream's event client has the user agent of the scheduler's client, because both share their settings.
    let events = rest(connect::client(connection, "scheduler", requests));
    let (broadcaster, events) = EventBroadcaster::new(events, EventsApi::CoreV1, &hostname(), rng.split());
    let speaker = config.profiles.first().map_or(DEFAULT_SCHEDULER_NAME, |profile| profile.scheduler_name.as_str());
    let lock = LeaseLock::new(
        rest(connect::client(connection, "leader-election", requests)),
        &election.resource_namespace,
        &election.resource_name,
        times.request_timeout(),
    );
    let families = ElectionMetrics::new(metrics, ELECTION)?;
    let recorder = broadcaster.recorder(speaker);
    let elector = Elector::new(lock, identity, times, term.clone(), clock.clone(), rng, recorder, families);
    let fence = term.clone();
    Ok(Some(Candidate { elector, term, fence: Arc::new(move || fence.lasts()), events }))
}

/// Writes the effective configuration. Follows `cmd/kube-scheduler/app/options/configfile.go#LogOrWriteConfig
/// @v1.36.3`.
fn write_config(path: &str, config: &serde_json::Value) -> anyhow::Result<ExitCode> {
    std::fs::write(path, serde_yaml::to_string(config)?)
        .map_err(|error| anyhow!("open {path}: {}", errno::text(&error)))?;
    info!(file = path, "Wrote configuration");
    Ok(ExitCode::from(DONE))
}

/// Returns a random seed for jitter, for the scheduler's random decisions, and for this process's identity in the election.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}
