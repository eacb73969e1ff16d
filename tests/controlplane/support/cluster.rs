//! A real control plane: etcd and kube-apiserver, on free ports of the loopback address, in a folder of their own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_scheduler::client::Transport;
use kube_scheduler::client::kubeconfig::{self, InCluster};
use kube_scheduler::clock::Clock;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub(crate) use crate::support::process::Process;
use crate::support::programs::{folder, program};
use crate::support::stage::merge;

/// Timeout for a program to become ready. The API server takes two to three seconds on an idle machine.
pub(crate) const READY: Duration = Duration::from_secs(90);

/// The user that schedulers are: it may do what the API server's own role for them allows, and nothing else.
pub(crate) const SCHEDULER: &str = "system:kube-scheduler";

/// A user that may do nothing until a test gives it a role.
pub(crate) const GUEST: &str = "guest";

/// What the audit log has of the scheduler and the guest: their writes whole, and that they read. Of schedulers with service
/// accounts: what they did.
const AUDIT_POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, users: ['system:kube-scheduler', guest], verbs: [create, update, patch, delete, deletecollection]}
- {level: Metadata, users: ['system:kube-scheduler', guest]}
- {level: Metadata, userGroups: ['system:serviceaccounts:kube-system']}
- {level: None}
";

/// Between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(10);

/// A control plane. Dropping it stops the API server, then etcd; their folder stays, for what it says of a failure.
pub(crate) struct ControlPlane {
    /// The API server, then etcd: stopped in this order.
    processes: Vec<Process>,
    folder: PathBuf,
    /// Addresses of etcd and of the API server.
    ports: [u16; 2],
    /// The API server's flags beyond the usual.
    flags: &'static [&'static str],
    /// Runs what a test does with [`Self::client`].
    pub(crate) runtime: Runtime,
    /// An administrator's client.
    pub(crate) client: kube::Client,
}

/// Ports that nobody listens on just now, all different: they are held until each has been chosen.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    let listeners: Result<Vec<TcpListener>, _> = (0..N).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect();
    let listeners = listeners.map_err(|error| error.to_string())?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(|error| error.to_string())?.port();
    }
    Ok(ports)
}

impl ControlPlane {
    /// Starts one and waits until it is ready.
    pub(crate) fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// The same, with more flags for the API server.
    pub(crate) fn start_with(flags: &'static [&'static str]) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = folder().join("run").join(format!("{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let [clients, peers, secure] = free_ports()?;
        write_files(&folder, secure)?;
        let etcd = Process::start("etcd", &folder, &mut etcd(&folder, clients, peers))?;
        let apiserver = Process::start("kube-apiserver", &folder, apiserver(&folder, clients, secure).args(flags))?;
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let client = runtime.block_on(client(&folder))?;
        let mut plane =
            Self { processes: vec![apiserver, etcd], folder, ports: [clients, secure], flags, runtime, client };
        plane.wait_until_ready()?;
        Ok(plane)
    }

    /// Ends the API server without warning, and has another one take its place.
    pub(crate) fn restart_api_server(&mut self) -> Result<(), String> {
        self.processes[0].kill()?;
        let [etcd, secure] = self.ports;
        let mut command = apiserver(&self.folder, etcd, secure);
        self.processes[0] = Process::start("kube-apiserver", &self.folder, command.args(self.flags))?;
        self.wait_until_ready()
    }

    /// etcd.
    pub(crate) fn etcd(&self) -> &Process {
        &self.processes[1]
    }

    /// Addresses of etcd and of the API server.
    pub(crate) fn addresses(&self) -> [SocketAddr; 2] {
        self.ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The kubeconfig of the user that the API server has a role for: `system:kube-scheduler`.
    pub(crate) fn scheduler_kubeconfig(&self) -> PathBuf {
        self.folder.join("scheduler.kubeconfig")
    }

    /// The same for somebody who stands between it and the API server; it takes the place of the one before of that name.
    pub(crate) fn kubeconfig_through(&self, name: &str, address: SocketAddr) -> Result<PathBuf, String> {
        let path = self.folder.join(format!("{name}.kubeconfig"));
        fs::write(&path, kubeconfig_of(SCHEDULER, address.port()))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// The kubeconfig of the user that may do nothing by itself.
    pub(crate) fn guest_kubeconfig(&self) -> PathBuf {
        self.folder.join("guest.kubeconfig")
    }

    /// Writes the configuration file of a scheduler without leader election; `more` is added to it. It takes the place of the
    /// one before.
    pub(crate) fn write_config(&self, more: Value) -> Result<PathBuf, String> {
        self.write_config_of("config", more)
    }

    /// The same for one of several schedulers, in a file of its own.
    pub(crate) fn write_config_of(&self, scheduler: &str, more: Value) -> Result<PathBuf, String> {
        let mut config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": self.scheduler_kubeconfig()},
            "leaderElection": {"leaderElect": false},
        });
        merge(&mut config, more);
        let path = self.folder.join(format!("{scheduler}.json"));
        fs::write(&path, config.to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Requests of a user so far: the entries of the audit log, in the order of the responses.
    pub(crate) fn audited(&self, user: &str) -> Result<Vec<Value>, String> {
        let mut entries = Vec::new();
        self.each_audited(user, "", |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// The same one by one, and only those with this text somewhere: the log may be large.
    pub(crate) fn each_audited(&self, user: &str, text: &str, mut each: impl FnMut(Value)) -> Result<(), String> {
        let path = self.folder.join("audit.log");
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        for line in BufReader::new(File::open(&path).map_err(failed)?).lines() {
            let line = line.map_err(failed)?;
            // The last line may be half written.
            let entry = || serde_json::from_str(&line).ok().filter(|entry: &Value| entry["user"]["username"] == user);
            if let Some(entry) = line.contains(text).then(entry).flatten() {
                each(entry);
            }
        }
        Ok(())
    }

    /// Where it keeps everything.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a program that belongs to the control plane's folder.
    pub(crate) fn run(&self, name: &str, command: &mut Command) -> Result<Process, String> {
        Process::start(name, &self.folder, command)
    }

    /// Returns the output of kubectl.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(program("kubectl"))
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments)
            .output()
            .map_err(|error| format!("kubectl: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// The text at a path of the API server.
    pub(crate) fn get(&self, path: &str) -> Result<String, String> {
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        self.runtime.block_on(self.client.request_text(request)).map_err(|error| error.to_string())
    }

    /// Stops it and removes its folder.
    pub(crate) fn remove(self) -> Result<(), String> {
        let folder = self.folder.clone();
        drop(self);
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let mut last = String::new();
        let ready = wait_for("the API server to be ready", READY, || {
            let ended = self.processes.iter_mut().find_map(|process| process.ended().map(|status| (status, &*process)));
            if let Some((status, process)) = ended {
                return Err(format!("{} ended with {status}", process.name));
            }
            let ready = self.get("/readyz").and_then(|text| if text == "ok" { Ok(()) } else { Err(text) });
            match ready.and_then(|()| self.get("/api/v1/namespaces/default")) {
                Ok(_) => return Ok(Some(())),
                Err(error) => last = error,
            }
            Ok(None)
        });
        ready.map_err(|error| format!("{error}: {last}; {}", self.processes[0].tail()))
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // In order: an API server without etcd takes a long time to end.
        while !self.processes.is_empty() {
            drop(self.processes.remove(0));
        }
    }
}

fn write_files(folder: &Path, port: u16) -> Result<(), String> {
    let status = Command::new(program("certificates")).arg(folder).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("certificates could not be made".to_owned());
    }
    let tokens = format!(
        "admin-token,admin,admin,system:masters\n{SCHEDULER}-token,{SCHEDULER},scheduler\n{GUEST}-token,{GUEST},guest\n"
    );
    for (name, text) in [
        ("kubeconfig", kubeconfig_of("admin", port)),
        ("scheduler.kubeconfig", kubeconfig_of(SCHEDULER, port)),
        ("guest.kubeconfig", kubeconfig_of(GUEST, port)),
        ("tokens.csv", tokens),
        ("audit.yaml", AUDIT_POLICY.to_owned()),
    ] {
        fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn kubeconfig_of(user: &str, port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: '{user}', user: {{token: '{user}-token'}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: '{user}'}}}}]\n"
    )
}

async fn client(folder: &Path) -> Result<kube::Client, String> {
    let file = Kubeconfig::read_from(folder.join("kubeconfig")).map_err(|error| error.to_string())?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options);
    kube::Client::try_from(config.await.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

fn etcd(folder: &Path, clients: u16, peers: u16) -> Command {
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    let mut command = Command::new(program("etcd"));
    command.arg("--data-dir").arg(folder.join("etcd")).args(["--unsafe-no-fsync", "--log-level", "warn"]);
    command.args(["--quota-backend-bytes", "8589934592"]);
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    command
}

fn apiserver(folder: &Path, etcd: u16, port: u16) -> Command {
    let mut command = Command::new(program("kube-apiserver"));
    let (etcd, port) = (format!("http://127.0.0.1:{etcd}"), port.to_string());
    command.args(["--etcd-servers", &etcd, "--bind-address", "127.0.0.1", "--secure-port", &port]);
    for (flag, file) in [
        ("--cert-dir", "apiserver"),
        ("--service-account-key-file", "sa.key"),
        ("--service-account-signing-key-file", "sa.key"),
        ("--token-auth-file", "tokens.csv"),
        ("--client-ca-file", "ca.crt"),
        ("--audit-policy-file", "audit.yaml"),
        ("--audit-log-path", "audit.log"),
        ("--requestheader-client-ca-file", "ca.crt"),
    ] {
        command.arg(flag).arg(folder.join(file));
    }
    command.args([
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=RBAC",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        // In MiB: by itself it would begin a new file after 100.
        "--audit-log-maxsize=100000",
    ]);
    command
}

/// The way to the API server of a kubeconfig, as the scheduler's clients go it.
pub(crate) fn link(path: &Path) -> Result<Transport, String> {
    let outside = InCluster::new("", "", "");
    let access = kubeconfig::access(&path.display().to_string(), "", &outside);
    Transport::new(access.map_err(|error| error.to_string())?, Clock::real()).map_err(|error| error.to_string())
}

/// Looks again and again until `look` gives something, or the time is up.
#[expect(clippy::disallowed_methods, reason = "other processes run in real time, and do not say when they are ready")]
pub(crate) fn wait_for<T>(
    what: &str,
    bound: Duration,
    mut look: impl FnMut() -> Result<Option<T>, String>,
) -> Result<T, String> {
    let deadline = Instant::now() + bound;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("after {bound:?} still waiting for {what}"));
        }
        std::thread::sleep(PAUSE);
    }
}
