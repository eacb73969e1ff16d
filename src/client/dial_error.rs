//! Go's error texts for an unreachable server.

use std::io;

use http::Uri;

/// Go's text for an unknown host or a refused connection. Returns `None` for other errors.
pub(crate) fn unreachable(error: &io::Error, server: &Uri) -> Option<String> {
    // Compares the standard library's text, because `io::ErrorKind` has no kind for a failed lookup.
    if error.to_string().starts_with("failed to lookup address information") {
        return Some(format!("dial tcp: lookup {}: no such host", server.host().unwrap_or_default()));
    }
    let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
    is_refused.then(|| format!("dial tcp {}: connect: connection refused", address(server)))
}

/// Returns `host:port` of a URL.
pub(super) fn address(uri: &Uri) -> String {
    format!("{}:{}", uri.host().unwrap_or_default(), port(uri))
}

/// The port of a URL, or the default one of its scheme.
pub(super) fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 })
}
