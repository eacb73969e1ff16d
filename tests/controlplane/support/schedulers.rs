//! Upstream's scheduler as a process, ours as a library: both with metrics to look at.

use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::DynamicObject;
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::engine::{Engine, Tasks};
use kube_scheduler::framework::Registry;
use kube_scheduler::ingest::Ingest;
use kube_scheduler::listers::{Kind, Lister};
use kube_scheduler::plugins;
use kube_scheduler::scheduler::SchedulerContext;
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, Process, free_ports};
use crate::support::programs::program;
use crate::support::stage::Alive;

/// A running scheduler.
pub(crate) trait Scheduler: Alive {
    /// Ends it.
    fn stop(self) -> Result<(), String>;
}

/// Does several things at the same time, each on a control plane of its own: most of the time is spent waiting.
pub(crate) fn at_once<T: Send, const N: usize>(plays: [impl FnOnce() -> T + Send; N]) -> [T; N] {
    let done = all_at_once(plays);
    done.try_into().unwrap_or_else(|_| unreachable!("each comes to something"))
}

/// The same, of however many there are.
pub(crate) fn all_at_once<T: Send>(plays: impl IntoIterator<Item = impl FnOnce() -> T + Send>) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = plays.into_iter().map(|play| scope.spawn(play)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, T>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// A client of what a scheduler serves on this port, as nobody in particular.
pub(crate) fn client_of(plane: &ControlPlane, port: u16) -> Result<kube::Client, String> {
    let address = format!("https://127.0.0.1:{port}").parse().map_err(|error| format!("{error}"))?;
    let mut connection = kube::Config::new(address);
    connection.accept_invalid_certs = true;
    let _inside = plane.runtime.enter();
    kube::Client::try_from(connection).map_err(|error| error.to_string())
}

/// One worker, since several find nodes in an order of their own.
fn one_worker() -> Value {
    json!({"parallelism": 1, "percentageOfNodesToScore": 100})
}

/// Upstream's binary.
pub(crate) struct Upstream {
    process: Process,
    /// Of its own server.
    client: kube::Client,
}

impl Upstream {
    pub(crate) fn start(plane: &ControlPlane) -> Result<Self, String> {
        let [port] = free_ports()?;
        let path = plane.write_config(one_worker())?;
        let mut command = Command::new(program("kube-scheduler"));
        command.arg("--config").arg(path).args(["--bind-address=127.0.0.1", "--secure-port"]).arg(port.to_string());
        command.arg("--authorization-always-allow-paths=/metrics");
        let process = plane.run("scheduler", &mut command)?;
        let upstream = Self { process, client: client_of(plane, port)? };
        crate::support::cluster::wait_for("upstream's metrics", Duration::from_mins(1), || {
            Ok(upstream.metrics(plane).ok())
        })
        .map_err(|error| format!("{error}; {}", upstream.process.tail()))?;
        Ok(upstream)
    }
}

impl Alive for Upstream {
    fn ended(&mut self) -> Option<String> {
        Alive::ended(&mut self.process)
    }

    fn metrics(&self, plane: &ControlPlane) -> Result<String, String> {
        let request = http::Request::get("/metrics").body(Vec::new()).map_err(|error| error.to_string())?;
        plane.runtime.block_on(self.client.request_text(request)).map_err(|error| error.to_string())
    }
}

impl Scheduler for Upstream {
    fn stop(mut self) -> Result<(), String> {
        self.process.terminate().map(drop)
    }
}

/// Ours, wired as the binary wires it.
pub(crate) struct Ours {
    shared: Arc<SchedulerContext>,
    tasks: Tasks,
    fatal: kube_scheduler::engine::Fatal,
    thread: JoinHandle<()>,
    watched: String,
}

impl Ours {
    pub(crate) fn start(plane: &ControlPlane) -> Result<Self, String> {
        Self::start_with(plane, plugins::registry(), one_worker())
    }

    /// Starts a scheduler with these plugins, and with these fields in its configuration.
    pub(crate) fn start_with(plane: &ControlPlane, plugins: Registry, config: Value) -> Result<Self, String> {
        let link = crate::support::cluster::link(&plane.scheduler_kubeconfig())?;
        let gates = FeatureGates::default();
        let config = std::fs::read(plane.write_config(config)?).map_err(|error| error.to_string())?;
        let config = Config::parse(&config, &gates, plugins.catalog()).map_err(|error| error.to_string())?;
        plane.runtime.block_on(async {
            let client = link.client("requeue", None);
            let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            let building = Engine::builder(client.clone(), config, plugins).gates(gates);
            let engine = building.hostname(hostname.trim()).build().await.map_err(|error| error.to_string())?;
            let check = plugins::admission::node_check(engine.profiles[0].handle());
            let check = check.map_err(|error| error.to_string())?;
            let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client).with_node_check(check);
            let watched = ingest.resources();
            ingest.start(|name, task| engine.tasks.serve(name, task));
            ingest.synced().await;
            let Engine { mut scheduler, shared, tasks, fatal, .. } = engine;
            shared.queue.run(shared.clock.now());
            let thread = std::thread::spawn(move || scheduler.run());
            Ok(Self { shared, tasks, fatal, thread, watched })
        })
    }

    /// The services that plugins see.
    pub(crate) fn services(&self) -> Result<Lister<Service>, String> {
        self.shared.listers.ask().map_err(|error| error.to_string())
    }

    /// The objects of a watched kind without a Rust type that plugins see.
    pub(crate) fn custom_objects(&self, kind: Kind) -> Result<Lister<DynamicObject>, String> {
        self.shared.listers.ask_dynamic(kind).map_err(|error| error.to_string())
    }

    /// The watched resources, as [`Ingest::resources`] lists them.
    pub(crate) fn watched(&self) -> &str {
        &self.watched
    }
}

impl Alive for Ours {
    fn ended(&mut self) -> Option<String> {
        match self.fatal.try_recv() {
            Ok(end) => Some(end.to_string()),
            Err(_) => self.thread.is_finished().then(|| "its thread is gone".to_owned()),
        }
    }

    fn metrics(&self, _: &ControlPlane) -> Result<String, String> {
        self.shared.observe_sizes();
        Ok(self.shared.metrics.gather_text())
    }
}

impl Scheduler for Ours {
    fn stop(self) -> Result<(), String> {
        self.tasks.stop();
        self.shared.writes.close();
        self.shared.queue.close();
        self.thread.join().map_err(|_| "the scheduling thread panicked".to_owned())
    }
}
