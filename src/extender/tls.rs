//! How a connection to an extender is secured.
//!
//! Files are read again for each new connection, so that certificates can be replaced while the scheduler runs.
//! Follows `client-go/transport/transport.go#TLSConfigFor @v1.36.3`.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use crate::config::Extender;

/// How connections to an extender are secured, if its URL says that they are.
pub(super) struct Tls {
    pub(super) config: ClientConfig,
    /// The name that the server goes by, instead of its host's.
    pub(super) server_name: Option<ServerName<'static>>,
}

/// Bytes from the configuration, or from a file.
#[derive(Clone, Debug)]
enum Source {
    Data(Vec<u8>),
    File(PathBuf),
}

impl Source {
    /// Data goes before a file; none if there is neither.
    fn of(data: &[u8], file: &str) -> Option<Self> {
        match (data, file) {
            ([], "") => None,
            ([], file) => Some(Self::File(file.into())),
            (data, _) => Some(Self::Data(data.to_vec())),
        }
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Data(data) => Ok(data.clone()),
            Self::File(path) => fs::read(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("open {}: no such file or directory", path.display()),
                _ => format!("open {}: {error}", path.display()),
            }),
        }
    }
}

/// How connections to this extender are secured. Fails where its settings contradict each other or cannot be used.
/// Follows `pkg/scheduler/extender.go#makeTransport @v1.36.3`.
pub(super) fn of(extender: &Extender) -> Result<Tls, String> {
    let settings = extender.tls.clone().unwrap_or_default();
    let roots = Source::of(&settings.ca_data, &settings.ca_file);
    let insecure = settings.insecure || (extender.enable_https && roots.is_none());
    if settings.insecure && roots.is_some() {
        return Err("specifying a root certificates file with the insecure flag is not allowed".to_owned());
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match roots {
        Some(source) => {
            let verifier = Roots::new(source, provider.clone())?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        None if insecure => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider.clone()))),
        // Reading the system's takes a while, and most extenders are near and speak plainly.
        None if !extender.url_prefix.starts_with("https:") => builder.with_root_certificates(RootCertStore::empty()),
        // A system that has none trusts nobody, but may start.
        None => builder
            .clone()
            .with_native_roots()
            .unwrap_or_else(|_| builder.with_root_certificates(RootCertStore::empty())),
    };
    let certificate = Source::of(&settings.cert_data, &settings.cert_file);
    let key = Source::of(&settings.key_data, &settings.key_file);
    let config = match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let identity = Identity::new(certificate, key, provider)?;
            builder.with_client_cert_resolver(Arc::new(identity))
        }
        _ => builder.with_no_client_auth(),
    };
    let server_name = match settings.server_name.as_str() {
        "" => None,
        name => Some(
            ServerName::try_from(name.to_owned()).map_err(|error| format!("tlsConfig.serverName {name:?}: {error}"))?,
        ),
    };
    Ok(Tls { config, server_name })
}

/// Trusts the certificates that a source has at the time.
#[derive(Debug)]
struct Roots {
    source: Source,
    provider: Arc<CryptoProvider>,
    /// What was last read, and what came of it. The lock is held for reading a small file.
    last: Mutex<Trusted>,
}

/// Certificates that are trusted.
#[derive(Clone, Debug)]
struct Trusted {
    pem: Arc<[u8]>,
    certificates: Arc<[CertificateDer<'static>]>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl Roots {
    fn new(source: Source, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let trusted = Trusted::read(&source.read()?, &provider)
            .map_err(|error| format!("unable to load root certificates: {error}"))?;
        Ok(Self { source, provider, last: Mutex::new(trusted) })
    }

    /// What is trusted now. A file that cannot be used any more leaves it as it was.
    fn trusted(&self) -> Trusted {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Source::File(path) = &self.source {
            match fs::read(path) {
                Ok(pem) if *pem == *last.pem => {}
                Ok(pem) => match Trusted::read(&pem, &self.provider) {
                    Ok(trusted) => *last = trusted,
                    Err(error) => tracing::error!(file = %path.display(), error, "Certificates cannot be used"),
                },
                Err(error) => tracing::error!(file = %path.display(), %error, "Certificates cannot be read"),
            }
        }
        last.clone()
    }
}

impl Trusted {
    /// Reads certificates; those that no chain can end in are left out, but one has to be left.
    fn read(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
        if certificates.is_empty() {
            return Err("unable to parse bytes as PEM block".to_owned());
        }
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
            .build()
            .map_err(|error| format!("failed to parse certificate: {error}"))?;
        Ok(Self { pem: pem.into(), certificates: certificates.into(), verifier })
    }
}

impl ServerCertVerifier for Roots {
    /// A server may also present a certificate of the list itself. That is what `openssl req -x509` makes, with itself for
    /// an authority; Go takes it, and webpki does not.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let trusted = self.trusted();
        match trusted.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // webpki says so only of one that is valid at the time.
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

/// Whether a certificate was refused because it is an authority's. rustls hands on webpki's error as another crate's.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(error))) = error else { return false };
    error.to_string() == "CaUsedAsEndEntity"
}

/// Takes any certificate; what is signed has to be signed with it, though.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

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

/// What the scheduler shows of itself.
#[derive(Debug)]
struct Identity {
    certificate: Source,
    key: Source,
    provider: Arc<CryptoProvider>,
    /// For as long as nothing is in a file. Pairs of files are read for each connection, and looked at only then.
    fixed: Option<Arc<CertifiedKey>>,
}

impl Identity {
    fn new(certificate: Source, key: Source, provider: Arc<CryptoProvider>) -> Result<Self, String> {
        let (chain, secret) = (certificate.read()?, key.read()?);
        let both_files = matches!((&certificate, &key), (Source::File(_), Source::File(_)));
        let fixed = if both_files { None } else { Some(certified(&chain, &secret, &provider)?) };
        Ok(Self { certificate, key, provider, fixed })
    }
}

/// A certificate with its key. Texts are those of Go's `crypto/tls.X509KeyPair`.
fn certified(chain: &[u8], key: &[u8], provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain).filter_map(Result::ok).collect();
    if chain.is_empty() {
        return Err("tls: failed to find any PEM data in certificate input".to_owned());
    }
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|_| "tls: failed to find any PEM data in key input".to_owned())?;
    let pair = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => "tls: private key does not match public key".to_owned(),
        error => format!("tls: failed to parse private key: {error}"),
    })?;
    Ok(Arc::new(pair))
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        if let Some(fixed) = &self.fixed {
            return Some(fixed.clone());
        }
        let pair = || certified(&self.certificate.read()?, &self.key.read()?, &self.provider);
        pair().inspect_err(|error| tracing::error!(error, "The client certificate for an extender cannot be used")).ok()
    }

    fn has_certs(&self) -> bool {
        true
    }
}
