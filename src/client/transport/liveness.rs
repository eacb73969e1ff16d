//! Limits after which a connection counts as dead.

use std::time::Duration;

/// Time limit for the TLS handshake. `client-go/transport/cache.go#tlsTransportCache.get @v1.36.3`.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Limits after which an HTTP/2 connection counts as dead: a ping is sent after a time of silence, and must be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Liveness {
    /// Whether HTTP/2 is used at all.
    pub(super) http2: bool,
    /// Silence after which a ping is sent; `None` sends no pings.
    pub(super) silence: Option<Duration>,
    /// Time limit for the answer to a ping.
    pub(super) patience: Duration,
    /// Time limit for the TLS handshake.
    pub(super) handshake: Duration,
}

impl Liveness {
    /// The limits of client-go, as far as its environment variables do not change them.
    /// Follows `apimachinery/pkg/util/net/http.go#SetTransportDefaults @v1.36.3`.
    pub(super) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = |name: &str, default: u64| {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else {
                return Duration::from_secs(default);
            };
            // 0 and less turn it off.
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
