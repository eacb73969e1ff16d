//! Building the `kube::Client` that everything here sends through.

use http::HeaderValue;
use http::header::USER_AGENT;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use tower::ServiceBuilder;

use super::connection::{self, Liveness};

/// What the process tells the API server that it is.
pub const AGENT: &str =
    concat!("kube-scheduler/v1.36.3 (", env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"), ")");

/// How much of one answer may be on its way unread, and of all answers of a connection, in bytes. The second is so large
/// that no answer keeps the others waiting. As Go's transport has it.
const WINDOWS: [u32; 2] = [4 << 20, 1 << 30];

/// The configuration as the scheduler's clients need it: kube's own retries off, since they would retry what client-go does
/// not and hide it from ours, and no compression, as upstream asks for none.
/// kube sends no `User-Agent` of its own; `user_agent` becomes it, unless it cannot be a header's value.
#[must_use]
pub fn configured(mut config: Config, user_agent: &str) -> Config {
    config.default_retry = false;
    config.disable_compression = true;
    if let Ok(value) = HeaderValue::from_str(user_agent) {
        config.headers.retain(|(name, _)| name != USER_AGENT);
        config.headers.push((USER_AGENT, value));
    }
    config
}

/// A client of its own connections, from [`configured`]. Must be called inside a tokio runtime.
/// Fails if the configuration's certificates, keys or proxy cannot be used.
///
/// As client-go's, it speaks HTTP/2 where the server does, over one connection that pings keep from being dead unnoticed;
/// kube's own client only speaks HTTP/1.1, where a watch that has gone silent looks like one that has nothing to tell.
pub fn client(config: Config, user_agent: &str) -> Result<Client, kube::Error> {
    client_with(config, user_agent, &Liveness::from_environment())
}

/// The same, with limits of one's own.
pub(super) fn client_with(config: Config, user_agent: &str, liveness: &Liveness) -> Result<Client, kube::Error> {
    let config = configured(config, user_agent);
    if config.proxy_url.is_some() {
        // kube says which proxies it can use.
        return Client::try_from(config);
    }
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(connection::IDLE);
    builder.http2_initial_stream_window_size(WINDOWS[0]).http2_initial_connection_window_size(WINDOWS[1]);
    builder.http2_keep_alive_interval(liveness.silence).http2_keep_alive_timeout(liveness.patience);
    // Also one without requests is found out before the next is lost on it.
    builder.http2_keep_alive_while_idle(true);
    let http: legacy::Client<_, Body> = builder.build(connection::Connector::new(&config, liveness)?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_retries_are_the_only_ones() {
        let mut config = Config::new(http::Uri::from_static("https://server:6443"));
        assert!(config.default_retry, "otherwise kube has changed and this module can go");
        config.headers.push((USER_AGENT, HeaderValue::from_static("old")));
        let config = configured(config, "kube-scheduler/v1/scheduler");
        assert!(!config.default_retry && config.disable_compression);
        let agents: Vec<_> = config.headers.iter().filter(|(name, _)| name == USER_AGENT).map(|(_, v)| v).collect();
        assert_eq!(agents, ["kube-scheduler/v1/scheduler"]);
    }
}
