//! TLS settings of connections to a server: trusted authorities, client certificates, and Go's error texts.
//!
//! Files are read again for each new connection, so that certificates can be replaced while the scheduler runs.
//! Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.

mod go_text;
mod identity;
mod pair;
pub(crate) mod pem;
mod roots;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

use crate::config::TlsSettings;
use crate::go::errno;

pub(crate) use go_text::{go_text, go_text_of};
pub(super) use identity::{Identity, PresentedCertificate};
pub(crate) use pair::certified;
use roots::{Roots, Unchecked};

/// Bytes given in the configuration, or in a file.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Bytes from the configuration itself.
    Data(Vec<u8>),
    /// Path of the file with the bytes.
    File(PathBuf),
}

impl Source {
    /// Creates a source; data takes precedence over a file. `None` if both are empty.
    pub(crate) fn of(data: &[u8], file: &str) -> Option<Self> {
        match (data, file) {
            ([], "") => None,
            ([], file) => Some(Self::File(file.into())),
            (data, _) => Some(Self::Data(data.to_vec())),
        }
    }

    /// Returns the bytes of the source. A file is read each time.
    pub(crate) fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Data(data) => Ok(data.clone()),
            Self::File(path) => fs::read(path).map_err(|error| errno::file_error(path, &error)),
        }
    }
}

/// The cryptography provider used throughout the process.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Creates the TLS configuration. `presented` resolves the client certificate. `is_https` says whether TLS is used at all.
///
/// `insecure` turns verification off if the settings contain no authorities. `settings.insecure` alone does not turn it off, so
/// callers pass its value in `insecure`, too.
///
/// Fails if the settings contradict each other or cannot be used.
pub(crate) fn config(
    settings: &TlsSettings,
    insecure: bool,
    is_https: bool,
    presented: Option<Arc<dyn ResolvesClientCert>>,
) -> Result<ClientConfig, String> {
    let roots = Source::of(&settings.ca_data, &settings.ca_file);
    if settings.insecure && roots.is_some() {
        return Err("specifying a root certificates file with the insecure flag is not allowed".to_owned());
    }
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match roots {
        Some(source) => {
            let verifier = Roots::new(source, provider)?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        None if insecure => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider))),
        // Reading the system's authorities is slow and not needed without TLS.
        None if !is_https => builder.with_root_certificates(RootCertStore::empty()),
        // Without any authorities no server is trusted, but the process can start.
        None => builder
            .clone()
            .with_native_roots()
            .unwrap_or_else(|_| builder.with_root_certificates(RootCertStore::empty())),
    };
    let mut config = match presented {
        Some(presented) => builder.with_client_cert_resolver(presented),
        None => builder.with_no_client_auth(),
    };
    // A resumed session would skip the verification of certificates. Go's clients do not resume by default, either.
    config.resumption = Resumption::disabled();
    Ok(config)
}
