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

/// Returns Go's text for a port that is not a 16-bit number. `Uri` ignores such a port, and the default one would be dialed.
pub(super) fn invalid_port(uri: &Uri) -> Option<String> {
    let authority = uri.authority()?.as_str();
    let after_address = authority.rsplit_once(']').map_or(authority, |(_, rest)| rest);
    let (_, port) = after_address.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && port.parse::<u16>().is_err()).then(|| format!("dial tcp: address {port}: invalid port"))
}

/// The port of a URL, or the default one of its scheme.
pub(super) fn port(uri: &Uri) -> u16 {
    uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_beyond_16_bits_are_invalid() {
        let check = |url: &str, expected: Option<&str>| {
            let found = invalid_port(&url.parse().expect("a URL"));
            assert_eq!(found.as_deref(), expected, "{url}");
        };
        check("https://127.0.0.1:99999", Some("dial tcp: address 99999: invalid port"));
        check("https://[::1]:65536/path", Some("dial tcp: address 65536: invalid port"));
        check("https://user:1@host:65535", None);
        check("https://[::1]", None);
        check("https://host", None);
    }
}
