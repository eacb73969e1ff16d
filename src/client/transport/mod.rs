//! Connections to one API server, and the `kube::Client`s that use them.

mod config;
mod connector;
mod dial;
mod headers;
mod liveness;
mod sender;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::{Body, ConfigExt as _};
use tower::{ServiceBuilder, service_fn};

use super::access_error::AccessError;
use super::kubeconfig::Access;
use crate::clock::Clock;
use crate::metrics::RestMetrics;
use config::TransportConfig;
use connector::{Connector, IDLE};
use liveness::Liveness;
use sender::Sender;

/// HTTP/2 flow control windows in bytes: per response, and per connection. The second one is so large that a slow response
/// cannot block the others. From Go's HTTP/2 transport.
const WINDOWS: [u32; 2] = [4 << 20, 1 << 30];

/// Creates clients for one API server. The clients share credentials, but each has its own connections.
#[derive(Clone)]
pub struct Transport(Arc<TransportConfig>);

impl Transport {
    /// Checks an access and loads its certificates. Fails if its settings contradict each other or cannot be used.
    pub fn new(access: Access, clock: Clock) -> Result<Self, AccessError> {
        Self::with_liveness(access, clock, Liveness::from_environment())
    }

    fn with_liveness(access: Access, clock: Clock, liveness: Liveness) -> Result<Self, AccessError> {
        Ok(Self(Arc::new(TransportConfig::new(access, clock, liveness)?)))
    }

    /// Host and port of the API server, as used in metrics' labels.
    pub fn host(&self) -> String {
        self.0.access.server.authority().map(ToString::to_string).unwrap_or_default()
    }

    /// URL of the API server.
    pub fn url(&self) -> String {
        self.0.access.server.to_string()
    }

    /// Creates a client with its own connections and this user agent. Metrics, if given, count responses and failed attempts.
    /// Must be called inside a tokio runtime.
    ///
    /// kube's own retries are off, because they differ from client-go's and would be invisible to the retries here. Lists and
    /// watches are retried if the server asks for it; a [`RestClient`](super::RestClient) does its own retries.
    ///
    /// Like client-go's, the client uses HTTP/2 if the server supports it, over one connection that is checked with pings. kube's
    /// own client supports HTTP/1.1 only, where a dead watch looks like an idle one. As in upstream, nothing is compressed.
    pub fn client(&self, agent: &str, metrics: Option<RestMetrics>) -> Client {
        let config = &self.0;
        let liveness = &config.liveness;
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        builder.http2_initial_stream_window_size(WINDOWS[0]).http2_initial_connection_window_size(WINDOWS[1]);
        builder.http2_keep_alive_interval(liveness.silence).http2_keep_alive_timeout(liveness.patience);
        // Pings idle connections, too, so that a dead one is closed before the next request is sent on it.
        builder.http2_keep_alive_while_idle(true);
        let http: legacy::Client<_, Body> = builder.build(Connector::new(config.clone()));
        let headers = headers::common_headers(agent, &config.access);
        let sender = Arc::new(Sender { config: config.clone(), http, headers, metrics });
        let service = ServiceBuilder::new()
            .layer(kube::Config::new(config.access.server.clone()).base_uri_layer())
            .service(service_fn(move |request| sender.clone().send(request)));
        Client::new(service, "default")
    }
}
