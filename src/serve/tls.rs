//! TLS versions, cipher suites and key exchanges.
//!
//! rustls supports TLS 1.2 and 1.3 with the suites that are considered safe. Names that only Go supports are accepted with a
//! warning, so that upstream's command lines work here. The result is never weaker than the options.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::{CipherSuite, NamedGroup, SupportedProtocolVersion, version};
use tracing::warn;

use super::error::ServeError;
use super::options::TlsOptions;
use crate::go::quote::quote;

/// The suites that both rustls and Go support, by Go's names.
const SUITES: &[(&str, CipherSuite)] = &[
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    (REQUIRED_BY_HTTP2[0], CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    (REQUIRED_BY_HTTP2[1], CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// The suites that only Go supports. All of them use CBC or RC4 or have no forward secrecy.
/// From `crypto/tls` of Go 1.26, as `component-base/cli/flag/ciphersuites_flag.go @v1.36.3` lists them.
const GO_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Suites of which HTTP/2 requires at least one.
/// Follows `golang.org/x/net/http2/server.go#ConfigureServer`.
const REQUIRED_BY_HTTP2: [&str; 2] =
    ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"];

/// Numbers of Go 1.26's key exchanges: P-256, P-384, P-521, X25519, and three hybrids with ML-KEM.
const GO_CURVES: &[u16] = &[23, 24, 25, 29, 4587, 4588, 4589];

/// TLS settings that the options resolve to.
#[derive(Clone)]
pub(super) struct TlsSettings {
    /// Cipher suites and key exchanges.
    pub(super) provider: Arc<CryptoProvider>,
    /// Supported versions of TLS.
    pub(super) versions: &'static [&'static SupportedProtocolVersion],
    /// Protocols for ALPN, the preferred one first.
    pub(super) protocols: Vec<Vec<u8>>,
}

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
const NEWEST: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// Resolves the TLS options. Errors are those of `component-base/cli/flag/ciphersuites_flag.go`,
/// `component-base/cli/flag/curves_flag.go @v1.36.3` and Go's HTTP/2, in upstream's order.
pub(super) fn resolve(options: &TlsOptions, disable_http2: bool) -> Result<TlsSettings, ServeError> {
    let mut provider = ring::default_provider();
    if !options.cipher_suites.is_empty() {
        let chosen = suites(&options.cipher_suites)?;
        // The suites of TLS 1.3 cannot be chosen and are always supported.
        provider.cipher_suites.retain(|suite| suite.tls13().is_some() || chosen.contains(&u16::from(suite.suite())));
    }
    if !options.curve_preferences.is_empty() {
        provider.kx_groups = groups(&options.curve_preferences, &provider.kx_groups)?;
    }
    let newest = version(&options.min_version)?;
    let older_suites = provider.cipher_suites.iter().any(|suite| suite.tls13().is_none());
    if !newest && !older_suites {
        warn!("No supported TLS 1.2 cipher suite is configured, so only TLS 1.3 is enabled");
    }
    let has_required = options.cipher_suites.iter().any(|name| REQUIRED_BY_HTTP2.contains(&name.as_str()));
    if !disable_http2 && !newest && !options.cipher_suites.is_empty() && !has_required {
        return Err(ServeError(format!(
            "failed to start secure server: error configuring http2: http2: TLSConfig.CipherSuites is missing an \
             HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of {} or {})",
            REQUIRED_BY_HTTP2[0], REQUIRED_BY_HTTP2[1]
        )));
    }
    let versions = if newest || !older_suites { NEWEST } else { BOTH };
    let protocols: &[&str] = if disable_http2 { &["http/1.1"] } else { &["h2", "http/1.1"] };
    let protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(TlsSettings { provider: Arc::new(provider), versions, protocols })
}

fn suites(names: &[String]) -> Result<BTreeSet<u16>, ServeError> {
    let mut chosen = BTreeSet::new();
    for name in names {
        if let Some((_, suite)) = SUITES.iter().find(|(known, _)| known == name) {
            chosen.insert(u16::from(*suite));
        } else if GO_SUITES.contains(&name.as_str()) {
            warn!(suite = name, "Cipher suite is insecure and not supported, ignoring it");
        } else {
            return Err(ServeError(format!("Cipher suite {name} not supported or doesn't exist")));
        }
    }
    Ok(chosen)
}

fn groups(
    numbers: &[i32],
    known: &[&'static dyn SupportedKxGroup],
) -> Result<Vec<&'static dyn SupportedKxGroup>, ServeError> {
    let mut chosen = BTreeSet::new();
    for number in numbers {
        let Some(id) = u16::try_from(*number).ok().filter(|id| *id > 0) else {
            return Err(ServeError(format!("curve preference {number} is out of range (must be 1-65535)")));
        };
        if !chosen.insert(id) {
            return Err(ServeError(format!("duplicate curve preference {number}")));
        }
        if !GO_CURVES.contains(&id) {
            return Err(ServeError(format!("curve preference {number} is not supported by the current Go version")));
        }
    }
    let spoken: Vec<_> = known.iter().copied().filter(|group| chosen.contains(&u16::from(group.name()))).collect();
    for id in chosen.iter().filter(|id| !spoken.iter().any(|group| u16::from(group.name()) == **id)) {
        warn!(curve = ?NamedGroup::from(*id), "Key exchange is not supported, ignoring it");
    }
    if spoken.is_empty() {
        return Err(ServeError::new("none of the curve preferences is supported; supported are 23, 24 and 29"));
    }
    Ok(spoken)
}

/// Whether the minimum version is TLS 1.3.
fn version(name: &str) -> Result<bool, ServeError> {
    match name {
        "" | "VersionTLS12" => Ok(false),
        "VersionTLS13" => Ok(true),
        "VersionTLS10" | "VersionTLS11" => {
            warn!(version = name, "TLS version is insecure and not supported, using TLS 1.2 as the minimum");
            Ok(false)
        }
        _ => Err(ServeError(format!("unknown tls version {}", quote(name)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(version: &str, suites: &[&str], curves: &[i32]) -> TlsOptions {
        TlsOptions {
            min_version: version.to_owned(),
            cipher_suites: suites.iter().map(|name| (*name).to_owned()).collect(),
            curve_preferences: curves.to_vec(),
        }
    }

    #[test]
    fn what_cannot_be_is_named_as_upstream_names_it() {
        let check = |options: TlsOptions, expected: &str| {
            let error = resolve(&options, false).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(expected));
        };
        check(options("foo", &[], &[]), "unknown tls version \"foo\"");
        check(options("", &["foo"], &[]), "Cipher suite foo not supported or doesn't exist");
        check(options("foo", &["foo"], &[]), "Cipher suite foo not supported or doesn't exist");
        check(options("", &[], &[0]), "curve preference 0 is out of range (must be 1-65535)");
        check(options("", &[], &[29, 29]), "duplicate curve preference 29");
        check(options("", &[], &[7]), "curve preference 7 is not supported by the current Go version");
        check(options("", &[], &[25]), "none of the curve preferences is supported; supported are 23, 24 and 29");
        let missing = "failed to start secure server: error configuring http2: http2: TLSConfig.CipherSuites is missing \
            an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or \
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)";
        check(options("", &["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"], &[]), missing);
    }

    #[test]
    fn what_is_chosen_is_spoken_and_nothing_else() {
        let check = |options: TlsOptions, without_http2: bool, versions: usize, suites: usize, groups: usize| {
            let settings = resolve(&options, without_http2).unwrap_or_else(|error| panic!("{options:?}: {error}"));
            let provider = &settings.provider;
            let got = (settings.versions.len(), provider.cipher_suites.len(), provider.kx_groups.len());
            assert_eq!(got, (versions, suites, groups), "{options:?}");
        };
        check(options("", &[], &[]), false, 2, 9, 3);
        check(options("VersionTLS10", &[], &[]), false, 2, 9, 3);
        check(options("VersionTLS13", &[], &[]), false, 1, 9, 3);
        check(options("", &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], &[29, 25]), false, 2, 4, 1);
        check(options("VersionTLS13", &["TLS_RSA_WITH_RC4_128_SHA"], &[]), false, 1, 3, 3);
        check(options("", &["TLS_RSA_WITH_RC4_128_SHA"], &[]), true, 1, 3, 3);
    }
}
