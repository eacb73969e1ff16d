//! The API server's address. Follows `client-go/rest/url_utils.go#DefaultServerURL @v1.36.3`.

use http::Uri;

use super::super::access_error::AccessError;
use crate::go::quote::quote;

/// Parses a host, a `host:port` pair or a URL. Without a scheme, the scheme is `http`.
pub(super) fn url(host: &str) -> Result<Uri, AccessError> {
    let host = if host.is_empty() { "localhost" } else { host };
    let host = without_query(host);
    if let Some(url) = whole(host) {
        return Ok(url);
    }
    match host.split_once('/') {
        Some((_, path)) if !path.is_empty() => {
            Err(AccessError::new(format!("host must be a URL or a host:port pair: {}", quote(host))))
        }
        _ => {
            let url = format!("http://{host}");
            whole(&url).ok_or_else(|| AccessError::new(format!("parse {}: {}", quote(&url), why(host))))
        }
    }
}

/// Parses a URL that must have a scheme and a host. A port, if present, must be a number.
fn whole(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    let authority = url.authority()?;
    url.scheme()?;
    let after_host = authority.as_str().rsplit_once(']').map_or_else(|| authority.as_str(), |(_, rest)| rest);
    let port_is_one = match after_host.rsplit_once(':') {
        None => true,
        Some((_, port)) => port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()),
    };
    (port_is_one && !authority.host().is_empty()).then_some(url)
}

fn without_query(host: &str) -> &str {
    let end = host.find(['?', '#']).unwrap_or(host.len());
    &host[..end]
}

/// Go's reason for rejecting the host of a URL.
fn why(host: &str) -> String {
    if host.contains('[') && !host.contains(']') {
        return "missing ']' in host".to_owned();
    }
    if let Some(character) = host.chars().find(|character| " <>\"^`{|}\\".contains(*character)) {
        return format!("invalid character {} in host name", quote(&character.to_string()));
    }
    match host.split_once(':') {
        Some((_, port)) => format!("invalid port {} after host", quote(&format!(":{}", port.trim_start_matches('/')))),
        None => "invalid host".to_owned(),
    }
}

/// Parses a proxy's URL, or returns the reason it is invalid.
/// Follows `client-go/tools/clientcmd/helpers.go#parseProxyURL @v1.36.3`.
pub(super) fn proxy(text: &str) -> Result<Uri, String> {
    // Go parses any path as a URL with an empty scheme.
    if !text.contains(':') {
        return Err("unsupported scheme \"\", must be http, https, or socks5".to_owned());
    }
    let could_not = || format!("could not parse: {text}");
    let (scheme, _) = text.split_once("://").ok_or_else(could_not)?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" | "socks5" => whole(text).ok_or_else(could_not),
        other => Err(format!("unsupported scheme {}, must be http, https, or socks5", quote(other))),
    }
}
