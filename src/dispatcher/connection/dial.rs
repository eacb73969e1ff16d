//! Reaching a server: directly, or through a proxy of HTTP, HTTPS or SOCKS5.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;
use http::uri::{Authority, Parts};
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tower::{BoxError, ServiceExt as _};

use super::super::error::os_text;
use super::wire::{Connections, Wire};

/// Which proxy a server is reached through.
#[derive(Clone)]
pub(in super::super) struct Proxies {
    matcher: Arc<Matcher>,
    /// Whether this very machine is reached without it.
    spares_loopback: bool,
}

impl Proxies {
    /// The one that is configured, or what the environment says: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, by capital or
    /// small letters. Follows `golang.org/x/net/http/httpproxy`, which `net/http.ProxyFromEnvironment` asks.
    pub(in super::super) fn of(configured: Option<&Uri>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty());
            set(name).or_else(|| set(&name.to_ascii_lowercase())).unwrap_or_default()
        };
        let builder = Matcher::builder();
        let builder = match configured {
            Some(proxy) => builder.all(proxy.to_string()),
            None => builder.https(either("HTTPS_PROXY")).http(either("HTTP_PROXY")).no(either("NO_PROXY")),
        };
        Self { matcher: Arc::new(builder.build()), spares_loopback: configured.is_none() }
    }

    fn to(&self, server: &Uri) -> Option<Intercept> {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if self.spares_loopback && is_loopback { None } else { self.matcher.intercept(server) }
    }
}

/// Opens connections that are not secured yet.
#[derive(Clone)]
pub(super) struct Dialler {
    tcp: HttpConnector,
    proxies: Proxies,
    /// For a proxy that is spoken to over TLS.
    tls: Arc<rustls::ClientConfig>,
}

impl Dialler {
    pub(super) fn new(tcp: HttpConnector, proxies: Proxies, tls: rustls::ClientConfig) -> Self {
        Self { tcp, proxies, tls: Arc::new(tls) }
    }

    /// Opens one that `connections` can close.
    pub(super) async fn dial(self, server: &Uri, connections: &Connections) -> Result<Wire, BoxError> {
        let Some(proxy) = self.proxies.to(server) else {
            let opened = self.tcp.oneshot(server.clone()).await.map_err(|error| in_go(error.into(), server))?;
            return Ok(Wire::new(opened, connections));
        };
        let failed = |error: BoxError| -> BoxError {
            let error = match in_go(error, proxy.uri()).downcast::<io::Error>() {
                Ok(error) => return io::Error::new(error.kind(), format!("proxyconnect tcp: {error}")).into(),
                Err(error) => error,
            };
            let causes = std::iter::successors(Some(&*error as &(dyn Error + 'static)), |error| (*error).source());
            let texts: Vec<String> = causes.map(ToString::to_string).collect();
            io::Error::other(format!("proxyconnect tcp: {}", texts.join(": "))).into()
        };
        // Who takes a name for the server's expects its port, too.
        let server = with_port(server, port(server));
        if proxy.uri().scheme_str().is_some_and(|scheme| scheme.starts_with("socks")) {
            let mut socks = SocksV5::new(with_port(proxy.uri(), 1080), self.tcp);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            let opened = socks.oneshot(server).await.map_err(|error| failed(error.to_string().into()))?;
            return Ok(Wire::new(opened, connections));
        }
        // The certificates that vouch for the server vouch for its proxy.
        let https = HttpsConnector::new(self.tcp, self.tls, false, Arc::new(DefaultServerNameResolver::default()));
        let mut tunnel = Tunnel::new(proxy.uri().clone(), https);
        if let Some(value) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(value.clone());
        }
        let opened = tunnel.oneshot(server).await.map_err(|error| failed(Box::new(error)))?;
        Ok(Wire::new(opened, connections))
    }
}

/// Says in Go's words why a server could not be reached; of a name, not which of its addresses it was.
fn in_go(error: BoxError, server: &Uri) -> BoxError {
    let host = server.host().unwrap_or_default();
    let port = port(server);
    let causes = std::iter::successors(Some(&*error as &(dyn Error + 'static)), |error| (*error).source());
    let Some(cause) = causes.filter_map(|error| error.downcast_ref::<io::Error>()).last() else { return error };
    let text = match cause.kind() {
        _ if cause.to_string().starts_with("failed to lookup address information") => {
            format!("dial tcp: lookup {host}: no such host")
        }
        io::ErrorKind::TimedOut => format!("dial tcp {host}:{port}: i/o timeout"),
        _ if cause.raw_os_error().is_some() => format!("dial tcp {host}:{port}: connect: {}", os_text(cause)),
        _ => return error,
    };
    io::Error::new(cause.kind(), text).into()
}

/// The port that a URL names or means.
fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 })
}

fn with_port(uri: &Uri, port: u16) -> Uri {
    let mut parts: Parts = uri.clone().into_parts();
    if let Some(authority) = &parts.authority
        && authority.port().is_none()
        && let Ok(authority) = format!("{}:{port}", authority.host()).parse::<Authority>()
    {
        parts.authority = Some(authority);
    }
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}
