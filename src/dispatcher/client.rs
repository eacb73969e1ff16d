//! The way to an API server, and the `kube::Client`s that go it.

use std::sync::Arc;

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::{Body, ConfigExt as _};
use rustls::client::ResolvesClientCert;
use tower::{BoxError, ServiceBuilder, service_fn};

use super::connection::{self, Connections, Liveness, Proxies};
use super::credentials::Credentials;
use super::retry::{MAX_RETRIES, wait_after_response};
use super::tls::{self, Identity, Shown};
use crate::clock::Clock;
use crate::config::kubeconfig::{Access, Impersonation};
use crate::metrics::RestMetrics;

/// How much of one answer may be on its way unread, and of all answers of a connection, in bytes. The second is so large
/// that no answer keeps the others waiting. As Go's transport has it.
const WINDOWS: [u32; 2] = [4 << 20, 1 << 30];

/// Why there is no way to a server; upstream's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

/// The way to an API server that an access describes. Clients of it share credentials; each has connections of its own.
#[derive(Clone)]
pub struct Link(Arc<Way>);

/// What a [`Link`] is made of.
pub(super) struct Way {
    pub(super) access: Access,
    pub(super) tls: rustls::ClientConfig,
    pub(super) proxy: Proxies,
    pub(super) liveness: Liveness,
    pub(super) open: Arc<Connections>,
    identity: Identity,
    shown: Arc<Shown>,
    credentials: Credentials,
    clock: Clock,
}

impl Way {
    /// Makes sure that what a new connection shows is what it has to show now.
    pub(super) fn show(&self) -> Result<(), BoxError> {
        let own = self.identity.current(self.clock.mono())?;
        self.shown.set(own.or_else(|| self.credentials.certificate()));
        Ok(())
    }
}

impl Link {
    /// The way that an access describes. Fails where that contradicts itself or names what cannot be used.
    pub fn new(access: Access, clock: Clock) -> Result<Self, AccessError> {
        Self::with_liveness(access, clock, Liveness::from_environment())
    }

    pub(super) fn with_liveness(access: Access, clock: Clock, liveness: Liveness) -> Result<Self, AccessError> {
        let open = Arc::<Connections>::default();
        let credentials = Credentials::of(&access, &clock, &open);
        // Of several faults upstream tells that of the plugin first, and that of credentials last.
        let (credentials, late) = match credentials {
            Ok(credentials) => (credentials, None),
            Err(error) if error.starts_with("exec plugin") || error.starts_with("failed to load") => {
                return Err(AccessError(error));
            }
            Err(error) => (Credentials::None, Some(error)),
        };
        let shown = Arc::<Shown>::default();
        let is_https = access.server.scheme_str() == Some("https");
        let may_show =
            !access.tls.cert_file.is_empty() || !access.tls.cert_data.is_empty() || credentials.may_have_certificate();
        let shows = may_show.then(|| shown.clone() as Arc<dyn ResolvesClientCert>);
        let tls = tls::config(&access.tls, access.tls.insecure, is_https, shows).map_err(AccessError)?;
        let identity = Identity::of(&access.tls).map_err(AccessError)?;
        if let Some(error) = late {
            return Err(AccessError(error));
        }
        let proxy = Proxies::of(access.proxy.as_ref(), |name| std::env::var(name).ok());
        Ok(Self(Arc::new(Way { access, tls, proxy, liveness, open, identity, shown, credentials, clock })))
    }

    /// The server's address with its port, as metrics name it.
    pub fn host(&self) -> String {
        self.0.access.server.authority().map(ToString::to_string).unwrap_or_default()
    }

    /// A client of its own connections, that calls itself `agent`; with metrics, every answer is counted, and that there was
    /// none. Must be called inside a tokio runtime.
    ///
    /// Of kube's own retries it has none: they would retry what client-go does not and hide it from ours. Lists and watches are
    /// sent again where the server says when, as all requests of a [`RestClient`](super::RestClient) are. As client-go's, it
    /// speaks HTTP/2 where the server does, over one connection that pings keep from being dead unnoticed; kube's own client
    /// only speaks HTTP/1.1, where a watch that has gone silent looks like one that has nothing to tell. Nothing is
    /// compressed, as upstream asks for none.
    pub fn client(&self, agent: &str, metrics: Option<RestMetrics>) -> Client {
        let way = &self.0;
        let liveness = &way.liveness;
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(connection::IDLE);
        builder.http2_initial_stream_window_size(WINDOWS[0]).http2_initial_connection_window_size(WINDOWS[1]);
        builder.http2_keep_alive_interval(liveness.silence).http2_keep_alive_timeout(liveness.patience);
        // Also one without requests is found out before the next is lost on it.
        builder.http2_keep_alive_while_idle(true);
        let http: legacy::Client<_, Body> = builder.build(connection::Connector::new(way.clone()));
        let sender = Arc::new(Sender { way: way.clone(), http, said: said(agent, &way.access), metrics });
        let service = ServiceBuilder::new()
            .layer(kube::Config::new(way.access.server.clone()).base_uri_layer())
            .service(service_fn(move |request| sender.clone().send(request)));
        Client::new(service, "default")
    }
}

/// Says of a request that whoever sends it sends it again where that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentAgain;

/// There was no answer from there.
#[derive(Debug, thiserror::Error)]
#[error("{url} did not answer")]
pub(super) struct Unanswered {
    pub(super) url: Uri,
    source: BoxError,
}

/// What sends the requests of a client.
struct Sender {
    way: Arc<Way>,
    http: legacy::Client<connection::Connector, Body>,
    /// What every request says, unless it says something else itself.
    said: HeaderMap,
    metrics: Option<RestMetrics>,
}

impl Sender {
    async fn send(self: Arc<Self>, request: Request<Body>) -> Result<Response<Incoming>, Unanswered> {
        let url = request.uri().clone();
        self.send_as_somebody(request).await.map_err(|source| Unanswered { url, source })
    }

    async fn send_as_somebody(&self, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let way = &self.way;
        let headers = request.headers_mut();
        for name in self.said.keys() {
            if !headers.contains_key(name) {
                for value in self.said.get_all(name) {
                    headers.append(name, value.clone());
                }
            }
        }
        let authorization = way.credentials.authorize().await?;
        if let Some(value) = &authorization.header {
            headers.insert(http::header::AUTHORIZATION, value.clone());
        }
        if way.identity.has_changed(way.clock.mono()) {
            tracing::info!(
                "Certificate rotation detected, shutting down client connections to start using new credentials"
            );
            way.open.close();
        }
        let answer = self.send_until_answered(request).await;
        if answer.as_ref().is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED) {
            way.credentials.refused(&authorization).await;
        }
        Ok(answer?)
    }

    /// Sends a request, and a read again if the server asks for that. Who sends requests again itself says so.
    async fn send_until_answered(&self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        let method = request.method().clone();
        if method != Method::GET || request.extensions().get::<SentAgain>().is_some() {
            return self.send_once(request).await;
        }
        let (parts, _) = request.into_parts();
        let mut retries = 0;
        loop {
            let answer = self.send_once(Request::from_parts(parts.clone(), Body::empty())).await;
            let code = answer.as_ref().ok().map(Response::status);
            let wait = answer.as_ref().ok().and_then(|answer| wait_after_response(answer.status(), answer.headers()));
            let Some(wait) = wait.filter(|_| retries < MAX_RETRIES) else { return answer };
            retries += 1;
            tracing::debug!(path = parts.uri.path(), ?wait, attempt = retries, "Got a Retry-After response");
            if let Some(metrics) = &self.metrics {
                metrics.sent_again(method.as_str(), code.map(|code| code.as_u16()));
            }
            self.way.clock.sleep(wait).await;
        }
    }

    async fn send_once(&self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        let method = request.method().clone();
        let answer = self.http.request(request).await;
        if let Some(metrics) = &self.metrics {
            metrics.answered(method.as_str(), answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        }
        answer
    }
}

/// The headers of all requests: who sends them, and whom the server is to take for the sender.
/// Follows `client-go/transport/round_trippers.go#impersonatingRoundTripper.RoundTrip @v1.36.3`.
fn said(agent: &str, access: &Access) -> HeaderMap {
    let mut said = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes())) {
            said.append(name, value);
        }
    };
    add(USER_AGENT.as_str(), agent);
    if let Some(Impersonation { user, uid, groups, extra }) = &access.impersonation {
        add("impersonate-user", user);
        if !uid.is_empty() {
            add("impersonate-uid", uid);
        }
        groups.iter().for_each(|group| add("impersonate-group", group));
        for (key, values) in extra {
            let name = format!("impersonate-extra-{}", escaped(key));
            values.iter().for_each(|value| add(&name, value));
        }
    }
    said
}

/// A text as a part of a header's name.
/// Follows `client-go/transport/round_trippers.go#headerKeyEscape @v1.36.3`.
fn escaped(key: &str) -> String {
    use std::fmt::Write as _;

    let mut text = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_says_who_sends_it_and_for_whom() {
        let mut access = Access::new(http::Uri::from_static("https://server:6443"));
        access.impersonation = Some(Impersonation {
            user: "jane".to_owned(),
            uid: String::new(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: vec![("Example.com/Key %".to_owned(), vec!["v".to_owned()])],
        });
        let said = said("kube-scheduler/v1/scheduler", &access);
        let all = |name: &str| -> Vec<_> { said.get_all(name).iter().map(|v| v.to_str().unwrap()).collect() };
        assert_eq!(all("user-agent"), ["kube-scheduler/v1/scheduler"]);
        assert_eq!(all("impersonate-user"), ["jane"]);
        assert_eq!(all("impersonate-group"), ["a", "b"]);
        assert_eq!(all("impersonate-uid"), [""; 0]);
        assert_eq!(all("impersonate-extra-example.com%2fkey%20%25"), ["v"]);
    }
}
