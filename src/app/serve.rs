//! Schedules a real cluster: flags to configuration to client to a running engine, in phases.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::{DONE, FAILED, debugger};
use crate::clock::Clock;
use crate::config::{Config, FlagError, Flags, VersionFlag};
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

/// Does what the flags say.
pub(super) fn run(plugins: Registry, arguments: Vec<OsString>) -> ExitCode {
    let flags = match parse(arguments) {
        Ok(flags) => flags,
        Err(error) => {
            say(format_args!("{}", error.to_string().trim_end()));
            return ExitCode::from(FAILED);
        }
    };
    if flags.global.help == Some(true) {
        let _ = write!(std::io::stdout(), "{}", Flags::help());
        return ExitCode::from(DONE);
    }
    if let Some(VersionFlag::Print | VersionFlag::Raw) = &flags.global.version {
        let _ = writeln!(std::io::stdout(), "Kubernetes {VERSION}");
        return ExitCode::from(DONE);
    }
    log(flags.verbosity());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow!(error)),
    };
    match runtime.block_on(schedule(plugins, &flags)) {
        Ok(()) => ExitCode::from(DONE),
        Err(error) => failed(&error),
    }
}

fn parse(arguments: Vec<OsString>) -> Result<Flags, FlagError> {
    let text = |argument: OsString| argument.to_string_lossy().into_owned();
    Flags::parse(arguments.into_iter().skip(1).map(text))
}

fn failed(error: &anyhow::Error) -> ExitCode {
    error!(err = format_args!("{error:#}"), "command failed");
    ExitCode::from(FAILED)
}

/// Logs go to stderr; `-v` raises what is logged as upstream's levels do.
fn log(verbosity: u32) {
    let level = match verbosity {
        0 | 1 => tracing::Level::INFO,
        2..=3 => tracing::Level::DEBUG,
        _ => tracing::Level::TRACE,
    };
    // kube logs each refused request as an error of its own; ours are logged where they matter.
    let filter = tracing_subscriber::filter::Targets::new()
        .with_target("kube_scheduler", level)
        .with_default(tracing::Level::WARN)
        .with_target("kube_client", tracing_subscriber::filter::LevelFilter::OFF);
    let layer =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).log_internal_errors(false);
    // A second App in one process, as tests have it, keeps the first one's log.
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
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

async fn schedule(plugins: Registry, flags: &Flags) -> anyhow::Result<()> {
    let gates = flags.gates().map_err(|error| anyhow!("{error}"))?;
    for warning in gates.warnings() {
        tracing::warn!("{warning}");
    }
    let mut config = flags.config(&gates).map_err(|error| anyhow!("{error}"))?;
    refuse(&config)?;
    info!(version = VERSION, "Starting Kubernetes Scheduler");
    let extenders = extender::build(&mut config)?;
    let client = connect(&config, flags).await?;
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
    let check = node_check(engine.profiles[0].handle());
    let ingest =
        Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client).with_seed(seed()).with_node_check(check);
    ingest.start(|name, task| engine.tasks.serve(name, task));
    engine.start_metrics();
    until_told(engine, ingest).await
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
