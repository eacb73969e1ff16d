//! Settings and contents of the HTTPS server, from flags, configuration and a running engine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use prometheus::IntCounter;
use prometheus::proto::MetricFamily;

use super::connect;
use super::logging::Verbosity;
use crate::clock::Clock;
use crate::config::{Flags, Gate};
use crate::election::Term;
use crate::engine::Engine;
use crate::go::duration::GoDuration;
use crate::metrics::component::{self, ShownMetrics};
use crate::metrics::{RestMetrics, Shown, Since};
use crate::scheduler::SchedulerContext;
use crate::serve::{
    AuthenticationOptions, AuthorizationOptions, Clients, Endpoints, HealthCheck, MetricsSource, Options, Profiling,
    RequestHeaderOptions, Server, SniCertificate, TlsOptions, Versions, health_check,
};
use crate::version;

/// Progress of the process, for the health checks.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether the informers have synced and their handlers have seen the cluster.
    pub(super) synced: AtomicBool,
    /// Whether this process is the leader and schedules pods.
    pub(super) leads: AtomicBool,
    /// Whether the process is shutting down, for any reason.
    pub(super) ending: AtomicBool,
}

/// Further contents of the endpoints.
pub(super) struct About {
    pub(super) config: serde_json::Value,
    pub(super) profiling: bool,
    pub(super) verbosity: Verbosity,
    pub(super) term: Option<Term>,
    /// Whether the informer of the `LeaseCandidate` has synced, with coordinated leader election.
    pub(super) knows_candidate: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    pub(super) progress: Arc<Progress>,
    pub(super) seed: u64,
}

/// Binds the server's port. Returns `None` if the port is 0.
pub(super) async fn bind(
    flags: &Flags,
    engine: &Engine,
    about: About,
    requests: &RestMetrics,
) -> anyhow::Result<Option<Server>> {
    let Ok(port) = u16::try_from(flags.secure_serving.port()) else { return Ok(None) };
    if port == 0 {
        return Ok(None);
    }
    let (who, may) = (&flags.authentication, &flags.authorization);
    let client = |what, path: &Option<String>| review_client(what, path.as_deref(), requests, &engine.shared.clock);
    let clients = Clients {
        // Upstream's error contains this text twice.
        authentication: client("authentication", &who.authentication_kubeconfig)
            .context("failed to get delegated authentication kubeconfig")?,
        authorization: client("authorization", &may.authorization_kubeconfig)?,
    };
    let seed = about.seed;
    let endpoints = endpoints(flags, engine, about)?;
    let server =
        Server::bind(options(flags, port, engine), endpoints, clients, engine.shared.clock.clone(), seed).await;
    let server = server.map_err(|error| anyhow!("{error}"))?;
    // The server has registered metrics of its own.
    component::count_registered(engine.shared.metrics.registry())?;
    Ok(Some(server))
}

/// Returns the client for reviews, from a kubeconfig or, inside a cluster, from the service account. Returns `None` if there is
/// neither, or if the service account cannot be read.
/// Follows `apiserver/pkg/server/options/authentication.go#getClient @v1.36.3`.
fn review_client(
    what: &str,
    path: Option<&str>,
    requests: &RestMetrics,
    clock: &Clock,
) -> anyhow::Result<Option<kube::Client>> {
    let server = match path.filter(|path| !path.is_empty()) {
        Some(path) => {
            connect::from_file(path, clock).with_context(|| format!("failed to get delegated {what} kubeconfig"))?
        }
        None => match connect::in_cluster(clock) {
            Some(Ok(server)) => server,
            Some(Err(error)) => {
                tracing::warn!("failed to read in-cluster kubeconfig for delegated {what}: {error}");
                return Ok(None);
            }
            None => return Ok(None),
        },
    };
    Ok(Some(connect::client(&server, "", requests)))
}

fn options(flags: &Flags, port: u16, engine: &Engine) -> Options {
    let (serving, who, may) = (&flags.secure_serving, &flags.authentication, &flags.authorization);
    let text = |flag: &Option<String>| flag.clone().unwrap_or_default();
    let ttl = |ttl: GoDuration| ttl.to_std().unwrap_or(Duration::ZERO);
    let sni = serving.tls_sni_cert_key.iter().map(|pair| SniCertificate {
        cert_file: pair.cert.clone(),
        key_file: pair.key.clone(),
        names: pair.names.clone(),
    });
    Options {
        bind_address: serving.bind_address(),
        port,
        permit_port_sharing: serving.permit_port_sharing == Some(true),
        permit_address_sharing: serving.permit_address_sharing == Some(true),
        cert_dir: serving.cert_dir.as_deref().filter(|folder| !folder.is_empty()).map(PathBuf::from),
        cert_file: text(&serving.tls_cert_file),
        key_file: text(&serving.tls_private_key_file),
        sni: sni.collect(),
        tls: TlsOptions {
            min_version: text(&serving.tls_min_version),
            cipher_suites: serving.cipher_suites(),
            curve_preferences: serving.curve_preferences(),
        },
        disable_http2: serving.disable_http2_serving == Some(true),
        http2_max_streams: serving.http2_max_streams_per_connection.map_or(0, |most| u32::try_from(most).unwrap_or(0)),
        authentication: AuthenticationOptions {
            skip_lookup: who.authentication_skip_lookup == Some(true),
            tolerate_lookup_failure: who.authentication_tolerate_lookup_failure != Some(false),
            token_ttl: ttl(who.token_ttl()),
            client_ca_file: text(&who.client_ca_file),
            request_header: RequestHeaderOptions {
                client_ca_file: text(&who.requestheader_client_ca_file),
                allowed_names: who.allowed_names(),
                username_headers: who.username_headers(),
                uid_headers: who.uid_headers(),
                group_headers: who.group_headers(),
                extra_headers_prefix: who.extra_prefixes(),
            },
            uid_from_certificates: engine.gates.enabled(Gate::AllowParsingUserUIDFromCertAuth),
        },
        authorization: AuthorizationOptions {
            always_allow_paths: may.allowed_paths(),
            allow_ttl: ttl(may.ttls().0),
            deny_ttl: ttl(may.ttls().1),
        },
    }
}

/// Builds the contents of all endpoints. Follows `cmd/kube-scheduler/app/server.go#Run`, `#newEndpointsHandler @v1.36.3`.
fn endpoints(flags: &Flags, engine: &Engine, about: About) -> anyhow::Result<Endpoints> {
    let About { config, profiling, verbosity, term, knows_candidate, progress, .. } = about;
    let registry = engine.shared.metrics.registry().clone();
    let election: Option<Arc<dyn HealthCheck>> = term.map(|term| health_check("leaderElection", move || term.check()));
    let is = |flag: fn(&Progress) -> &AtomicBool| {
        let progress = progress.clone();
        move || flag(&progress).load(Ordering::Acquire)
    };
    let (ending, synced) = (is(|progress| &progress.ending), is(|progress| &progress.synced));
    let shutdown =
        health_check("shutdown", move || if ending() { Err("process is shutting down".to_owned()) } else { Ok(()) });
    let handlers = health_check("sched-handler-sync", move || {
        if synced() { Ok(()) } else { Err("handlers are not fully synchronized".to_owned()) }
    });
    let candidate = knows_candidate.map(|knows| {
        health_check("informer-sync", move || {
            if knows() { Ok(()) } else { Err("1 informers not started yet: [*v1beta1.LeaseCandidate]".to_owned()) }
        })
    });
    let values = flags.values().into_iter().map(|flag| (flag.name.to_owned(), flag.value));
    let on = |gate| engine.gates.enabled(gate);
    Ok(Endpoints {
        metrics: Arc::new(Scrape::new(&engine.shared, flags)?),
        registry,
        pods: engine.shared.pods.clone(),
        is_leader: Arc::new(is(|progress| &progress.leads)),
        config,
        flags: on(Gate::ComponentFlagz).then(|| values.collect::<BTreeMap<_, _>>()),
        status: on(Gate::ComponentStatusz).then(|| Versions {
            toolchain: version::COMPILER.to_owned(),
            binary: version::KUBERNETES.trim_start_matches('v').to_owned(),
            emulation: format!("1.{}", engine.gates.emulated_minor()),
        }),
        healthz: election.iter().cloned().collect(),
        readyz: election.into_iter().chain([shutdown, handlers]).chain(candidate).collect(),
        profiling: profiling.then(|| Profiling { set_verbosity: Arc::new(move |level| verbosity.set(level)) }),
        // The time since the start of the process is negligible here.
        started: engine.shared.clock.now().wall,
    })
}

/// All metrics that flags do not hide.
struct Scrape {
    shared: Arc<SchedulerContext>,
    shown: Shown,
    unexpected: IntCounter,
    /// Counts at the last reset. The lock is held while they are applied.
    since: Mutex<Since>,
}

impl Scrape {
    fn new(shared: &Arc<SchedulerContext>, flags: &Flags) -> anyhow::Result<Self> {
        let registry = shared.metrics.registry();
        let disabled = flags.metrics.disabled();
        let allowed = flags.metrics.labels().map_err(|error| anyhow!(error))?;
        let shown = Shown::new(&disabled, &allowed);
        let counts = ShownMetrics::new(registry)?;
        counts.disabled.inc_by(shown.disabled() as u64);
        let unexpected = counts.unexpected;
        Ok(Self { shared: shared.clone(), shown, unexpected, since: Mutex::default() })
    }

    fn counted(&self) -> Vec<MetricFamily> {
        self.shared.observe_sizes();
        self.shared.metrics.gather()
    }
}

impl MetricsSource for Scrape {
    fn gather(&self) -> Vec<MetricFamily> {
        let mut families = self.counted();
        self.since.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut families);
        let (families, unexpected) = self.shown.apply(families);
        self.unexpected.inc_by(unexpected.saturating_sub(self.unexpected.get()));
        families
    }

    fn reset(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Since::now(self.counted());
    }
}
