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

/// Flow control windows of one response and of all responses of a connection, in bytes. The second is so large that no
/// response holds up the others. From Go's HTTP/2 transport.
const WINDOWS: [u32; 2] = [4 << 20, 1 << 30];

/// Makes clients of the API server that an access describes. The clients share credentials; each has its own connections.
#[derive(Clone)]
pub struct Transport(Arc<TransportConfig>);

impl Transport {
    /// Checks an access. Fails where the access contradicts itself or names what cannot be used.
    pub fn new(access: Access, clock: Clock) -> Result<Self, AccessError> {
        Self::with_liveness(access, clock, Liveness::from_environment())
    }

    fn with_liveness(access: Access, clock: Clock, liveness: Liveness) -> Result<Self, AccessError> {
        Ok(Self(Arc::new(TransportConfig::new(access, clock, liveness)?)))
    }

    /// Address of the API server with its port, as metrics name it.
    pub fn host(&self) -> String {
        self.0.access.server.authority().map(ToString::to_string).unwrap_or_default()
    }

    /// URL of the API server.
    pub fn url(&self) -> String {
        self.0.access.server.to_string()
    }

    /// A client with its own connections and this user agent. With metrics, responses and failed attempts are counted. Must be
    /// called inside a tokio runtime.
    ///
    /// kube's own retries are off, because they would retry what client-go does not, and hide that from the retries here.
    /// Lists and watches are retried where the server asks for it; a [`RestClient`](super::RestClient) does that itself. Like
    /// client-go's, the client speaks HTTP/2 where the server does, over one connection that pings check; kube's own client
    /// speaks HTTP/1.1 only, where a dead watch looks like an idle one. Nothing is compressed, as in upstream.
    pub fn client(&self, agent: &str, metrics: Option<RestMetrics>) -> Client {
        let config = &self.0;
        let liveness = &config.liveness;
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        builder.http2_initial_stream_window_size(WINDOWS[0]).http2_initial_connection_window_size(WINDOWS[1]);
        builder.http2_keep_alive_interval(liveness.silence).http2_keep_alive_timeout(liveness.patience);
        // An idle connection that is dead is noticed before the next request is lost on it.
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
