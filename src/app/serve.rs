//! Schedules a real cluster: flags to configuration to client to a running engine, in phases.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::logging::{self, Verbosity};
use super::{DONE, FAILED, debugger};
use crate::clock::Clock;
use crate::config::flags::LogFormat;
use crate::config::{Config, FeatureGates, FlagError, Flags, VersionFlag};
use crate::dispatcher::client;
use crate::engine::{Engine, EngineOptions};
use crate::extender;
use crate::framework::Registry;
use crate::ingest::Ingest;
use crate::plugins::admission::node_check;
use crate::scheduler::Scheduler;
use crate::simulate::say;

/// The version that this scheduler reports and stands in for.
const VERSION: &str = "v1.36.3";

/// What ends a scheduler that was told to end, without leader election.
/// Follows `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.
const FINISHED: &str = "finished without leader elect";

/// Does what the flags say. Follows `cmd/kube-scheduler/app/server.go#NewSchedulerCommand`, `#runCommand @v1.36.3`.
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
        Some(VersionFlag::Print) => return print_version(format_args!("Kubernetes {VERSION}")),
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
    match runtime.block_on(schedule(plugins, &flags, gates)) {
        Ok(()) => ExitCode::from(DONE),
        Err(error) => failed(&error),
    }
}

fn print_version(text: std::fmt::Arguments<'_>) -> ExitCode {
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::from(DONE)
}

/// All that is known of the build, as Go prints it. Follows `component-base/version/base.go @v1.36.3`.
fn raw_version() -> String {
    let platform = format!("linux/{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    format!(
        "version.Info{{Major:\"1\", Minor:\"36\", EmulationMajor:\"\", EmulationMinor:\"\", MinCompatibilityMajor:\"\", \
         MinCompatibilityMinor:\"\", GitVersion:\"{VERSION}\", GitCommit:\"\", GitTreeState:\"\", BuildDate:\"\", \
         GoVersion:\"\", Compiler:\"rustc\", Platform:\"{platform}\"}}"
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

/// What plugins warn of, such as preferences that they ignore, and which objects cannot be read, goes to stderr.
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
    // A second App in one process keeps the first one's log.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
}

async fn schedule(plugins: Registry, flags: &Flags, gates: FeatureGates) -> anyhow::Result<()> {
    flags.check(&gates).map_err(|error| anyhow!(error))?;
    for warning in gates.warnings() {
        tracing::warn!("{warning}");
    }
    let mut config = flags.config(&gates).map_err(|error| anyhow!("{error}"))?;
    let extenders = extender::build(&mut config)?;
    let effective = config.to_v1();
    let client = connect(&config, flags).await?;
    if flags.misc.write_config_to.is_none() {
        refuse(&config)?;
    }
    info!(version = VERSION, "Starting Kubernetes Scheduler");
    let max_in_unschedulable = flags.pod_max_in_unschedulable_pods().to_std().unwrap_or_default();
    let runtime = tokio::runtime::Handle::current();
    let engine = Engine::new(EngineOptions {
        client: client.clone(),
        config,
        gates,
        plugins,
        extenders,
        clock: Clock::real(),
        metrics: prometheus::Registry::new(),
        seed: seed(),
        hostname: hostname(),
        runtime,
        max_in_unschedulable,
    })
    .await?;
    if let Some(path) = flags.misc.write_config_to.as_deref().filter(|path| !path.is_empty()) {
        return write_config(path, &effective);
    }
    let check = node_check(engine.profiles[0].handle());
    let ingest =
        Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client).with_seed(seed()).with_node_check(check);
    ingest.start(|name, task| engine.tasks.serve(name, task));
    engine.start_metrics();
    until_told(engine, ingest).await
}

/// Writes the configuration as it would be used. Follows `cmd/kube-scheduler/app/options/configfile.go#LogOrWriteConfig
/// @v1.36.3`.
fn write_config(path: &str, config: &serde_json::Value) -> anyhow::Result<()> {
    std::fs::write(path, serde_yaml::to_string(config)?).map_err(|error| anyhow!("open {path}: {error}"))?;
    info!(file = path, "Wrote configuration");
    Ok(())
}

/// What is configured and not built yet would change decisions, or be missed.
fn refuse(config: &Config) -> anyhow::Result<()> {
    if config.leader_election.leader_elect {
        return Err(anyhow!(
            "leader election is not supported yet: add --leader-elect=false, or leaderElection.leaderElect: false in the \
             configuration file"
        ));
    }
    Ok(())
}

/// The client of the kubeconfig that flags or configuration name; inside a cluster, of the service account.
async fn connect(config: &Config, flags: &Flags) -> anyhow::Result<kube::Client> {
    let path = &config.client_connection.kubeconfig;
    if let (Some(_), Some(file)) = (&flags.deprecated.kubeconfig, &flags.misc.config) {
        tracing::warn!("--kubeconfig is ignored, as --config is given: {file} has clientConnection.kubeconfig for it");
    }
    let mut connection = if path.is_empty() {
        if flags.misc.master.is_none() {
            tracing::warn!(
                "Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."
            );
        }
        match kube::Config::incluster() {
            Ok(config) => config,
            Err(_) if flags.misc.master.is_some() => kube::Config::new(http::Uri::from_static("http://localhost")),
            Err(_) => {
                return Err(anyhow!(
                    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
                ));
            }
        }
    } else {
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Err(anyhow!("stat {path}: no such file or directory"));
        }
        let file = kube::config::Kubeconfig::read_from(path).map_err(|error| anyhow!("kubeconfig {path}: {error}"))?;
        kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default())
            .await
            .with_context(|| format!("using kubeconfig {path}"))?
    };
    if let Some(master) = &flags.misc.master {
        connection.cluster_url = master.parse().with_context(|| format!("--master {master}"))?;
    }
    client::client(connection, client::AGENT).context("building the client")
}

/// Nothing about scheduling a real cluster repeats; only ties that extenders leave, and jitter, are drawn.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// Waits until the informers have seen the cluster, and schedules until the process is told to end, or until something
/// ends that must not.
async fn until_told(engine: Engine, ingest: Ingest) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut told = async || {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let Engine { scheduler, shared, tasks, mut fatal, .. } = engine;
    tokio::select! {
        biased;
        () = told() => return Err(anyhow!(FINISHED)),
        Some(end) = fatal.recv() => return Err(anyhow!(end)),
        () = ingest.synced() => {}
    }
    shared.queue.run(shared.clock.now());
    let (thread, ended) = scheduling_thread(scheduler)?;
    tasks.serve("debugger", debugger::on_signal(shared.clone()));
    let outcome = tokio::select! {
        biased;
        () = told() => Err(anyhow!(FINISHED)),
        Some(end) = fatal.recv() => Err(anyhow!(end)),
        _ = ended => Err(anyhow!("the scheduling thread ended before its time")),
    };
    info!("Shutting down");
    tasks.stop();
    shared.writes.close();
    shared.queue.close();
    let joined = tokio::task::spawn_blocking(move || thread.join());
    tokio::select! {
        biased;
        () = told() => Err(anyhow!("second signal")),
        _ = joined => outcome,
    }
}

/// Starts the one thread that schedules. The receiver hears of its end, be it a panic.
fn scheduling_thread(
    mut scheduler: Scheduler,
) -> anyhow::Result<(std::thread::JoinHandle<()>, tokio::sync::oneshot::Receiver<()>)> {
    let (alive, ended) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::Builder::new()
        .name("scheduler".to_owned())
        .spawn(move || {
            let _alive = alive;
            scheduler.run();
        })
        .context("starting the scheduling thread")?;
    Ok((thread, ended))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::apiserver::{ApiServer, Options};
    use crate::framework::{BindContext, BindOutcome, BindPlugin, BoxFuture};
    use crate::framework::{
        CycleContext, Plugin, PluginError, PreFilterOutcome, PreFilterPlugin, QueueSortKey, QueueSortPlugin,
        Registration,
    };
    use crate::testing::{node, pod};

    /// A plugin that panics in the scheduling cycle.
    struct Explosive;

    impl Plugin for Explosive {
        fn name(&self) -> &'static str {
            "Explosive"
        }
    }

    impl QueueSortPlugin for Explosive {
        fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool {
            a.timestamp < b.timestamp
        }
    }

    impl PreFilterPlugin for Explosive {
        fn pre_filter(&self, _: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
            panic!("boom")
        }
    }

    impl BindPlugin for Explosive {
        fn bind<'a>(&'a self, _: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
            Box::pin(async { Ok(BindOutcome::Skip) })
        }
    }

    const CONFIG: &str = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: \
        [{plugins: {multiPoint: {enabled: [{name: Explosive}], disabled: [{name: '*'}]}}}]}";

    /// A scheduler on a server with one node, and with one pod if there is to be one.
    async fn start(with_pod: bool) -> (Engine, Ingest) {
        let clock = Clock::real();
        let server = ApiServer::new(Options::by_clock(&clock));
        let objects = [node("n").json()].into_iter().chain(with_pod.then(|| pod("p").json()));
        objects.for_each(|object| drop(server.load(object).expect("an object that a server takes")));
        let gates = crate::config::FeatureGates::default();
        let mut plugins = Registry::default();
        let factory = |_, _: &crate::framework::Handle| {
            let plugin = Arc::new(Explosive);
            Ok(Registration::new("Explosive").queue_sort(&plugin).pre_filter(&plugin).bind(&plugin))
        };
        plugins.register("Explosive", factory).expect("the name is free");
        let options = EngineOptions {
            client: server.client(),
            config: Config::parse(format!("# YAML\n{CONFIG}").as_bytes(), &gates).expect("a configuration"),
            gates,
            plugins,
            extenders: Vec::new(),
            clock,
            metrics: prometheus::Registry::new(),
            seed: 1,
            hostname: "host".to_owned(),
            runtime: tokio::runtime::Handle::current(),
            max_in_unschedulable: std::time::Duration::from_mins(5),
        };
        let engine = Engine::new(options).await.expect("its parts fit");
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, server.client());
        ingest.start(|name, task| engine.tasks.serve(name, task));
        (engine, ingest)
    }

    #[tokio::test]
    async fn a_panic_of_the_scheduling_thread_ends_the_process() {
        let (engine, ingest) = start(true).await;
        let end = until_told(engine, ingest).await.expect_err("it does not just end");
        assert_eq!(end.to_string(), "the scheduling thread ended before its time");
    }

    #[tokio::test]
    async fn a_task_that_ends_ends_the_process() {
        let (engine, ingest) = start(false).await;
        assert_eq!(engine.tasks.kill("dispatcher"), 1);
        let end = until_told(engine, ingest).await.expect_err("it does not just end");
        assert_eq!(end.to_string(), "task \"dispatcher\" ended before its time");
    }
}
