//! Building the `kube::Client` that everything here sends through.

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::{Client, Config};

/// What the process tells the API server that it is.
pub const AGENT: &str =
    concat!("kube-scheduler/v1.36.3 (", env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"), ")");

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
pub fn client(config: Config, user_agent: &str) -> Result<Client, kube::Error> {
    Client::try_from(configured(config, user_agent))
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
