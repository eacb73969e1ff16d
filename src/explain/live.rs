//! Reads a running cluster through its API server. Only GET requests are sent, so nothing is changed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;

use crate::client::kubeconfig::{self, InCluster, LoadingRules};
use crate::client::{AccessError, ApiError, Transport};
use crate::clock::Clock;
use crate::config::{Config, FeatureGates};
use crate::engine::Engine;
use crate::extender;
use crate::framework::Registry;
use crate::ingest::{Ingest, Unread};
use crate::plugins::{default_preemption, node_resources};
use crate::simulate::{Loading, Progress, SimulateArgs, SimulateError, config, gates, say};
use crate::version;

/// Timeout of the first response of the API server.
const REACHED: Duration = Duration::from_secs(10);

/// Path of the request that shows whether the API server can be reached.
const VERSION: &str = "/version";

/// Resources without which nothing can be explained.
const REQUIRED: [&str; 2] = ["nodes", "pods"];

/// Error while a running cluster is read.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kubeconfig does not give access to an API server.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The API server is unreachable.
    #[error("the API server {url} is unreachable: {error}")]
    Unreachable {
        /// URL of the API server.
        url: String,
        /// Why the API server is unreachable.
        error: String,
    },
    /// A required resource cannot be listed.
    #[error("cannot list {kind}: {message}{hint}")]
    Kind {
        /// The resource, by its plural name.
        kind: String,
        /// Message of the API server.
        message: String,
        /// Advice on how to solve the problem.
        hint: &'static str,
    },
    /// The scheduler cannot be built with this configuration or cluster.
    #[error(transparent)]
    Scheduler(#[from] SimulateError),
}

/// The client of an API server, and the settings of the scheduler that reads the objects.
pub(super) struct Reader {
    /// Client for the API server.
    pub(super) client: kube::Client,
    /// URL of the API server, for messages.
    pub(super) url: String,
    pub(super) config: Config,
    pub(super) gates: FeatureGates,
    pub(super) plugins: Registry,
    pub(super) clock: Clock,
}

/// Reads the cluster of the named context, or of the current context, of the kubeconfigs.
pub(super) fn load(
    rules: &LoadingRules,
    context: Option<&str>,
    source: &SimulateArgs,
    plugins: Registry,
) -> Result<Loading, LiveError> {
    let gates = gates(source)?;
    let config = config(source, &gates, plugins.catalog())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| SimulateError::Runtime(error.to_string()))?;
    let loading = runtime.block_on(async {
        let clock = Clock::real();
        let transport = transport(rules, context, clock.clone())?;
        let client = transport.client(&version::user_agent("explain"), None);
        Reader { client, url: transport.url(), config, gates, plugins, clock }.read().await
    });
    // The profiles refer to tasks of the runtime. The process ends soon, so the runtime is not dropped.
    std::mem::forget(runtime);
    loading.map_err(|error| match error {
        LiveError::Scheduler(error) => LiveError::Scheduler(error.in_config(source)),
        error => error,
    })
}

/// Returns the transport to the API server that the kubeconfigs name.
fn transport(rules: &LoadingRules, context: Option<&str>, clock: Clock) -> Result<Transport, LiveError> {
    let access = kubeconfig::kubectl_access(rules, context, &InCluster::from_environment())?;
    Ok(Transport::new(access, clock)?)
}

/// Wraps a client so that it sends only GET requests.
fn read_only(client: kube::Client) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            if request.method() == Method::GET {
                client.send(request).await
            } else {
                Err(kube::Error::Service(
                    format!("{} {}: this client is read-only", request.method(), request.uri()).into(),
                ))
            }
        }
    });
    kube::Client::new(service, "default")
}

impl Reader {
    /// Lists every resource that the configured scheduler reads, and builds the scheduler around the objects. Warns on stderr of
    /// resources that cannot be listed and are not required.
    pub(super) async fn read(self) -> Result<Loading, LiveError> {
        let Self { client, url, mut config, gates, plugins, clock } = self;
        let client = read_only(client);
        reach(&client, &clock).await.map_err(|error| LiveError::Unreachable { url, error })?;
        let preemption = default_preemption::min_candidates(&config);
        let extenders = extender::build(&mut config, node_resources::ignore_resources)
            .map_err(|error| SimulateError::Engine(error.to_string()))?;
        let engine = Engine::builder(client.clone(), config, plugins)
            .gates(gates)
            .extenders(extenders)
            .clock(clock.clone())
            .max_in_unschedulable(Duration::MAX)
            .build()
            .await
            .map_err(|error| SimulateError::Engine(error.to_string()))?;
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client);
        let progress = Mutex::new((0, Progress::counting("objects read")));
        let counted = move |more: usize| {
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.0 += more;
            let read = progress.0;
            progress.1.show(read);
        };
        let unread = ingest.read(counted).await.map_err(|error| SimulateError::Engine(error.to_string()))?;
        check(unread)?;
        match ingest.unreadable() {
            0 => {}
            1 => say(format_args!("warning: ignoring 1 object that cannot be decoded")),
            count => say(format_args!("warning: ignoring {count} objects that cannot be decoded")),
        }
        let loading = Loading::of(&engine, preemption, clock.now());
        // As with files, the engine is not dropped, since the process ends soon.
        std::mem::forget(engine);
        Ok(loading?)
    }
}

/// Sends a first request, so that an unreachable API server results in one early error. Any response shows that the server can
/// be reached.
async fn reach(client: &kube::Client, clock: &Clock) -> Result<(), String> {
    let request = Request::get(VERSION).body(Vec::new()).map_err(|error| error.to_string())?;
    match clock.timeout_at(clock.mono() + REACHED, client.request_text(request)).await {
        Ok(Ok(_) | Err(kube::Error::Api(_))) => Ok(()),
        Ok(Err(error)) => Err(ApiError::from_transport(&Method::GET, VERSION, &error).to_string()),
        Err(_) => Err(format!("no response within {} s", REACHED.as_secs())),
    }
}

/// Fails if a required resource cannot be listed, and warns of other resources that cannot be listed.
fn check(unread: Vec<Unread>) -> Result<(), LiveError> {
    if let Some(Unread { kind, code, message }) = unread.iter().find(|kind| REQUIRED.contains(&&*kind.kind)).cloned() {
        let hint = match code {
            Some(403) => "; deploy/explain-role.yaml has a ClusterRole with the required permissions",
            _ => "",
        };
        return Err(LiveError::Kind { kind, message, hint });
    }
    for Unread { kind, code, message } in unread {
        let effect = without(&kind);
        match code {
            Some(404) => say(format_args!("warning: the server has no {kind}, so {effect}")),
            _ => say(format_args!("warning: cannot list {kind}, so {effect}: {message}")),
        }
    }
    Ok(())
}

/// Describes the effect of a missing resource.
fn without(kind: &str) -> &'static str {
    match kind {
        "namespaces" => "namespaceSelectors of pod affinity select no namespace",
        "services" | "replicationcontrollers" | "replicasets" | "statefulsets" => {
            "default spreading does not know which pods belong to them"
        }
        "poddisruptionbudgets" => "preemption ignores disruption budgets",
        _ => "anything that depends on them is ignored",
    }
}

#[cfg(test)]
mod tests;
