//! The endpoints of upstream's scheduler and ours on one API server: the same requests by the same clients, and all that is
//! answered is compared.

mod credentials;
mod faults;
mod odd;
mod shape;

pub(crate) use faults::{
    files_that_change_are_read_again, what_cannot_be_served_is_refused_the_same, who_may_not_is_served_nothing,
};

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_scheduler::clock::Clock;
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::listers::Lister;
use kube_scheduler::serve::{
    Clients, Endpoints, IsLeader, MetricsSource, Options, Profiling, Server, Versions, health_check,
};
use libtest_mimic::Failed;
use prometheus::Registry;
use prometheus::proto::MetricFamily;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::client::{Client, Got};
use crate::support::cluster::{ControlPlane, GUEST, Process, free_ports, wait_for};
use crate::support::programs::program;
use credentials::Credential;
use shape::shape;

/// Everything that is served, and some that is not.
const PATHS: &[&str] = &[
    "/",
    "/api",
    "/api/v1/pods",
    "/configz",
    "/debug",
    "/debug/flags",
    "/debug/flags/",
    "/debug/flags/v",
    "/debug/flags/x",
    "/debug/pprof",
    "/debug/pprof/",
    "/debug/pprof/cmdline",
    "/debug/pprof/goroutine",
    "/debug/pprof/heap",
    "/debug/pprof/heap?debug=1",
    "/debug/pprof/nope",
    "/debug/pprof/symbol",
    "/flagz",
    "/healthz",
    "/healthz/",
    "/healthz/nope",
    "/healthz/ping",
    "/livez",
    "/livez/ping",
    "/livez?verbose",
    "/livez?verbose&exclude=ping&exclude=b&exclude=a%22",
    "/metrics",
    "/metrics/",
    "/metrics/resources",
    "/metrics/slis",
    "/openapi/v2",
    "/readyz",
    "/readyz/ping",
    "/readyz/sched-handler-sync",
    "/readyz/shutdown",
    "/readyz?verbose",
    "/readyz?exclude=shutdown&verbose=0",
    "/statusz",
    "/version",
    "//healthz",
    "/%68ealthz",
    "/a%3Cb%3E&c%22d",
    "/metrics%0a",
    "/healthz?pretty=1",
    "/nothing?pretty=1",
];

const METHODS: &[&str] = &["GET", "POST", "PUT", "DELETE"];

/// Forms that pages are asked for in, and where.
const FORMS: &[(&str, &[&str])] = &[
    (
        "/flagz",
        &[
            "",
            "text/plain",
            "*/*",
            "text/*",
            "application/json",
            "application/yaml",
            "image/png",
            "garbage",
            "text/html",
            "application/json;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/json;as=Flagz;v=v1alpha1;g=config.k8s.io",
            "application/yaml;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/*;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/json;v=v1beta1;g=config.k8s.io;as=Flagz;pretty=1",
            "text/plain;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/vnd.kubernetes.protobuf;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/json;stream=watch",
            "text/plain;q=0.1,application/json;v=v1beta1;g=config.k8s.io;as=Flagz",
            "text/html,application/yaml",
            "application/json;v=v1;g=config.k8s.io;as=Flagz",
            "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
        ],
    ),
    (
        "/statusz",
        &[
            "",
            "text/plain",
            "*/*",
            "application/json",
            "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
            "application/json;v=v1alpha1;g=config.k8s.io;as=Statusz",
            "application/yaml;v=v1beta1;g=config.k8s.io;as=Statusz",
        ],
    ),
    (
        "/metrics/slis",
        &[
            "",
            "text/plain",
            "text/plain;version=0.0.4",
            "text/plain;version=1.0.0",
            "application/json",
            "text/html",
            "*/*",
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;q=0.5",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;escaping=dots;q=0.3,*/*;q=0.1",
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
        ],
    ),
    (
        "/nothing",
        &[
            "",
            "*/*",
            "application/json",
            "application/json;pretty=1",
            "application/yaml",
            "text/plain",
            "text/html",
            "application/vnd.kubernetes.protobuf",
            "application/cbor",
            "text/html,application/yaml",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ],
    ),
];

/// Bodies of PUT requests to `/debug/flags/v`.
const LEVELS: &[&str] = &["2", "abc", "", "-1", "+1", " 2", "99999999999", "4294967295"];

/// Values of `Authorization`.
const AUTHORIZATIONS: &[&str] =
    &["Bearer", "Bearer ", "Bearer  admin-token", "bearer admin-token x", "BEARER admin-token", "Basic YWRtaW4="];

/// Number of attempts for a request without a response.
const TRIES: usize = 5;

/// Timeout for a scheduler to become ready.
const READY: Duration = Duration::from_mins(1);

/// Both schedulers.
struct Both {
    upstream: (Client, Process),
    ours: Client,
    stop: Option<oneshot::Sender<()>>,
    compared: usize,
    wrong: Vec<String>,
}

pub(crate) fn endpoints_answer_as_upstreams() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let role = "--clusterrole=system:monitoring";
    plane.kubectl(&["create", "clusterrolebinding", "monitoring", role, &format!("--user={GUEST}")])?;
    let credentials = credentials::all(&plane)?;
    let mut both = plane.runtime.block_on(Both::start(&plane, &credentials))?;
    plane.runtime.block_on(both.compare_all(&credentials));
    plane.runtime.block_on(both.profiles_are_read_by_go(&plane, &credentials))?;
    drop(both.stop.take());
    let wrong = both.wrong.join("\n");
    if !wrong.is_empty() {
        return Err(format!("{} of {} answers differ:\n{wrong}", both.wrong.len(), both.compared).into());
    }
    println!("{} answers compared", both.compared);
    drop(both);
    Ok(plane.remove()?)
}

impl Both {
    async fn start(plane: &ControlPlane, credentials: &[Credential]) -> Result<Self, String> {
        let (address, process) = upstream(plane)?;
        let client = Client::new(address);
        let admin = credentials.iter().find(|one| one.name == "admin").ok_or("no administrator")?;
        let real = Clock::real();
        let deadline = real.mono() + READY;
        loop {
            let got = admin.ask(&client, "GET", "/readyz", &[], "").await.map(|got| (got.status, got.text()));
            match got {
                Ok((200, _)) => break,
                _ if real.mono() > deadline => {
                    return Err(format!("upstream is not ready: {got:?}; {}", process.tail()));
                }
                _ => tokio::task::yield_now().await,
            }
        }
        let accept = ("accept", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz");
        let flags: Value = serde_json::from_str(&admin.ask(&client, "GET", "/flagz", &[accept], "").await?.text())
            .map_err(|error| error.to_string())?;
        let flags = serde_json::from_value(flags["flags"].clone()).map_err(|error| error.to_string())?;
        let (ours, stop) = ours(plane, flags).await?;
        // As often as upstream was: a check that was done once is listed from then on.
        admin.ask(&ours, "GET", "/readyz", &[], "").await?;
        Ok(Self { upstream: (client, process), ours, stop: Some(stop), compared: 0, wrong: Vec::new() })
    }

    async fn compare_all(&mut self, credentials: &[Credential]) {
        for path in PATHS {
            for method in METHODS {
                for credential in credentials {
                    self.compare(credential, method, path, &[], "").await;
                }
            }
        }
        let admin = credentials.iter().find(|one| one.name == "admin").expect("there is one");
        for (path, forms) in FORMS {
            // Who asks for nothing is told why.
            let credential = if *path == "/nothing" { &credentials[0] } else { admin };
            for form in *forms {
                self.compare(credential, "GET", path, &[("accept", form)], "").await;
                self.compare(credential, "GET", path, &[("accept", form), ("user-agent", "curl/8")], "").await;
            }
            self.compare(credential, "GET", path, &[("accept-encoding", "gzip")], "").await;
            self.compare(credential, "HEAD", path, &[], "").await;
        }
        for level in LEVELS {
            self.compare(admin, "PUT", "/debug/flags/v", &[], level).await;
        }
        for value in AUTHORIZATIONS {
            self.compare(&credentials[0], "GET", "/configz", &[("authorization", value)], "").await;
        }
        for request in odd::REQUESTS {
            let (theirs, ours) = (odd::ask(&self.upstream.0, request).await, odd::ask(&self.ours, request).await);
            self.take(&theirs, &ours, || format!("{request:?}"));
        }
        for request in odd::UNREADABLE {
            let theirs = odd::refused(&self.upstream.0, request).await;
            let ours = odd::refused(&self.ours, request).await;
            self.take(&theirs, &ours, || format!("{request:?}"));
        }
    }

    fn take(&mut self, theirs: &str, ours: &str, what: impl Fn() -> String) {
        self.compared += 1;
        if theirs != ours {
            self.wrong.push(format!("{}\n  upstream: {theirs}\n  ours:     {ours}", what()));
        }
    }

    /// Go's own tool reads our profiles, and finds what it looks for.
    async fn profiles_are_read_by_go(&self, plane: &ControlPlane, credentials: &[Credential]) -> Result<(), String> {
        let admin = credentials.iter().find(|one| one.name == "admin").expect("there is one");
        let looks = [
            ("profile?seconds=1", "cpu", "Type: cpu"),
            ("heap", "inuse_space", "kube_scheduler::serve::pprof"),
            ("allocs", "alloc_space", "kube_scheduler::serve::pprof"),
            ("goroutine", "goroutine", "tasks of the runtime"),
            ("threadcreate", "threadcreate", "thread "),
            ("block", "delay", "Type: delay"),
            ("mutex", "delay", "Type: delay"),
        ];
        for (path, index, expected) in looks {
            let got = admin.ask(&self.ours, "GET", &format!("/debug/pprof/{path}"), &[], "").await?;
            let file = plane.folder().join("profile");
            std::fs::write(&file, &got.body).map_err(|error| error.to_string())?;
            let mut command = Command::new("go");
            command.args(["tool", "pprof", "-top", "-symbolize=none", "-sample_index", index]).arg(&file);
            let output = command.output().map_err(|error| format!("go tool pprof: {error}"))?;
            let told = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || !told.contains(expected) {
                let errors = String::from_utf8_lossy(&output.stderr);
                return Err(format!("go tool pprof reads {path} as {told:?}: {errors}"));
            }
        }
        Ok(())
    }

    /// Asks both, over both protocols.
    async fn compare(
        &mut self,
        credential: &Credential,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        for protocol in ["h2", "http/1.1"] {
            let ask = async |client: &Client| {
                let mut last = String::new();
                // Both end the connections of strangers, and the client that this test has sometimes takes an answer and the
                // end that comes with it for an error.
                for _ in 0..TRIES {
                    match credential.ask(&client.speaking(&[protocol]), method, path, headers, body).await {
                        Ok(got) => return shown(method, path, &got),
                        Err(error) => last = error,
                    }
                }
                last
            };
            let (theirs, ours) = (ask(&self.upstream.0).await, ask(&self.ours).await);
            let who = credential.name;
            self.take(&theirs, &ours, || format!("{method} {path} {headers:?} {body:?} by {who} over {protocol}"));
        }
    }
}

/// Parts of a response that are compared.
fn shown(method: &str, path: &str, got: &Got) -> String {
    let names = [
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-type",
        "location",
        "warning",
        "x-content-type-options",
        "x-go-pprof",
    ];
    let headers: BTreeMap<&str, Option<&str>> = names.into_iter().map(|name| (name, got.header(name))).collect();
    let started = got.header("process-start-time-unix").is_some();
    format!("{} {headers:?} {started} {}", got.status, shape(method, path, got))
}

/// Upstream's scheduler, and where it serves.
fn upstream(plane: &ControlPlane) -> Result<(SocketAddr, Process), String> {
    let [port] = free_ports()?;
    let kubeconfig = plane.scheduler_kubeconfig();
    let config = plane.write_config(json!({}))?;
    let mut command = Command::new(program("kube-scheduler"));
    command.arg("--config").arg(config).args(["--bind-address=127.0.0.1", "--secure-port"]).arg(port.to_string());
    command.arg("--authentication-kubeconfig").arg(&kubeconfig).arg("--authorization-kubeconfig").arg(&kubeconfig);
    let process = plane.run("scheduler", &mut command)?;
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    wait_for("upstream's port", READY, || Ok(std::net::TcpStream::connect(address).ok()))
        .map_err(|error| format!("{error}; {}", process.tail()))?;
    Ok((address, process))
}

/// A registry that is never reset, like the scheduler's own counts while this test looks at shapes alone.
struct Metrics(Registry);

impl MetricsSource for Metrics {
    fn gather(&self) -> Vec<MetricFamily> {
        self.0.gather()
    }

    fn reset(&self) {}
}

/// Our endpoints, and what ends them.
async fn ours(plane: &ControlPlane, flags: BTreeMap<String, String>) -> Result<(Client, oneshot::Sender<()>), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let link = crate::support::cluster::link(&plane.scheduler_kubeconfig())?;
    let clients = Clients {
        authentication: Some(link.client("endpoints", None)),
        authorization: Some(link.client("endpoints", None)),
    };
    let gates = FeatureGates::default();
    let config = std::fs::read(plane.write_config(json!({}))?).map_err(|error| text(&error))?;
    let config =
        Config::parse(&config, &gates, kube_scheduler::plugins::registry().catalog()).map_err(|error| text(&error))?;
    let registry = Registry::new();
    let leads: IsLeader = Arc::new(|| true);
    let endpoints = Endpoints {
        metrics: Arc::new(Metrics(registry.clone())),
        registry,
        pods: Lister::new(Arc::default()),
        is_leader: leads,
        config: config.to_v1(),
        flags: Some(flags),
        status: Some(Versions { toolchain: "go1".into(), binary: "1.36.3".into(), emulation: "1.36".into() }),
        healthz: Vec::new(),
        readyz: vec![health_check("shutdown", || Ok(())), health_check("sched-handler-sync", || Ok(()))],
        profiling: Some(Profiling { set_verbosity: Arc::new(|_| ()) }),
        started: Clock::real().now().wall.max(Timestamp::UNIX_EPOCH),
    };
    let options = Options { bind_address: Ipv4Addr::LOCALHOST.into(), port: 0, ..Options::default() };
    let server = Server::bind(options, endpoints, clients, Clock::real(), 1).await.map_err(|error| text(&error))?;
    let client = Client::new(server.address());
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    Ok((client, stop))
}
