//! Opens connections to the API server, with time limits.

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

use super::super::stream::TrackedStream;
use super::super::tls;
use super::config::TransportConfig;
use super::dial::Dialler;

/// Time limit for opening the TCP connection. From `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
const DIAL: Duration = Duration::from_secs(30);

/// Interval of TCP keep-alive probes. From `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
const PROBES: Duration = Duration::from_secs(30);

/// Time after which an idle HTTP/1.1 connection is closed.
/// Follows `apimachinery/pkg/util/net/http.go#SetOldTransportDefaults @v1.36.3`, which sets the value of Go's default transport.
pub(super) const IDLE: Duration = Duration::from_secs(90);

/// Opens a TCP connection, through a proxy if there is one, and then TLS. The TCP connection and the TLS handshake with the
/// server each have a time limit. The handshake with a proxy has none.
#[derive(Clone)]
pub(super) struct Connector {
    dialler: Dialler,
    tls: Arc<rustls::ClientConfig>,
    names: Arc<dyn ResolveServerName + Send + Sync>,
    handshake: Duration,
    config: Arc<TransportConfig>,
}

impl Connector {
    pub(super) fn new(config: Arc<TransportConfig>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(DIAL));
        tcp.set_keepalive(Some(PROBES));
        tcp.set_keepalive_interval(Some(PROBES));
        let mut tls = config.tls.clone();
        let dialler = Dialler::new(tcp, config.proxies.clone(), tls.clone());
        let protocols: &[&[u8]] = if config.liveness.http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let names: Arc<dyn ResolveServerName + Send + Sync> = match &*config.access.tls.server_name {
            "" => Arc::new(DefaultServerNameResolver::default()),
            // An invalid name is ignored if the certificate is not verified.
            name if config.access.tls.insecure && ServerName::try_from(name).is_err() => {
                Arc::new(DefaultServerNameResolver::default())
            }
            name => Arc::new(ConfiguredName(name.to_owned())),
        };
        Self { dialler, tls: Arc::new(tls), names, handshake: config.liveness.handshake, config }
    }

    async fn open(self, server: Uri) -> Result<MaybeHttpsStream<TrackedStream>, BoxError> {
        let open = self.config.open.clone();
        let opened = OpenedStream(Some(self.dialler.dial(&server, &open).await?));
        if server.scheme_str() == Some("https") {
            self.config.load_certificate()?;
        }
        let https = HttpsConnector::new(opened, self.tls, false, self.names);
        match tower::timeout::Timeout::new(https, self.handshake).oneshot(server).await {
            Err(error) if error.is::<tower::timeout::error::Elapsed>() => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "net/http: TLS handshake timeout").into())
            }
            Err(error) => Err(match tls::go_text_of(&*error) {
                Some(text) => io::Error::other(text).into(),
                None => error,
            }),
            Ok(connection) => Ok(connection),
        }
    }
}

/// The configured server name, used instead of the URL's host.
struct ConfiguredName(String);

impl ResolveServerName for ConfiguredName {
    fn resolve(&self, _: &Uri) -> Result<ServerName<'static>, BoxError> {
        ServerName::try_from(self.0.clone()).map_err(|_| {
            let name = &self.0;
            format!("tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match {name}")
                .into()
        })
    }
}

/// A stream that is already open, for a connector that adds TLS to it.
struct OpenedStream(Option<TrackedStream>);

impl Service<Uri> for OpenedStream {
    type Response = TrackedStream;
    type Error = io::Error;
    type Future = Ready<io::Result<TrackedStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| io::Error::other("a connection was requested twice")))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TrackedStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The TCP connector is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().open(server))
    }
}
