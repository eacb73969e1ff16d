//! Time limits after which a connection counts as dead.

use std::time::Duration;

/// Time limit for the TLS handshake. From `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Limits after which an HTTP/2 connection counts as dead. A silent connection gets a ping, which must be answered in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Liveness {
    /// Whether HTTP/2 may be used.
    pub(super) http2: bool,
    /// Time without data after which a ping is sent; `None` disables pings.
    pub(super) silence: Option<Duration>,
    /// Time limit for the response to a ping.
    pub(super) patience: Duration,
    /// Time limit for the TLS handshake.
    pub(super) handshake: Duration,
}

impl Liveness {
    /// The limits of client-go, which environment variables can override.
    /// Follows `apimachinery/pkg/util/net/http.go#SetTransportDefaults @v1.36.3`.
    pub(super) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str, default: u64| {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else {
                return Duration::from_secs(default);
            };
            // Negative values count as 0. A silence of 0 disables pings.
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
