//! What a client shows of itself.

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

/// How often the files of a certificate are looked at while connections are open.
/// `client-go/transport/cert_rotation.go#CertCallbackRefreshDuration @v1.36.3`.
const LOOKED_AT: Duration = Duration::from_mins(5);

/// A client certificate that is configured.
#[derive(Debug)]
pub(in super::super) enum Identity {
    /// None, or a plugin's.
    None,
    /// One that stays as it is.
    Fixed(Arc<CertifiedKey>),
    /// One whose files may be replaced.
    Files {
        certificate: Source,
        key: Source,
        /// The lock is held for a moment.
        last: Mutex<Last>,
    },
}

/// What files were when they were last looked at.
#[derive(Debug, Default)]
pub(in super::super) struct Last {
    shown: Option<Vec<CertificateDer<'static>>>,
    at: Mono,
}

impl Identity {
    /// The one of these settings. Files are read when a connection is opened, and not before.
    /// Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.
    pub(in super::super) fn of(settings: &TlsSettings) -> Result<Self, String> {
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

    /// What a new connection shows.
    pub(in super::super) fn current(&self, now: Mono) -> Result<Option<Arc<CertifiedKey>>, String> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(key) => Ok(Some(key.clone())),
            Self::Files { certificate, key, last } => {
                let pair = certified(&certificate.read()?, &key.read()?, &provider())?;
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Last { shown: Some(pair.cert.clone()), at: now };
                Ok(Some(pair))
            }
        }
    }

    /// Whether connections that are open show something else than the files now have. Files are read once in five minutes.
    /// Follows `client-go/transport/cert_rotation.go#dynamicClientCert.loadClientCert @v1.36.3`.
    pub(in super::super) fn has_changed(&self, now: Mono) -> bool {
        let Self::Files { certificate, key, last } = self else { return false };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.shown.is_none() || now.since(last.at) < LOOKED_AT {
            return false;
        }
        last.at = now;
        let pair = || certified(&certificate.read()?, &key.read()?, &provider());
        match pair() {
            Ok(pair) => last.shown.as_deref() != Some(&pair.cert),
            Err(error) => {
                tracing::error!(error, "Loading client cert failed");
                false
            }
        }
    }
}

/// What connections show at the moment; put there before each is opened. The lock is held for a moment.
#[derive(Debug, Default)]
pub(in super::super) struct Shown(Mutex<Option<Arc<CertifiedKey>>>);

impl Shown {
    pub(in super::super) fn set(&self, key: Option<Arc<CertifiedKey>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
