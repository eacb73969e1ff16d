//! Client certificates.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

use super::pair::certified;
use super::{Source, provider};
use crate::clock::Mono;
use crate::config::TlsSettings;

/// Interval at which the files of a certificate are read while connections are open.
/// `client-go/transport/cert_rotation.go#CertCallbackRefreshDuration @v1.36.3`.
const READ_INTERVAL: Duration = Duration::from_mins(5);

/// A client certificate that is configured.
#[derive(Debug)]
pub(in crate::client) enum Identity {
    /// None, or a plugin's.
    None,
    /// One that stays as it is.
    Fixed(Arc<CertifiedKey>),
    /// One whose files may be replaced.
    Files {
        certificate: Source,
        key: Source,
        /// The lock is held for a moment.
        last: Mutex<LastRead>,
    },
}

/// Content of the files when they were last read.
#[derive(Debug, Default)]
pub(in crate::client) struct LastRead {
    chain: Option<Vec<CertificateDer<'static>>>,
    at: Mono,
}

impl Identity {
    /// The client certificate of these settings. Files are read when a connection is opened, and not before.
    /// Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.
    pub(in crate::client) fn of(settings: &TlsSettings) -> Result<Self, String> {
        let certificate = Source::of(&settings.cert_data, &settings.cert_file);
        let key = Source::of(&settings.key_data, &settings.key_file);
        match (certificate, key) {
            (Some(certificate @ Source::File(_)), Some(key @ Source::File(_))) => {
                Ok(Self::Files { certificate, key, last: Mutex::default() })
            }
            (Some(certificate), Some(key)) => {
                Ok(Self::Fixed(certified(&certificate.read()?, &key.read()?, &provider())?))
            }
            _ => Ok(Self::None),
        }
    }

    /// Returns the certificate that a new connection presents.
    pub(in crate::client) fn current(&self, now: Mono) -> Result<Option<Arc<CertifiedKey>>, String> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(key) => Ok(Some(key.clone())),
            Self::Files { certificate, key, last } => {
                let pair = certified(&certificate.read()?, &key.read()?, &provider())?;
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = LastRead { chain: Some(pair.cert.clone()), at: now };
                Ok(Some(pair))
            }
        }
    }

    /// Whether the files have another certificate than open connections presented. Files are read once in five minutes.
    /// Follows `client-go/transport/cert_rotation.go#dynamicClientCert.loadClientCert @v1.36.3`.
    pub(in crate::client) fn has_changed(&self, now: Mono) -> bool {
        let Self::Files { certificate, key, last } = self else { return false };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.chain.is_none() || now.since(last.at) < READ_INTERVAL {
            return false;
        }
        last.at = now;
        let pair = || certified(&certificate.read()?, &key.read()?, &provider());
        match pair() {
            Ok(pair) => last.chain.as_deref() != Some(&pair.cert),
            Err(error) => {
                tracing::error!(error, "Loading client cert failed");
                false
            }
        }
    }
}

/// The client certificate that new connections present. The lock is held for an assignment.
#[derive(Debug, Default)]
pub(in crate::client) struct PresentedCertificate(Mutex<Option<Arc<CertifiedKey>>>);

impl PresentedCertificate {
    pub(in crate::client) fn set(&self, key: Option<Arc<CertifiedKey>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl ResolvesClientCert for PresentedCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
