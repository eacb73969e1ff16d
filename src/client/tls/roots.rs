//! The authorities that a connection trusts.

use crate::go::errno;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::Source;
use super::pem::certificates;

/// Trusts the certificates that the source currently contains.
#[derive(Debug)]
pub(super) struct Roots {
    source: Source,
    provider: Arc<CryptoProvider>,
    /// The certificates last read. The lock is held while a small file is read.
    last: Mutex<Trusted>,
}

/// The trusted certificates and their verifier.
#[derive(Clone, Debug)]
struct Trusted {
    pem: Arc<[u8]>,
    certificates: Arc<[CertificateDer<'static>]>,
    /// `None` rejects every certificate.
    verifier: Option<Arc<WebPkiServerVerifier>>,
}

impl Roots {
    pub(super) fn new(source: Source, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let trusted = Trusted::read(&source.read()?, &provider)
            .map_err(|error| format!("unable to load root certificates: {error}"))?;
        Ok(Self { source, provider, last: Mutex::new(trusted) })
    }

    /// Returns the current certificates. If the file has become empty or unusable, the last ones stay trusted.
    fn trusted(&self) -> Trusted {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Source::File(path) = &self.source {
            match fs::read(path) {
                Ok(pem) if pem.is_empty() || *pem == *last.pem => {}
                Ok(pem) => match Trusted::read(&pem, &self.provider) {
                    Ok(trusted) => *last = trusted,
                    Err(error) => tracing::error!(file = %path.display(), error, "Failed to parse certificates"),
                },
                Err(error) => tracing::error!(error = errno::file_error(path, &error), "Failed to read certificates"),
            }
        }
        last.clone()
    }
}

impl Trusted {
    /// Parses a bundle of certificates. Those that cannot be a trust anchor are ignored, but at least one must remain. An empty
    /// bundle trusts no server, as with the gate `ClientsAllowCARotation`.
    /// Follows `client-go/transport/transport.go#rootCertPool @v1.36.3`.
    fn read(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let certificates: Vec<CertificateDer<'static>> = certificates(pem).collect();
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        let verifier = if pem.is_empty() {
            None
        } else if store.is_empty() {
            return Err(why_none(pem, &certificates));
        } else {
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
            Some(builder.build().map_err(|error| format!("failed to parse certificate: {error}"))?)
        };
        Ok(Self { pem: pem.into(), certificates: certificates.into(), verifier })
    }
}

/// The reason that a bundle has no usable certificate.
/// Follows `client-go/transport/transport.go#createErrorParsingCAData @v1.36.3`.
fn why_none(pem: &[u8], certificates: &[CertificateDer<'_>]) -> String {
    if !String::from_utf8_lossy(pem).contains("-----BEGIN") {
        return "unable to parse bytes as PEM block".to_owned();
    }
    match certificates.iter().find(|certificate| X509Certificate::from_der(certificate).is_err()) {
        Some(_) => "failed to parse certificate: x509: malformed certificate".to_owned(),
        None => "no valid certificate authority data seen".to_owned(),
    }
}

impl ServerCertVerifier for Roots {
    /// Verifies the server's certificate. A server may also present a certificate of the bundle itself, such as the self-signed
    /// authority certificate that `openssl req -x509` creates. Go accepts such a certificate, and webpki does not.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let trusted = self.trusted();
        let Some(verifier) = &trusted.verifier else { return Err(CertificateError::UnknownIssuer.into()) };
        match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // webpki reports this error only for a certificate that is currently valid.
            Err(error) if is_authority(&error) && trusted.certificates.iter().any(|one| one == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Unchecked(self.provider.clone()).verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Unchecked(self.provider.clone()).verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a certificate was rejected because it is a CA certificate. rustls wraps webpki's error, so the text is compared.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(error))) = error else { return false };
    error.to_string() == "CaUsedAsEndEntity"
}

/// Accepts any certificate, but still verifies the signatures made with its key.
#[derive(Debug)]
pub(super) struct Unchecked(pub(super) Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
