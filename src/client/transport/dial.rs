//! Dials a server directly, or through an HTTP, HTTPS or SOCKS5 proxy.

use crate::go::errno;
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

use super::super::dial_error::{address, invalid_port, port, unreachable};
use super::super::stream::{Connections, TrackedStream};

/// Finds the proxy, if any, for a server.
#[derive(Clone)]
pub(super) struct Proxies {
    matcher: Arc<Matcher>,
    /// Whether loopback addresses are always dialed without a proxy.
    spares_loopback: bool,
}

impl Proxies {
    /// Uses the configured proxy, or those of the environment variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, in upper
    /// or lower case. Follows `golang.org/x/net/http/httpproxy`, which `net/http.ProxyFromEnvironment` uses.
    pub(super) fn of(configured: Option<&Uri>, variable: impl Fn(&str) -> Option<String>) -> Self {
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

/// Opens plain connections to the server; TLS to the server is added later.
#[derive(Clone)]
pub(super) struct Dialler {
    tcp: HttpConnector,
    proxies: Proxies,
    /// TLS settings for connections to HTTPS proxies.
    tls: Arc<rustls::ClientConfig>,
}

impl Dialler {
    pub(super) fn new(tcp: HttpConnector, proxies: Proxies, tls: rustls::ClientConfig) -> Self {
        Self { tcp, proxies, tls: Arc::new(tls) }
    }

    /// Opens a connection that `connections` can close.
    pub(super) async fn dial(self, server: &Uri, connections: &Connections) -> Result<TrackedStream, BoxError> {
        let Some(proxy) = self.proxies.to(server) else {
            if let Some(text) = invalid_port(server) {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
            }
            let opened = self.tcp.oneshot(server.clone()).await.map_err(|error| go_error(error.into(), server))?;
            return Ok(TrackedStream::new(opened, connections));
        };
        let failed = |error: BoxError| -> BoxError {
            let error = match go_error(error, proxy.uri()).downcast::<io::Error>() {
                Ok(error) => return io::Error::new(error.kind(), format!("proxyconnect tcp: {error}")).into(),
                Err(error) => error,
            };
            let causes = std::iter::successors(Some(&*error as &(dyn Error + 'static)), |error| (*error).source());
            let texts: Vec<String> = causes.map(ToString::to_string).collect();
            io::Error::other(format!("proxyconnect tcp: {}", texts.join(": "))).into()
        };
        if let Some(text) = invalid_port(proxy.uri()) {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, text).into()));
        }
        // Requests to proxies must contain the server's port.
        let server = with_port(server, port(server));
        if proxy.uri().scheme_str().is_some_and(|scheme| scheme.starts_with("socks")) {
            let mut socks = SocksV5::new(with_port(proxy.uri(), 1080), self.tcp);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            let opened = socks.oneshot(server).await.map_err(|error| failed(error.to_string().into()))?;
            return Ok(TrackedStream::new(opened, connections));
        }
        // Verifies the proxy's certificate with the same settings as the server's.
        let https = HttpsConnector::new(self.tcp, self.tls, false, Arc::new(DefaultServerNameResolver::default()));
        let mut tunnel = Tunnel::new(proxy.uri().clone(), https);
        if let Some(value) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(value.clone());
        }
        let opened = tunnel.oneshot(server).await.map_err(|error| failed(Box::new(error)))?;
        Ok(TrackedStream::new(opened, connections))
    }
}

/// Replaces an error by Go's text for an unreachable server. Unlike Go's text, it names the host instead of the address that was
/// dialed.
fn go_error(error: BoxError, server: &Uri) -> BoxError {
    let causes = std::iter::successors(Some(&*error as &(dyn Error + 'static)), |error| (*error).source());
    let Some(cause) = causes.filter_map(|error| error.downcast_ref::<io::Error>()).last() else { return error };
    let text = match cause.kind() {
        io::ErrorKind::TimedOut => format!("dial tcp {}: i/o timeout", address(server)),
        _ => match unreachable(cause, server) {
            Some(text) => text,
            None if cause.raw_os_error().is_some() => {
                format!("dial tcp {}: connect: {}", address(server), errno::text(cause))
            }
            None => return error,
        },
    };
    io::Error::new(cause.kind(), text).into()
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
