//! An HTTPS server that binds its port early, so that errors are known at the start, and runs in its owner's task.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus::Registry;
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::activity::HeaderPermits;
use super::ask::Asker;
use super::authenticate::{Authenticator, Cluster, HeaderNames, RequestHeader, Tokens, lookup};
use super::authorize::Authorizer;
use super::certificate;
use super::connection::{self, ConnectionContext};
use super::endpoints::Endpoints;
use super::error::ServeError;
use super::gauges::Gauges;
use super::handler::Handler;
use super::listener;
use super::mux::Mux;
use super::options::{AuthenticationOptions, Options};
use super::pair::Pair;
use super::reload::{PERIOD, Refresh, ReloadedFiles};
use super::serving::{DefaultPair, NamedPair, Serving};
use super::tls;
use super::trust::{LatestValue, Trust};
use super::x509::Bundle;
use crate::clock::{Clock, Rng};

/// Base name of the files in the certificate directory.
/// From `cmd/kube-scheduler/app/options/options.go#NewOptions @v1.36.3`.
const PAIR_NAME: &str = "kube-scheduler";

/// Default number of streams per connection. From `apiserver/pkg/server/secure_serving.go#Serve @v1.36.3`.
const MAX_STREAMS: u32 = 100;

/// Time that connections have to finish when the server shuts down.
/// From `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.
const GRACE: Duration = Duration::from_secs(5);

/// First and longest delay after a connection could not be accepted. From Go's `net/http.Server.Serve`.
const ACCEPT_WAITS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Clients for reviews by the API server. With `None`, no reviews are requested.
#[derive(Clone, Default)]
pub struct Clients {
    /// Client for token reviews and for the cluster's authentication `ConfigMap`.
    pub authentication: Option<kube::Client>,
    /// Client for access reviews.
    pub authorization: Option<kube::Client>,
}

/// A server that has bound its port.
#[must_use = "nothing is served until it is run"]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<ConnectionContext>,
    files: Vec<Arc<dyn Refresh>>,
    /// Destinations for the contents of the watched `ConfigMap`, and the client that watches it.
    cluster: Option<(Cluster, kube::Client)>,
}

/// Parts of the authentication while the server is being built.
struct Authentication {
    authenticator: Authenticator,
    trusted: Vec<Arc<Trust>>,
    cluster: Option<(Cluster, kube::Client)>,
}

impl Server {
    /// Binds the port, reads the files, and looks up the cluster's authentication settings. `seed` decides the jitter of
    /// retries. Must be called inside a tokio runtime.
    ///
    /// Errors have upstream's order and texts: self-signed certificate, port, certificate, TLS, certificates for server names,
    /// authentication, authorization.
    pub async fn bind(
        options: Options,
        endpoints: Endpoints,
        clients: Clients,
        clock: Clock,
        seed: u64,
    ) -> Result<Self, ServeError> {
        let mut files = Vec::new();
        let made = own_certificate(&options, &clock)
            .map_err(|error| ServeError(format!("error creating self-signed certificates: {error}")))?;
        let listener = listener::bind(&options)?;
        let default = default_pair(&options, made, &mut files)?;
        let settings = tls::resolve(&options.tls, options.disable_http2)?;
        let named = named_pairs(&options, &mut files)?;
        let gauges = gauges(&endpoints.registry)?;
        let mut rng = Rng::from_seed(seed);
        let mut asker = |client: &kube::Client| Asker::new(client.clone(), &clock, rng.split());
        let authentication =
            authentication(&options.authentication, clients.authentication, &mut asker, &clock, &gauges, &mut files)
                .await?;
        if clients.authorization.is_none() {
            warn!("No authorization-kubeconfig provided, so SubjectAccessReview of authorization tokens won't work.");
        }
        let reviewer = clients.authorization.as_ref().map(&mut asker);
        let authorizer = Authorizer::new(&options.authorization, reviewer, &clock, gauges)?;
        let mux = Mux::new(endpoints, &clock).map_err(|error| ServeError(error.to_string()))?;
        let failed = |error: std::io::Error| ServeError(format!("failed to create listener: {error}"));
        let address = listener.local_addr().map_err(failed)?;
        let listener = TcpListener::from_std(listener).map_err(failed)?;
        let Authentication { authenticator, trusted, cluster } = authentication;
        let serving = Serving { settings, default, named, trusted, last: Mutex::new(None) };
        serving.configs()?;
        let shared = ConnectionContext {
            serving,
            handler: Handler { authenticator, authorizer, mux, clock: clock.clone() },
            clock,
            max_streams: if options.http2_max_streams == 0 { MAX_STREAMS } else { options.http2_max_streams },
            header_permits: HeaderPermits::new(),
            stop: CancellationToken::new(),
        };
        Ok(Self { listener, address, shared: Arc::new(shared), files, cluster })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is ready. Then no more connections are accepted, and open ones have five seconds to finish
    /// their requests. A panic in a request handler continues here.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, address, shared, files, cluster } = self;
        info!("Serving securely on {address}");
        let mut connections = JoinSet::new();
        {
            let clock = shared.clock.clone();
            let background = futures::future::join(reread(files, clock.clone()), follow(cluster, clock));
            let accept = accept(&listener, &shared, &mut connections);
            tokio::select! {
                biased;
                () = shutdown => {}
                _ = background => {}
                () = accept => {}
            }
        }
        drop(listener);
        info!("Stopped listening on {address}");
        info!("[graceful-termination] secure server has stopped listening");
        shared.stop.cancel();
        let deadline = shared.clock.mono() + GRACE;
        let drained = async {
            while let Some(end) = connections.join_next().await {
                observe(end);
            }
        };
        if shared.clock.timeout_at(deadline, drained).await.is_err() {
            error!("Failed to shutdown server: context deadline exceeded");
        }
        connections.shutdown().await;
        info!("[graceful-termination] secure server is exiting");
    }
}

/// Accepts connections, and propagates their panics, for as long as it is polled.
async fn accept(listener: &TcpListener, shared: &Arc<ConnectionContext>, connections: &mut JoinSet<()>) {
    let mut wait = ACCEPT_WAITS.0;
    loop {
        tokio::select! {
            biased;
            Some(end) = connections.join_next(), if !connections.is_empty() => observe(end),
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    wait = ACCEPT_WAITS.0;
                    connections.spawn(connection::serve(shared.clone(), stream, remote));
                }
                Err(error) => {
                    // The usual cause is too many open files, which ends when connections are closed.
                    error!(%error, "Failed to accept a connection");
                    shared.clock.sleep(wait).await;
                    wait = (wait * 2).min(ACCEPT_WAITS.1);
                }
            },
        }
    }
}

/// Propagates the panic of a connection's task to the server.
fn observe(end: Result<(), JoinError>) {
    if let Err(end) = end
        && let Ok(panic) = end.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Reloads the files every [`PERIOD`] on a blocking thread, so that a slow disk delays nobody.
async fn reread(files: Vec<Arc<dyn Refresh>>, clock: Clock) {
    if files.is_empty() {
        std::future::pending::<()>().await;
    }
    loop {
        clock.sleep(PERIOD).await;
        let files = files.clone();
        let read = tokio::task::spawn_blocking(move || files.iter().for_each(|file| file.refresh())).await;
        observe(read);
    }
}

async fn follow(cluster: Option<(Cluster, kube::Client)>, clock: Clock) {
    if let Some((cluster, client)) = cluster {
        cluster.follow(client, clock).await;
    }
    std::future::pending::<()>().await;
}

fn gauges(registry: &Registry) -> Result<Arc<Gauges>, ServeError> {
    Gauges::new(registry).map_err(|error| ServeError(error.to_string()))
}

/// Generates a self-signed certificate if no files are configured. If a certificate directory is configured, the certificate is
/// written there, unless the directory already has one, and the result is `None`. Without a directory, the result is the
/// certificate.
/// Follows `apiserver/pkg/server/options/serving.go#MaybeDefaultWithSelfSignedCerts @v1.36.3`.
fn own_certificate(options: &Options, clock: &Clock) -> Result<Option<Arc<Pair>>, ServeError> {
    if !options.cert_file.is_empty() || !options.key_file.is_empty() {
        return Ok(None);
    }
    if let Some([cert_file, key_file]) = kept_files(options) {
        if !certificate::can_read(cert_file.as_ref(), key_file.as_ref())? {
            let made = certificate::self_signed(options.bind_address, clock.now().wall)?;
            certificate::write(&made, cert_file.as_ref(), key_file.as_ref())?;
            info!("Generated self-signed cert ({cert_file}, {key_file})");
        }
        return Ok(None);
    }
    let made = certificate::self_signed(options.bind_address, clock.now().wall)?;
    info!("Generated self-signed cert in-memory");
    Pair::parse(made.chain.as_bytes(), made.key.as_bytes()).map(Arc::new).map(Some).map_err(ServeError)
}

/// Returns the paths of the generated certificate and key, or `None` without a certificate directory.
fn kept_files(options: &Options) -> Option<[String; 2]> {
    let folder = options.cert_dir.as_ref().filter(|folder| !folder.as_os_str().is_empty())?;
    Some(["crt", "key"].map(|kind| folder.join(format!("{PAIR_NAME}.{kind}")).display().to_string()))
}

fn default_pair(
    options: &Options,
    made: Option<Arc<Pair>>,
    files: &mut Vec<Arc<dyn Refresh>>,
) -> Result<DefaultPair, ServeError> {
    if let Some(made) = made {
        return Ok(DefaultPair::Made(made));
    }
    let given = [options.cert_file.clone(), options.key_file.clone()];
    let [cert_file, key_file] =
        if given.iter().all(String::is_empty) { kept_files(options).unwrap_or(given) } else { given };
    let watched = pair_files("serving-cert", &cert_file, &key_file)?;
    files.push(watched.clone());
    Ok(DefaultPair::Files(watched))
}

fn pair_files(purpose: &str, cert_file: &str, key_file: &str) -> Result<Arc<ReloadedFiles<Pair>>, ServeError> {
    if cert_file.is_empty() || key_file.is_empty() {
        return Err(ServeError::new("missing filename for serving cert"));
    }
    ReloadedFiles::load(purpose, &[cert_file, key_file], Pair::of_files).map_err(ServeError)
}

fn named_pairs(options: &Options, files: &mut Vec<Arc<dyn Refresh>>) -> Result<Vec<NamedPair>, ServeError> {
    let load = |sni: &super::options::SniCertificate| {
        let watched = pair_files("sni-serving-cert", &sni.cert_file, &sni.key_file)
            .map_err(|error| ServeError(format!("failed to load SNI cert and key: {error}")))?;
        files.push(watched.clone());
        Ok(NamedPair { files: watched, names: sni.names.clone() })
    };
    options.sni.iter().map(load).collect()
}

/// Builds the authentication from its options.
/// Follows `apiserver/pkg/server/options/authentication.go#ApplyTo @v1.36.3`.
async fn authentication(
    options: &AuthenticationOptions,
    client: Option<kube::Client>,
    asker: &mut impl FnMut(&kube::Client) -> Asker,
    clock: &Clock,
    gauges: &Arc<Gauges>,
    files: &mut Vec<Arc<dyn Refresh>>,
) -> Result<Authentication, ServeError> {
    let asker = client.as_ref().map(asker);
    let mut cluster = Cluster::default();
    let clients = clients(options, asker.is_some(), &mut cluster, files)?;
    let request_header = request_header(options, asker.as_ref(), &mut cluster, files).await?;
    let trusted = [clients.clone(), request_header.as_ref().map(|header| header.trust.clone())];
    let tokens = asker.map(|asker| Tokens::new(asker, clock, options.token_ttl, gauges.clone())).transpose();
    let authenticator = Authenticator {
        clock: clock.clone(),
        request_header,
        clients,
        uid_from_certificates: options.uid_from_certificates,
        tokens: tokens.map_err(ServeError)?,
        gauges: gauges.clone(),
    };
    let cluster = client.filter(|_| cluster.is_wanted()).map(|client| (cluster, client));
    Ok(Authentication { authenticator, trusted: trusted.into_iter().flatten().collect(), cluster })
}

fn clients(
    options: &AuthenticationOptions,
    has_client: bool,
    cluster: &mut Cluster,
    files: &mut Vec<Arc<dyn Refresh>>,
) -> Result<Option<Arc<Trust>>, ServeError> {
    if !options.client_ca_file.is_empty() {
        let file = ReloadedFiles::load("client-ca-bundle", &[&options.client_ca_file], Bundle::of_files)
            .map_err(|error| ServeError(format!("unable to load client CA provider: {error}")))?;
        files.push(file.clone());
        return Ok(Some(Arc::new(Trust::File(file))));
    }
    if options.skip_lookup {
        return Ok(None);
    }
    if !has_client {
        warn!(
            "No authentication-kubeconfig provided in order to lookup client-ca-file in \
             configmap/extension-apiserver-authentication in kube-system, so client certificate authentication won't work."
        );
        return Ok(None);
    }
    let trust = Arc::new(Trust::Cluster(LatestValue::empty()));
    cluster.clients = Some(trust.clone());
    Ok(Some(trust))
}

async fn request_header(
    options: &AuthenticationOptions,
    asker: Option<&Asker>,
    cluster: &mut Cluster,
    files: &mut Vec<Arc<dyn Refresh>>,
) -> Result<Option<RequestHeader>, ServeError> {
    let given = &options.request_header;
    if !given.client_ca_file.is_empty() {
        let file = ReloadedFiles::load("request-header", &[&given.client_ca_file], Bundle::of_files)
            .map_err(|error| ServeError(format!("unable to create request header authentication config: {error}")))?;
        files.push(file.clone());
        let names = LatestValue::empty();
        names.set(HeaderNames {
            username: given.username_headers.clone(),
            uid: given.uid_headers.clone(),
            group: given.group_headers.clone(),
            extra_prefix: given.extra_headers_prefix.clone(),
            allowed: given.allowed_names.clone(),
        });
        return Ok(Some(RequestHeader { trust: Arc::new(Trust::File(file)), names: Arc::new(names) }));
    }
    if options.skip_lookup {
        return Ok(None);
    }
    let Some(asker) = asker else {
        warn!(
            "No authentication-kubeconfig provided in order to lookup requestheader-client-ca-file in \
             configmap/extension-apiserver-authentication in kube-system, so request-header client certificate \
             authentication won't work."
        );
        return Ok(None);
    };
    match lookup(asker).await {
        Ok(map) => {
            let (trust, names) = (Arc::new(Trust::Cluster(LatestValue::empty())), Arc::new(LatestValue::empty()));
            (cluster.proxies, cluster.names) = (Some(trust.clone()), Some(names.clone()));
            if let Some(Err(error)) = map.map(|map| cluster.take(&map)) {
                warn!(err = error, "ConfigMap kube-system/extension-apiserver-authentication is invalid in part");
            }
            Ok(Some(RequestHeader { trust, names }))
        }
        Err(error) if options.tolerate_lookup_failure => {
            warn!("Error looking up in-cluster authentication configuration: {error}");
            warn!("Continuing without authentication configuration. This may treat all requests as anonymous.");
            warn!(
                "To require authentication configuration lookup to succeed, set \
                 --authentication-tolerate-lookup-failure=false"
            );
            Ok(None)
        }
        Err(error) => Err(ServeError(format!("unable to load configmap based request-header-client-ca-file: {error}"))),
    }
}
