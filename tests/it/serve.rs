//! The endpoints, over real loopback sockets with TLS: who is served what, and what it costs to be nasty.

mod access;
mod client;
mod hostile;
mod pages;
mod reviewer;
mod tls;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use kube_scheduler::clock::{Clock, SimClock};
use kube_scheduler::listers::Lister;
use kube_scheduler::serve::{
    Clients, Endpoints, HealthCheck, MetricsSource, Options, Profiling, ServeError, Server, Versions, health_check,
};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, Registry};
use rcgen::CertificateParams;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::certificates::{Authority, params_of_client, params_of_subject};
use client::{Client, Identity};
use reviewer::Reviewer;

/// The longest that a test waits for something that has to come.
const PATIENCE: Duration = Duration::from_mins(1);

/// Parts of the server that a test reads and changes while it runs.
#[derive(Clone)]
struct Dials {
    leads: Arc<AtomicBool>,
    ill: Arc<AtomicBool>,
    verbosity: Arc<AtomicU32>,
    counted: IntCounter,
}

/// A server that runs.
struct Running {
    client: Client,
    clock: SimClock,
    dials: Dials,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// A source whose one counter is forgotten.
struct Counted(Registry, IntCounter);

impl MetricsSource for Counted {
    fn gather(&self) -> Vec<MetricFamily> {
        self.0.gather()
    }

    fn reset(&self) {
        self.1.reset();
    }
}

fn options() -> Options {
    Options { bind_address: Ipv4Addr::LOCALHOST.into(), port: 0, ..Options::default() }
}

fn now() -> Timestamp {
    "2026-11-30T04:10:59Z".parse().expect("a time")
}

fn endpoints(clock: &SimClock) -> (Endpoints, Dials) {
    let registry = Registry::new();
    let counted = IntCounter::new("counted_total", "What a test counts.").expect("a counter");
    registry.register(Box::new(counted.clone())).expect("a new name");
    let dials = Dials { leads: Arc::default(), ill: Arc::default(), verbosity: Arc::default(), counted };
    let (leads, ill, verbosity) = (dials.leads.clone(), dials.ill.clone(), dials.verbosity.clone());
    let ill: Arc<dyn HealthCheck> =
        health_check("ill", move || if ill.load(Ordering::Relaxed) { Err("it aches".to_owned()) } else { Ok(()) });
    let endpoints = Endpoints {
        metrics: Arc::new(Counted(registry.clone(), dials.counted.clone())),
        registry,
        pods: Lister::new(Arc::default()),
        is_leader: Arc::new(move || leads.load(Ordering::Relaxed)),
        config: json!({"kind": "KubeSchedulerConfiguration", "name": "<a>"}),
        flags: Some(BTreeMap::from([("v".to_owned(), "2".to_owned())])),
        status: Some(Versions { toolchain: "rustc".into(), binary: "1.36.3".into(), emulation: "1.36".into() }),
        healthz: Vec::new(),
        readyz: vec![health_check("well", || Ok(())), ill],
        profiling: Some(Profiling { set_verbosity: Arc::new(move |level| verbosity.store(level, Ordering::Relaxed)) }),
        started: clock.now().wall,
    };
    (endpoints, dials)
}

/// Binds a server; the API server is asked if there is one.
async fn bind(options: Options, reviewer: Option<&Reviewer>) -> Result<(Server, SimClock, Dials), ServeError> {
    let clock = SimClock::new(now());
    let (endpoints, dials) = endpoints(&clock);
    let client = reviewer.map(Reviewer::client);
    let clients = Clients { authentication: client.clone(), authorization: client };
    let server = Server::bind(options, endpoints, clients, clock.clock(), 1).await?;
    Ok((server, clock, dials))
}

/// Why a server cannot be had.
async fn refused(options: Options) -> String {
    bind(options, None).await.map(drop).expect_err("it cannot be").to_string()
}

impl Running {
    async fn start(options: Options, reviewer: Option<&Reviewer>) -> Self {
        let (server, clock, dials) = bind(options, reviewer).await.expect("it can be");
        let client = Client::new(server.address());
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        Self { client, clock, dials, stop: Some(stop), task }
    }

    /// Status of an answer.
    async fn status(&self, path: &str, token: Option<&str>) -> u16 {
        self.client.get(path, token).await.status
    }

    /// Tells it to end.
    fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until something holds, while the clock stands still.
    async fn eventually(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let real = Clock::real();
        let deadline = real.mono() + PATIENCE;
        while !holds().await {
            assert!(real.mono() < deadline, "still waiting for {what}");
            tokio::task::yield_now().await;
        }
    }

    /// Moves the clock until something holds: what waits for a time does so between two looks.
    async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let real = Clock::real();
        let deadline = real.mono() + PATIENCE;
        while !holds().await {
            assert!(real.mono() < deadline, "still waiting for {what}");
            self.clock.advance(Duration::from_millis(500));
            tokio::task::yield_now().await;
        }
    }
}

/// An authority of this name.
fn authority(name: &str) -> Authority {
    Authority::of(params_of_subject(name))
}

/// A client's certificate.
fn identity(issuer: &Authority, name: &str, groups: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
    let mut params = params_of_client(name, groups);
    change(&mut params);
    issuer.pair_of(&params).into()
}

/// A folder that goes when its owner does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: Mutex<u32> = Mutex::new(0);
        let mut next = NEXT.lock().expect("nobody panicked");
        *next += 1;
        let path = std::env::temp_dir().join(format!("serve-{}-{next}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Writes a file, whole at once, and answers with its path.
    fn write(&self, name: &str, text: &str) -> String {
        let (path, new) = (self.path().join(name), self.path().join(format!("{name}.new")));
        std::fs::write(&new, text).expect("written");
        std::fs::rename(&new, &path).expect("renamed");
        path.display().to_string()
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
