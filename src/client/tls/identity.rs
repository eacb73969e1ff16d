//! Client certificates, and their reload from files.

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

/// Minimum time between two reads of a certificate's files that check for changes while connections are open.
/// From `client-go/transport/cert_rotation.go#CertCallbackRefreshDuration @v1.36.3`.
const READ_INTERVAL: Duration = Duration::from_mins(5);

/// The client certificate in the configuration.
#[derive(Debug)]
pub(in crate::client) enum Identity {
    /// No certificate is configured. A plugin may still provide one.
    None,
    /// A certificate that never changes.
    Fixed(Arc<CertifiedKey>),
    /// A certificate in files, which may be replaced.
    Files {
        certificate: Source,
        key: Source,
        /// The certificate last presented. The lock is held while the files are checked for changes.
        last: Mutex<LastRead>,
    },
}

/// The certificate that was last presented, and the time of the last read of its files.
#[derive(Debug, Default)]
pub(in crate::client) struct LastRead {
    chain: Option<Vec<CertificateDer<'static>>>,
    at: Mono,
}

impl Identity {
    /// The client certificate in these settings. If the certificate and the key are both files, they are not read until a
    /// connection is opened.
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

    /// Whether the files now hold another certificate than open connections presented. Files are read at most every five minutes.
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

/// The client certificate that new connections present. The lock is held only for an assignment.
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
