//! Run of a scheduler: informers, leader election if it is on, then scheduling until shutdown.
//!
//! Follows `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use anyhow::{Context as _, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::{error, info};

use super::endpoints::Progress;
use super::serving::Serving;
use super::{DONE, FAILED, debugger};
use crate::election::Elector;
use crate::engine::{Engine, Fatal, TaskEnd, Tasks};
use crate::framework::BoxFuture;
use crate::ingest::Ingest;
use crate::scheduler::Scheduler;
use crate::serve::Server;

/// Error of a scheduler that was told to shut down, without leader election.
const FINISHED: &str = "finished without leader elect";

/// One replica of the scheduler: its part in leader election, and its server.
pub(super) struct Replica {
    /// The leader elector, with leader election on.
    pub(super) elector: Option<Elector>,
    /// The task that renews the `LeaseCandidate`, with coordinated leader election.
    pub(super) candidacy: Option<BoxFuture<'static, ()>>,
    /// Whether a standby starts its informers only once it leads.
    pub(super) delays_cache: bool,
    /// The HTTPS server, which serves a standby, too.
    pub(super) server: Option<Server>,
    /// Progress of the process, for the health checks.
    pub(super) progress: Arc<Progress>,
}

/// Reason why a scheduler ends.
#[derive(Debug)]
enum End {
    /// The process received SIGTERM or SIGINT.
    Told,
    /// A task has ended that must run until shutdown.
    Task(TaskEnd),
    /// The leader lease is lost.
    Lost,
    /// An error, or the end of a part that must run until shutdown.
    Wrong(anyhow::Error),
}

/// Sources of reasons to end.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
    fatal: Fatal,
}

impl Ends {
    fn new(fatal: Fatal) -> anyhow::Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        Ok(Self { terminate, interrupt, fatal })
    }

    async fn told(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    async fn next(&mut self) -> End {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => End::Told,
            _ = self.interrupt.recv() => End::Told,
            Some(end) = self.fatal.recv() => End::Task(end),
        }
    }

    /// Awaits a step of the start, or returns the reason to end if one comes first.
    async fn unless(&mut self, step: impl Future<Output = ()>) -> Result<(), End> {
        tokio::select! {
            biased;
            end = self.next() => Err(end),
            () = step => Ok(()),
        }
    }

    /// Awaits the shutdown to finish. Fails if another signal arrives first.
    async fn unless_told_again(&mut self, finish: impl Future<Output = ()>) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            () = self.told() => Err(anyhow!("second signal")),
            () = finish => Ok(()),
        }
    }
}

/// Schedules until the process is told to shut down, loses the lease, or fails.
pub(super) async fn until_told(engine: Engine, ingest: Ingest, turn: Replica) -> anyhow::Result<ExitCode> {
    let Engine { scheduler, shared, tasks, fatal, .. } = engine;
    let mut ends = Ends::new(fatal)?;
    let Replica { mut elector, candidacy, delays_cache, server, progress } = turn;
    let candidacy = candidacy.map(|candidacy| serve_candidacy(&tasks, candidacy));
    let serving = Serving::start(&tasks, server);
    let elects = elector.is_some();
    let delays_cache = delays_cache && elects;
    let sync = async || {
        ingest.start(|name, task| tasks.serve(name, task));
        ingest.synced().await;
        progress.synced.store(true, Ordering::Release);
    };
    let started = async {
        if !delays_cache {
            sync().await;
        }
    };
    let mut begun = ends.unless(started).await;
    if let (Ok(()), Some(elector)) = (&begun, &mut elector) {
        begun = elector.acquire(ends.next()).await;
    }
    if let Err(end) = begun {
        progress.ending.store(true, Ordering::Release);
        tasks.stop();
        drop(candidacy);
        let finish = async {
            give_up(elector.as_mut(), &end).await;
            serving.stop().await;
        };
        ends.unless_told_again(finish).await?;
        return conclude(end, elects);
    }
    let mut thread = None;
    let schedule = async {
        if delays_cache {
            info!("Starting informers and waiting for sync...");
            sync().await;
            info!("Sync completed");
        }
        progress.leads.store(true, Ordering::Release);
        shared.queue.run(shared.clock.now());
        let (handle, ended) = match scheduling_thread(scheduler) {
            Ok(started) => started,
            Err(error) => return End::Wrong(error),
        };
        thread = Some(handle);
        tasks.serve("debugger", debugger::on_signal(shared.clone()));
        let _ = ended.await;
        End::Wrong(anyhow!("the scheduling thread ended unexpectedly"))
    };
    let end = tokio::select! {
        biased;
        end = ends.next() => end,
        () = renew(elector.as_mut()) => End::Lost,
        end = schedule => end,
    };
    info!("Shutting down");
    progress.ending.store(true, Ordering::Release);
    tasks.stop();
    drop(candidacy);
    shared.writes.close();
    shared.queue.close();
    let finish = async {
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        // This process no longer writes, so the next leader may start.
        give_up(elector.as_mut(), &end).await;
        serving.stop().await;
    };
    ends.unless_told_again(finish).await?;
    conclude(end, elects)
}

/// Runs the candidacy until the returned sender is dropped. A process that shuts down must not be chosen as leader.
fn serve_candidacy(tasks: &Tasks, candidacy: BoxFuture<'static, ()>) -> oneshot::Sender<()> {
    let (stop, stopped) = oneshot::channel::<()>();
    tasks.serve("lease candidate", async move {
        tokio::select! {
            biased;
            _ = stopped => {}
            () = candidacy => {}
        }
    });
    stop
}

/// Releases the lease if this process was told to shut down as the leader, or could not renew the lease, which it may still
/// hold. After any other end the lease is left to expire.
async fn give_up(elector: Option<&mut Elector>, end: &End) {
    if let Some(elector) = elector
        && (matches!(end, End::Lost) || matches!(end, End::Told) && elector.leads())
    {
        elector.release().await;
    }
}

/// Renews the lease, if there is one. Returns once it is lost.
async fn renew(elector: Option<&mut Elector>) {
    match elector {
        Some(elector) => elector.renew().await,
        None => std::future::pending().await,
    }
}

fn conclude(end: End, elects: bool) -> anyhow::Result<ExitCode> {
    match end {
        End::Told if elects => {
            info!("Requested to terminate, exiting");
            Ok(ExitCode::from(DONE))
        }
        End::Told => Err(anyhow!(FINISHED)),
        End::Lost => {
            error!("Leaderelection lost");
            Ok(ExitCode::from(FAILED))
        }
        End::Task(end) => Err(anyhow!(end)),
        End::Wrong(error) => Err(error),
    }
}

/// Starts the scheduling thread. The receiver is notified when the thread ends, even by a panic.
fn scheduling_thread(mut scheduler: Scheduler) -> anyhow::Result<(JoinHandle<()>, oneshot::Receiver<()>)> {
    let (alive, ended) = oneshot::channel::<()>();
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
    use super::*;
    use crate::apiserver::{ApiServer, Options};
    use crate::clock::Clock;
    use crate::config::Config;
    use crate::framework::Registry;
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

    fn alone() -> Replica {
        Replica { elector: None, candidacy: None, delays_cache: false, server: None, progress: Arc::default() }
    }

    /// Starts a scheduler on an API server with one node and optionally one pod.
    async fn start(with_pod: bool) -> (Engine, Ingest) {
        let clock = Clock::real();
        let server = ApiServer::new(Options::by_clock(&clock));
        let objects = [node("n").json()].into_iter().chain(with_pod.then(|| pod("p").json()));
        objects.for_each(|object| drop(server.load(object).expect("an object that a server takes")));
        let gates = crate::config::FeatureGates::default();
        let mut plugins = Registry::default();
        let factory = |(), _: &crate::framework::Handle| {
            let plugin = Arc::new(Explosive);
            Ok(Registration::new("Explosive").queue_sort(&plugin).pre_filter(&plugin).bind(&plugin))
        };
        plugins.register("Explosive", factory).expect("the name is free");
        let config =
            Config::parse(format!("# YAML\n{CONFIG}").as_bytes(), &gates, plugins.catalog()).expect("a configuration");
        let building = Engine::builder(server.client(), config, plugins).gates(gates).clock(clock).seed(1);
        let engine = building.build().await.expect("its parts fit");
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, server.client());
        (engine, ingest)
    }

    #[tokio::test]
    async fn a_panic_of_the_scheduling_thread_ends_the_process() {
        let (engine, ingest) = start(true).await;
        let end = until_told(engine, ingest, alone()).await.expect_err("it does not just end");
        assert_eq!(end.to_string(), "the scheduling thread ended unexpectedly");
    }

    #[tokio::test]
    async fn a_task_that_ends_ends_the_process() {
        let (engine, ingest) = start(false).await;
        assert_eq!(engine.tasks.kill("dispatcher"), 1);
        let end = until_told(engine, ingest, alone()).await.expect_err("it does not just end");
        assert_eq!(end.to_string(), "task \"dispatcher\" ended unexpectedly");
    }
}
