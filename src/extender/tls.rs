//! TLS settings of connections to an extender.
//!
//! Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

use crate::client::tls::{self, Source, certified};
use crate::config::Extender;

/// TLS settings of an extender, which apply if its URL is `https`.
pub(super) struct Tls {
    pub(super) config: ClientConfig,
    /// Server name to verify instead of the host in the URL.
    pub(super) server_name: Option<ServerName<'static>>,
}

/// Builds the TLS settings of an extender. Fails if they contradict each other or are invalid.
/// Follows `pkg/scheduler/extender.go#makeTransport @v1.36.3`.
pub(super) fn of(extender: &Extender) -> Result<Tls, String> {
    let settings = extender.tls.clone().unwrap_or_default();
    let insecure =
        settings.insecure || (extender.enable_https && settings.ca_data.is_empty() && settings.ca_file.is_empty());
    let certificate = Source::of(&settings.cert_data, &settings.cert_file);
    let key = Source::of(&settings.key_data, &settings.key_file);
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(Identity::new(certificate, key)?),
        // A certificate without a key, or a key without a certificate, is not used but has to be readable.
        (Some(alone), None) | (None, Some(alone)) => alone.read().map(|_| None)?,
        (None, None) => None,
    };
    let shown = identity.map(|identity| Arc::new(identity) as Arc<dyn ResolvesClientCert>);
    let config = tls::config(&settings, insecure, extender.url_prefix.starts_with("https:"), shown)?;
    let server_name = match settings.server_name.as_str() {
        "" => None,
        name => Some(
            ServerName::try_from(name.to_owned()).map_err(|error| format!("tlsConfig.serverName {name:?}: {error}"))?,
        ),
    };
    Ok(Tls { config, server_name })
}

/// The scheduler's client certificate and its key.
#[derive(Debug)]
struct Identity {
    certificate: Source,
    key: Source,
    /// The parsed pair, unless both parts are files. Pairs of files are read and parsed for each connection.
    fixed: Option<Arc<CertifiedKey>>,
}

impl Identity {
    fn new(certificate: Source, key: Source) -> Result<Self, String> {
        let (chain, secret) = (certificate.read()?, key.read()?);
        let both_files = matches!((&certificate, &key), (Source::File(_), Source::File(_)));
        let fixed = if both_files { None } else { Some(certified(&chain, &secret, &tls::provider())?) };
        Ok(Self { certificate, key, fixed })
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        if let Some(fixed) = &self.fixed {
            return Some(fixed.clone());
        }
        let pair = || certified(&self.certificate.read()?, &self.key.read()?, &tls::provider());
        pair().inspect_err(|error| tracing::error!(error, "Failed to load the client certificate of an extender")).ok()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
