//! How a connection to an extender is secured.
//!
//! Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, SignatureScheme};

use crate::client::tls::{self, Source, certified};
use crate::config::Extender;

/// How connections to an extender are secured, if its URL says that they are.
pub(super) struct Tls {
    pub(super) config: ClientConfig,
    /// The name that the server goes by, instead of its host's.
    pub(super) server_name: Option<ServerName<'static>>,
}

/// How connections to this extender are secured. Fails where its settings contradict each other or cannot be used.
/// Follows `pkg/scheduler/extender.go#makeTransport @v1.36.3`.
pub(super) fn of(extender: &Extender) -> Result<Tls, String> {
    let settings = extender.tls.clone().unwrap_or_default();
    let insecure =
        settings.insecure || (extender.enable_https && settings.ca_data.is_empty() && settings.ca_file.is_empty());
    let certificate = Source::of(&settings.cert_data, &settings.cert_file);
    let key = Source::of(&settings.key_data, &settings.key_file);
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(Identity::new(certificate, key)?),
        // One without the other is nothing to show, but has to be there.
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

/// What the scheduler shows of itself.
#[derive(Debug)]
struct Identity {
    certificate: Source,
    key: Source,
    /// For as long as nothing is in a file. Pairs of files are read for each connection, and looked at only then.
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
        pair().inspect_err(|error| tracing::error!(error, "The client certificate for an extender cannot be used")).ok()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
