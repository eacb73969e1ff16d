//! How a connection to a server is secured: whom it trusts, what it shows, and Go's words for what goes wrong.
//!
//! Files are read again for each new connection, so that certificates can be replaced while the scheduler runs.
//! Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.

mod identity;
mod pair;
pub(crate) mod pem;
mod roots;
mod words;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

use crate::config::TlsSettings;

pub(super) use identity::{Identity, Shown};
pub(crate) use pair::certified;
use roots::{Roots, Unchecked};
pub(super) use words::in_go;

/// Bytes from the configuration, or from a file.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The bytes.
    Data(Vec<u8>),
    /// Where they are.
    File(PathBuf),
}

impl Source {
    /// Data goes before a file; none if there is neither.
    pub(crate) fn of(data: &[u8], file: &str) -> Option<Self> {
        match (data, file) {
            ([], "") => None,
            ([], file) => Some(Self::File(file.into())),
            (data, _) => Some(Self::Data(data.to_vec())),
        }
    }

    /// The bytes as they are now.
    pub(crate) fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Data(data) => Ok(data.clone()),
            Self::File(path) => fs::read(path).map_err(|error| unreadable(path, &error)),
        }
    }
}

/// Why a file cannot be read, in Go's words.
fn unreadable(path: &std::path::Path, error: &std::io::Error) -> String {
    let path = path.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("open {path}: no such file or directory"),
        std::io::ErrorKind::PermissionDenied => format!("open {path}: permission denied"),
        std::io::ErrorKind::IsADirectory => format!("read {path}: is a directory"),
        _ => format!("open {path}: {error}"),
    }
}

/// What the provider of a process's cryptography is.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// How connections are secured by these settings, but for what the client shows of itself. `insecure` also holds where the
/// settings do not say so; `is_https` says whether anything is to be secured at all.
/// Fails where the settings contradict each other or cannot be used.
pub(crate) fn config(
    settings: &TlsSettings,
    insecure: bool,
    is_https: bool,
    shown: Option<Arc<dyn ResolvesClientCert>>,
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
        // Reading the system's takes a while.
        None if !is_https => builder.with_root_certificates(RootCertStore::empty()),
        // A system that has none trusts nobody, but may start.
        None => builder
            .clone()
            .with_native_roots()
            .unwrap_or_else(|_| builder.with_root_certificates(RootCertStore::empty())),
    };
    let mut config = match shown {
        Some(shown) => builder.with_client_cert_resolver(shown),
        None => builder.with_no_client_auth(),
    };
    // A session that is resumed shows and checks nothing again. Go's clients do not, either, unless told to.
    config.resumption = Resumption::disabled();
    Ok(config)
}
