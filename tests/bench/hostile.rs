//! Cost of hostile clients of the endpoints, in memory and in processor time of the scheduling thread. 200 clients scrape
//! `/metrics` every second, all at the same time. Other clients send their headers byte by byte, send headers of unbounded
//! size, or open as many streams as the server allows.
//!
//! ```sh
//! cargo bench --bench hostile [-- PAIRS [scrapes|drops|headers|streams…]]
//! ```
//!
//! The built scheduler binds the same pods alternately without and with this load. The embedded API server runs in this
//! process. Pods are created at an even pace. If they came in bursts, the scheduling thread would handle many pods each time it
//! is woken, which takes less time per pod, and load would cause more such bursts. Processor time is that of the scheduling
//! thread alone (`schedstat`), per pod. Memory is the largest of many samples.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[expect(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../it/certificates.rs"]
mod certificates;
#[expect(dead_code, reason = "shared with the tests on loopback sockets, which use more of it")]
#[path = "../it/serve/client.rs"]
mod client;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use certificates::{Authority, params_of_client};
use client::{Client, Identity};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_scheduler::apiserver::kinds::{EVENTS, PODS};
use kube_scheduler::apiserver::{ApiServer, DeleteOptions, Options};
use kube_scheduler::clock::Clock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

const NODES: usize = 1000;

/// Number of pods in a round.
const COUNT: u32 = 3000;
/// Number of pods that are created per second.
const A_SECOND: u32 = 300;

/// The kinds of clients, with the number of clients of each kind.
const KINDS: [(&str, usize); 4] = [("scrapes", 200), ("drops", 10), ("headers", 10), ("streams", 10)];

/// Pause of a client between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Pause after the pods of a round are deleted, and after the clients have stopped.
const REST: Duration = Duration::from_secs(5);

/// Limits of the effect of the load: processor time as a multiple of that without load, and additional memory in MiB.
const LIMITS: (f64, f64) = (1.05, 20.0);

/// Counters of what clients sent and received since the start of the process.
#[derive(Default)]
struct Counts {
    scrapes: AtomicU64,
    bytes: AtomicU64,
    drops: AtomicU64,
    refused: AtomicU64,
    streams: AtomicU64,
}

/// The measurements of one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Processor time of the scheduling thread per pod, in microseconds.
    micros: f64,
    /// Seconds from the creation of the first pod to the binding of the last one.
    seconds: f64,
    /// The largest resident memory of the scheduler, in MiB.
    mib: f64,
}

impl Round {
    /// Combines two rounds: the means of the times, and the larger memory.
    fn and(self, other: Self) -> Self {
        let mean = |one: f64, other: f64| f64::midpoint(one, other);
        Self {
            micros: mean(self.micros, other.micros),
            seconds: mean(self.seconds, other.seconds),
            mib: self.mib.max(other.mib),
        }
    }
}

/// A scheduler process, which is killed when this value is dropped.
struct Scheduler {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
}

fn main() {
    // cargo passes `--bench` to every benchmark.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let pairs = arguments.first().map_or(5, |pairs| pairs.parse().expect("a number of pairs"));
    let wanted = arguments.get(1..).unwrap_or_default();
    let kinds: Vec<_> =
        KINDS.into_iter().filter(|(kind, _)| wanted.is_empty() || wanted.iter().any(|w| w == kind)).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    // Clients have a runtime of their own, so that the API server's tasks do not wait for the clients' tasks.
    let clients =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(run(pairs, &kinds, clients.handle()));
    clients.shutdown_background();
}

async fn run(pairs: usize, kinds: &[(&'static str, usize)], clients: &Handle) {
    let folder = std::env::temp_dir().join(format!("hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let server = ApiServer::new(Options::by_clock(&Clock::real()));
    let listener = server.listen("127.0.0.1:0").await.expect("a port");
    for at in 0..NODES {
        server.create(node(at)).expect("a node");
    }
    let identity = write_files(&folder, &listener.url());
    let scheduler = Scheduler::start(folder);
    let client = Client::new(scheduler.address).with(&identity);
    scheduler.until_ready(&client).await;
    // A first round warms the scheduler up, so that its memory has grown before the first measurement.
    round(&server, &scheduler).await;
    let counts = Arc::new(Counts::default());
    let (mut slower, mut larger) = (Vec::new(), Vec::new());
    println!(
        "{:>6} {:>24} {:>24} {:>8} {:>10}",
        "pair", "quiet µs a pod, s, MiB", "loaded µs a pod, s, MiB", "times", "more MiB"
    );
    for pair in 1..=pairs {
        // One round without load, two with it, and one without, so that other load on the machine affects both alike.
        let first = round(&server, &scheduler).await;
        let load = load(kinds, &client, &counts, clients);
        let loaded = round(&server, &scheduler).await.and(round(&server, &scheduler).await);
        drop(load);
        tokio::time::sleep(REST).await;
        let quiet = first.and(round(&server, &scheduler).await);
        let (times, more) = (loaded.micros / quiet.micros, loaded.mib - quiet.mib);
        let shown = |round: Round| format!("{:.1} {:.2} {:.1}", round.micros, round.seconds, round.mib);
        println!("{pair:>6} {:>24} {:>24} {times:>8.3} {more:>10.1}", shown(quiet), shown(loaded));
        slower.push(times);
        larger.push(more);
    }
    let (slower, larger) = (median(slower), median(larger));
    let all = |count: &AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{} scrapes with {} MiB, {} drops of headers, {} headers without measure refused, {} streams",
        all(&counts.scrapes),
        all(&counts.bytes) >> 20,
        all(&counts.drops),
        all(&counts.refused),
        all(&counts.streams)
    );
    let verdict = if slower <= LIMITS.0 && larger <= LIMITS.1 { "within" } else { "NOT within" };
    println!("median: {slower:.3} times the processor time, {larger:.1} MiB more; {verdict} {LIMITS:?}");
    drop(scheduler);
    listener.stop().await;
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn node(at: usize) -> Value {
    let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("node-{at}"), "labels": {"kubernetes.io/hostname": format!("node-{at}")}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pod(at: u32) -> Value {
    let resources = json!({"requests": {"cpu": "500m", "memory": "256Mi"}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{at}"), "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:v1", "resources": resources}]},
    })
}

/// Writes the scheduler's kubeconfig and configuration, and a CA certificate. Returns a client certificate of this CA for a
/// user in the group `system:masters`.
fn write_files(folder: &Path, server: &str) -> Identity {
    let kubeconfig = folder.join("kubeconfig");
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 100_000, "burst": 100_000},
        "leaderElection": {"leaderElect": false},
        // The scheduling thread does all the work.
        "parallelism": 1,
    });
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: '{server}'}}}}]\nusers: [{{name: admin, user: {{}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]\n"
    );
    let authority = Authority::new();
    for (path, text) in
        [(kubeconfig, text), (folder.join("config.json"), config.to_string()), (folder.join("ca.crt"), authority.pem())]
    {
        std::fs::write(path, text).expect("written");
    }
    authority.pair_of(&params_of_client("operator", &["system:masters"])).into()
}

impl Scheduler {
    fn start(folder: PathBuf) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let log = std::fs::File::create(folder.join("scheduler.log")).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"))
            .arg("--config")
            .arg(folder.join("config.json"))
            .args(["--bind-address=127.0.0.1", "--secure-port"])
            .arg(address.port().to_string())
            .args(["--authentication-skip-lookup", "--client-ca-file"])
            .arg(folder.join("ca.crt"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the scheduler can be started");
        Self { child, address, folder }
    }

    async fn until_ready(&self, client: &Client) {
        let began = Instant::now();
        loop {
            match client.ask("GET", "/readyz", &[], "").await {
                Ok(got) if got.status == 200 => break,
                other if began.elapsed() > Duration::from_secs(30) => panic!("it is not ready: {other:?}"),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    fn path(&self, rest: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(rest)
    }

    /// Returns the time that the scheduling thread has run, in nanoseconds.
    fn nanos(&self) -> f64 {
        let tasks = std::fs::read_dir(self.path("task")).expect("it is running");
        let is_it = |path: &PathBuf| std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "scheduler\n");
        let thread = tasks.flatten().map(|task| task.path()).find(is_it).expect("a scheduling thread");
        let text = std::fs::read_to_string(thread.join("schedstat")).expect("schedstat");
        text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number")
    }

    /// Returns the resident memory of the scheduler in MiB.
    fn mib(&self) -> f64 {
        let text = std::fs::read_to_string(self.path("status")).expect("it is running");
        let kib =
            text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kib.expect("a size") / 1024.0
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Lets the scheduler bind the pods of a round, deletes them, and returns the measurements.
async fn round(server: &ApiServer, scheduler: &Scheduler) -> Round {
    let (before, began) = (scheduler.nanos(), Instant::now());
    let mut mib = scheduler.mib();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / A_SECOND);
    for at in 0..COUNT {
        ticks.tick().await;
        server.create(pod(at)).expect("a pod");
        if at % 8 == 0 {
            mib = mib.max(scheduler.mib());
        }
    }
    loop {
        mib = mib.max(scheduler.mib());
        let pods = server.list(&PODS);
        if pods.iter().all(|pod| pod.field("spec.nodeName") != Some("")) {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(5), "pods are still waiting");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (seconds, nanos) = (began.elapsed().as_secs_f64(), scheduler.nanos() - before);
    let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    for at in 0..COUNT {
        server.delete(&PODS, "default", &format!("pod-{at}"), &now).expect("a pod");
    }
    for event in server.list(&EVENTS) {
        let _ = server.delete(&EVENTS, "default", event.name(), &now);
    }
    // In this time, the scheduler frees the memory that the deleted pods used.
    tokio::time::sleep(REST).await;
    Round { micros: nanos / 1000.0 / f64::from(COUNT), seconds, mib }
}

/// Starts clients that run until they are dropped. A client opens a new connection when the last one has ended.
fn load(kinds: &[(&'static str, usize)], client: &Client, counts: &Arc<Counts>, on: &Handle) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for &(kind, count) in kinds {
        for _ in 0..count {
            let (client, counts) = (client.clone(), counts.clone());
            let go_on = async move {
                loop {
                    match kind {
                        "scrapes" => scrape(&client, &counts).await,
                        "drops" => drip(&client, &counts).await,
                        "headers" => bloat(&client, &counts).await,
                        _ => fan_out(&client, &counts).await,
                    };
                }
            };
            clients.spawn_on(go_on, on);
        }
    }
    clients
}

/// Requests metrics again and again, as Prometheus does: on one connection, and compressed.
async fn scrape(client: &Client, counts: &Counts) -> Option<()> {
    let (stream, _) = client.speaking(&["http/1.1"]).connect().await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let _connection = Connection::of(connection);
    let mut ticks = tokio::time::interval(PAUSE);
    loop {
        ticks.tick().await;
        let request = Request::get("/metrics").header("host", "x").header("accept-encoding", "gzip");
        let answer = sender.send_request(request.body(Full::<Bytes>::default()).ok()?).await.ok()?;
        assert_eq!(answer.status(), 200, "a scrape is answered");
        let length = answer.into_body().collect().await.ok()?.to_bytes().len();
        counts.scrapes.fetch_add(1, Ordering::Relaxed);
        counts.bytes.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Sends headers byte by byte, until the server closes the connection.
async fn drip(client: &Client, counts: &Counts) -> Option<()> {
    let (mut stream, _) = client.speaking(&["http/1.1"]).connect().await.ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.ok()?;
    while stream.write_all(b"x").await.is_ok() {
        counts.drops.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Some(())
}

/// Sends headers for as long as the server accepts them.
async fn bloat(client: &Client, counts: &Counts) -> Option<()> {
    let (mut stream, _) = client.speaking(&["http/1.1"]).connect().await.ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n").await.ok()?;
    let line = format!("X-Large: {}\r\n", "x".repeat(16 * 1024));
    while stream.write_all(line.as_bytes()).await.is_ok() {}
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer).await.unwrap_or(0);
    assert!(length == 0 || answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer[..length]));
    counts.refused.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(PAUSE).await;
    Some(())
}

/// Opens 100 streams on one connection, which is as many as allowed. Each stream requests all metrics, and the client reads no
/// response.
async fn fan_out(client: &Client, counts: &Counts) -> Option<()> {
    let (stream, _) = client.speaking(&["h2"]).connect().await.ok()?;
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let _connection = Connection::of(connection);
    let mut answers = Vec::new();
    for _ in 0..100 {
        sender.ready().await.ok()?;
        let request = Request::get("https://x/metrics").body(Full::<Bytes>::default()).ok()?;
        answers.push(sender.send_request(request));
        counts.streams.fetch_add(1, Ordering::Relaxed);
    }
    let answers = futures::future::join_all(answers).await;
    tokio::time::sleep(PAUSE).await;
    drop(answers);
    Some(())
}

/// The task that drives a connection. It ends when this value is dropped.
struct Connection(tokio::task::AbortHandle);

impl Connection {
    fn of<T: Send + 'static>(connection: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(connection).abort_handle())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}
