//! Exec plugins: external programs that print credentials.
//! Follows `client-go/plugin/pkg/client/auth/exec/exec.go#Authenticator @v1.36.3`.

use std::io::IsTerminal as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::sign::CertifiedKey;
use serde_json::{Value, json};

use super::super::kubeconfig::{Access, ExecPlugin, Interactive};
use super::super::stream::Connections;
use super::super::tls::Source;
use super::reply::{self, PluginCredentials};
use crate::clock::{Clock, Mono};
use crate::go::{base64, errno};

/// API versions that plugins may use.
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// Limit on installation hints in errors about a missing plugin: this many within this time.
const HINTS: (u32, Duration) = (10, Duration::from_hours(1));

/// The hint for all plugins. From `client-go/plugin/pkg/client/auth/exec/exec.go#installHintVerboseHelp @v1.36.3`.
const MISSING: &str = "\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n\n\
    To learn more about this feature, consult the documentation available at:\n      \
    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";

/// An exec plugin and the credentials it last returned.
pub(in crate::client) struct Plugin {
    spec: ExecPlugin,
    /// The cluster's settings in the format that plugins read.
    cluster: Option<Value>,
    clock: Clock,
    open: Arc<Connections>,
    /// Credentials of the last run. The lock is never held across I/O.
    last: Mutex<Option<Arc<PluginCredentials>>>,
    /// Held while the plugin runs, by threads that may block. Only one run at a time is allowed, because it may prompt the user.
    running: Mutex<()>,
    /// Start of the current period of hints, and the number of hints given in it.
    hints: Mutex<(Mono, u32)>,
}

impl Plugin {
    pub(super) fn new(
        spec: &ExecPlugin,
        access: &Access,
        clock: &Clock,
        open: &Arc<Connections>,
    ) -> Result<Self, String> {
        let cluster = if spec.provide_cluster_info { Some(cluster(spec, access)?) } else { None };
        if !VERSIONS.contains(&spec.api_version.as_str()) {
            return Err(format!("exec plugin: invalid apiVersion {:?}", spec.api_version));
        }
        Ok(Self {
            spec: spec.clone(),
            cluster,
            clock: clock.clone(),
            open: open.clone(),
            last: Mutex::default(),
            running: Mutex::default(),
            hints: Mutex::default(),
        })
    }

    /// Returns credentials that have not expired. Runs the plugin if the last ones have expired or do not exist.
    pub(super) async fn given(self: &Arc<Self>) -> Result<Arc<PluginCredentials>, String> {
        if let Some(given) = self.valid() {
            return Ok(given);
        }
        self.ask(None).await
    }

    /// Returns credentials other than `refused`, which the server rejected. Runs the plugin if there are no newer ones.
    pub(super) async fn renew(
        self: &Arc<Self>,
        refused: &Arc<PluginCredentials>,
    ) -> Result<Arc<PluginCredentials>, String> {
        self.ask(Some(refused.clone())).await
    }

    /// The certificate that the plugin last returned.
    pub(super) fn certificate(&self) -> Option<Arc<CertifiedKey>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.certificate.clone()
    }

    fn valid(&self) -> Option<Arc<PluginCredentials>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now().wall;
        last.as_ref().filter(|given| given.expires.is_none_or(|expires| now <= expires)).cloned()
    }

    async fn ask(self: &Arc<Self>, refused: Option<Arc<PluginCredentials>>) -> Result<Arc<PluginCredentials>, String> {
        let plugin = self.clone();
        let asked = tokio::task::spawn_blocking(move || plugin.ask_once(refused.as_ref()));
        asked.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn ask_once(&self, refused: Option<&Arc<PluginCredentials>>) -> Result<Arc<PluginCredentials>, String> {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have run the plugin in the meantime.
        let valid = match refused {
            None => self.valid(),
            Some(refused) => {
                let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
                last.filter(|given| !Arc::ptr_eq(given, refused))
            }
        };
        if let Some(given) = valid {
            return Ok(given);
        }
        let given = Arc::new(self.run()?);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(given.clone());
        let shown = |given: &PluginCredentials| given.certificate.as_ref().map(|key| key.cert.clone());
        if last.is_some_and(|last| shown(&last) != shown(&given)) {
            self.open.close();
        }
        Ok(given)
    }

    fn run(&self) -> Result<PluginCredentials, String> {
        let interactive = self.interactive()?;
        let mut command = Command::new(&self.spec.command);
        command.args(&self.spec.args).envs(self.spec.env.iter().map(|(name, value)| (name, value)));
        command.env("KUBERNETES_EXEC_INFO", self.info(interactive));
        command.stdin(if interactive { Stdio::inherit() } else { Stdio::null() });
        command.stderr(Stdio::inherit()).stdout(Stdio::piped());
        let name = &self.spec.command;
        let output = command.output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if !name.contains('/') => self.missing(),
            _ => format!("exec: fork/exec {name}: {}", errno::text(&error)),
        })?;
        if !output.status.success() {
            let code = output.status.code().unwrap_or(-1);
            return Err(format!("exec: executable {name} failed with exit code {code}"));
        }
        reply::read(&output.stdout, &self.spec.api_version)
    }

    fn missing(&self) -> String {
        let mut text = format!("exec: executable {} not found", self.spec.command);
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.mono();
        if hints.1 == 0 || now.since(hints.0) >= HINTS.1 {
            *hints = (now, 0);
        }
        if hints.1 < HINTS.0 {
            hints.1 += 1;
            text.push_str(MISSING);
            if !self.spec.install_hint.is_empty() {
                text.push_str("\n\n");
                text.push_str(&self.spec.install_hint);
            }
        }
        text
    }

    fn interactive(&self) -> Result<bool, String> {
        let is_terminal = || std::io::stdin().is_terminal();
        match self.spec.interactive {
            Interactive::Never => Ok(false),
            Interactive::IfAvailable => Ok(is_terminal()),
            Interactive::Always if is_terminal() => Ok(true),
            Interactive::Always => {
                Err("exec plugin cannot support interactive mode: standard input is not a terminal".to_owned())
            }
        }
    }

    /// Content of the environment variable that tells the plugin about the cluster.
    fn info(&self, interactive: bool) -> String {
        let mut spec = json!({"interactive": interactive});
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        json!({"kind": "ExecCredential", "apiVersion": self.spec.api_version, "spec": spec}).to_string()
    }
}

/// Returns the cluster's settings in the format that plugins read.
/// Follows `client-go/rest/exec.go#ConfigToExecCluster @v1.36.3`.
fn cluster(spec: &ExecPlugin, access: &Access) -> Result<Value, String> {
    let tls = &access.tls;
    let mut cluster = json!({"server": access.host});
    let mut put = |key: &str, value: Value, is_there: bool| {
        if is_there {
            cluster[key] = value;
        }
    };
    put("tls-server-name", json!(tls.server_name), !tls.server_name.is_empty());
    put("insecure-skip-tls-verify", json!(true), tls.insecure);
    if let Some(source) = Source::of(&tls.ca_data, &tls.ca_file) {
        let pem = source.read().map_err(|error| format!("failed to load CA bundle for execProvider: {error}"))?;
        put("certificate-authority-data", json!(base64::encode(&pem)), !pem.is_empty());
    }
    let proxy = access.proxy.as_ref().map(ToString::to_string).unwrap_or_default();
    put("proxy-url", json!(proxy.trim_end_matches('/')), !proxy.is_empty());
    put("disable-compression", json!(true), spec.disable_compression);
    put("config", json!(spec.cluster_config), true);
    Ok(cluster)
}
