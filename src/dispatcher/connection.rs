//! Connections to the API server: how long opening one may take, and when an open one counts as dead.

mod dial;
#[cfg(test)]
mod tests;
mod wire;

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector, MaybeHttpsStream, ResolveServerName};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::pki_types::ServerName;
use tower::{BoxError, Service, ServiceExt as _};

use super::client::Way;
use super::tls;
use dial::Dialler;
pub(super) use dial::Proxies;
pub(super) use wire::Connections;
use wire::Wire;

/// How long the other side may take to accept. `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
const DIAL: Duration = Duration::from_secs(30);

/// How long TLS may take after that. `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Between two TCP keep-alive probes. `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
const PROBES: Duration = Duration::from_secs(30);

/// How long a connection of HTTP/1.1 is kept that nobody uses.
/// Follows `apimachinery/pkg/util/net/http.go#SetOldTransportDefaults @v1.36.3`, which leaves it at Go's default.
pub(super) const IDLE: Duration = Duration::from_secs(90);

/// When a connection of HTTP/2 counts as dead: a ping goes out after a time of silence, and has to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Liveness {
    /// Whether HTTP/2 is spoken at all.
    pub(super) http2: bool,
    /// None sends no pings.
    pub(super) silence: Option<Duration>,
    pub(super) patience: Duration,
    /// How long TLS may take once the other side has accepted.
    pub(super) handshake: Duration,
}

impl Liveness {
    /// What client-go has, and what its environment variables make of it.
    /// Follows `apimachinery/pkg/util/net/http.go#SetTransportDefaults @v1.36.3`.
    pub(super) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str, default: u64| {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else {
                return Duration::from_secs(default);
            };
            // Not above 0 is off.
            let parsed = text.parse().map(|seconds: i64| u64::try_from(seconds).unwrap_or(0));
            Duration::from_secs(parsed.unwrap_or_else(|error| {
                tracing::warn!("Illegal {name}({text:?}): {error}. Default value {default} is used");
                default
            }))
        };
        let silence = seconds("HTTP2_READ_IDLE_TIMEOUT_SECONDS", 30);
        Self {
            http2: variable("DISABLE_HTTP2").is_none_or(|text| text.is_empty()),
            silence: (!silence.is_zero()).then_some(silence),
            patience: seconds("HTTP2_PING_TIMEOUT_SECONDS", 15),
            handshake: HANDSHAKE,
        }
    }
}

/// Opens connections: TCP, through a proxy if there is one, then TLS, each with a limit of its own.
#[derive(Clone)]
pub(super) struct Connector {
    dialler: Dialler,
    tls: Arc<rustls::ClientConfig>,
    names: Arc<dyn ResolveServerName + Send + Sync>,
    handshake: Duration,
    way: Arc<Way>,
}

impl Connector {
    pub(super) fn new(way: Arc<Way>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(DIAL));
        tcp.set_keepalive(Some(PROBES));
        tcp.set_keepalive_interval(Some(PROBES));
        let mut tls = way.tls.clone();
        let dialler = Dialler::new(tcp, way.proxy.clone(), tls.clone());
        let protocols: &[&[u8]] = if way.liveness.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let names: Arc<dyn ResolveServerName + Send + Sync> = match &*way.access.tls.server_name {
            "" => Arc::new(DefaultServerNameResolver::default()),
            // Whose certificate is not looked at may have any name.
            name if way.access.tls.insecure && ServerName::try_from(name).is_err() => {
                Arc::new(DefaultServerNameResolver::default())
            }
            name => Arc::new(Named(name.to_owned())),
        };
        Self { dialler, tls: Arc::new(tls), names, handshake: way.liveness.handshake, way }
    }

    async fn open(self, server: Uri) -> Result<MaybeHttpsStream<Wire>, BoxError> {
        let open = self.way.open.clone();
        let dialled = Dialled(Some(self.dialler.dial(&server, &open).await?));
        if server.scheme_str() == Some("https") {
            self.way.show()?;
        }
        let https = HttpsConnector::new(dialled, self.tls, false, self.names);
        match tower::timeout::Timeout::new(https, self.handshake).oneshot(server).await {
            Err(error) if error.is::<tower::timeout::error::Elapsed>() => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "net/http: TLS handshake timeout").into())
            }
            Err(error) => Err(match tls::in_go(&*error) {
                Some(text) => io::Error::other(text).into(),
                None => error,
            }),
            Ok(connection) => Ok(connection),
        }
    }
}

/// A name that the server goes by instead of its host's.
struct Named(String);

impl ResolveServerName for Named {
    fn resolve(&self, _: &Uri) -> Result<ServerName<'static>, BoxError> {
        ServerName::try_from(self.0.clone()).map_err(|_| {
            let name = &self.0;
            format!("tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match {name}")
                .into()
        })
    }
}

/// A connection that is there already, for what is spoken on it.
struct Dialled(Option<Wire>);

impl Service<Uri> for Dialled {
    type Response = Wire;
    type Error = io::Error;
    type Future = Ready<io::Result<Wire>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::Error::other("a connection was asked for twice")))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Wire>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // That of TCP is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().open(server))
    }
}
