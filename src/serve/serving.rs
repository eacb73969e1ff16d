//! Selection of the server certificate for each connection, and the request for a client certificate.
//!
//! Key pairs and authorities change while the server runs. Each connection uses the ones that are current at its start. The
//! TLS configurations are built again only when one of them has changed.
//! Follows `apiserver/pkg/server/dynamiccertificates/tlsconfig.go#DynamicServingCertificateController @v1.36.3`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};

use super::error::ServeError;
use super::pair::Pair;
use super::reload::ReloadedFiles;
use super::tls::TlsSettings;
use super::trust::Trust;
use super::x509::Bundle;

/// Source of the default certificate.
pub(super) enum DefaultPair {
    /// Generated when the server starts.
    Made(Arc<Pair>),
    /// Read from files, and reloaded.
    Files(Arc<ReloadedFiles<Pair>>),
}

/// A certificate for certain server names.
pub(super) struct NamedPair {
    pub(super) files: Arc<ReloadedFiles<Pair>>,
    /// The configured server names. If there are none, the names in the certificate are used.
    pub(super) names: Vec<String>,
}

/// Everything that the TLS configuration of a connection depends on.
pub(super) struct Serving {
    pub(super) settings: TlsSettings,
    pub(super) default: DefaultPair,
    pub(super) named: Vec<NamedPair>,
    /// Authorities of clients and of front proxies. If there are none, no client certificate is requested.
    pub(super) trusted: Vec<Arc<Trust>>,
    /// The configurations built last. The lock is held while new ones are built, which takes microseconds.
    pub(super) last: Mutex<Option<BuiltConfigs>>,
}

/// Configurations with the key pairs and bundles that they were built from.
pub(super) struct BuiltConfigs {
    pairs: Vec<Arc<Pair>>,
    bundles: Vec<Option<Arc<Bundle>>>,
    configs: Arc<Configs>,
}

/// TLS configurations for connections.
pub(super) struct Configs {
    /// For connections whose client sends a server name or whose local address is not in `by_address`.
    any: Arc<ServerConfig>,
    /// For connections without a server name, by local address.
    by_address: BTreeMap<IpAddr, Arc<ServerConfig>>,
}

impl Serving {
    /// Returns the current configurations. Builds them if a key pair or bundle has changed.
    pub(super) fn configs(&self) -> Result<Arc<Configs>, ServeError> {
        let default = match &self.default {
            DefaultPair::Made(pair) => pair.clone(),
            DefaultPair::Files(files) => files.current(),
        };
        let pairs: Vec<Arc<Pair>> =
            std::iter::once(default).chain(self.named.iter().map(|named| named.files.current())).collect();
        let bundles: Vec<Option<Arc<Bundle>>> = self.trusted.iter().map(|trust| trust.bundle()).collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(built) = &*last
            && built.is_of(&pairs, &bundles)
        {
            return Ok(built.configs.clone());
        }
        let configs = Arc::new(self.build(&pairs, &bundles)?);
        *last = Some(BuiltConfigs { pairs, bundles, configs: configs.clone() });
        Ok(configs)
    }

    fn build(&self, pairs: &[Arc<Pair>], bundles: &[Option<Arc<Bundle>>]) -> Result<Configs, ServeError> {
        let names = Names::new(pairs, &self.named);
        let by_address: BTreeMap<IpAddr, Arc<CertifiedKey>> =
            names.by_name.iter().filter_map(|(name, key)| Some((name.parse().ok()?, key.clone()))).collect();
        let config = |resolver: Names| self.config(Arc::new(resolver), bundles);
        let only = |key: Arc<CertifiedKey>| Names { by_name: BTreeMap::new(), all: vec![key] };
        let by_address: Result<BTreeMap<_, _>, ServeError> =
            by_address.into_iter().map(|(address, key)| Ok((address, config(only(key))?))).collect();
        Ok(Configs { any: config(names)?, by_address: by_address? })
    }

    fn config(&self, resolver: Arc<Names>, bundles: &[Option<Arc<Bundle>>]) -> Result<Arc<ServerConfig>, ServeError> {
        let provider = &self.settings.provider;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(self.settings.versions)
            .map_err(|error| ServeError(format!("failed to start secure server: {error}")))?;
        let builder = if self.trusted.is_empty() {
            builder.with_no_client_auth()
        } else {
            let hints = bundles.iter().flatten().flat_map(|bundle| bundle.subjects.iter().cloned()).collect();
            builder.with_client_cert_verifier(Arc::new(OptionalClientCertificate { hints, provider: provider.clone() }))
        };
        let mut config = builder.with_cert_resolver(resolver);
        config.alpn_protocols.clone_from(&self.settings.protocols);
        Ok(Arc::new(config))
    }
}

impl BuiltConfigs {
    fn is_of(&self, pairs: &[Arc<Pair>], bundles: &[Option<Arc<Bundle>>]) -> bool {
        let same = |a: &Option<Arc<Bundle>>, b: &Option<Arc<Bundle>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        self.pairs.iter().zip(pairs).all(|(a, b)| Arc::ptr_eq(a, b))
            && self.bundles.iter().zip(bundles).all(|(a, b)| same(a, b))
    }
}

impl Configs {
    /// Returns the configuration for a connection to this local address with this client hello.
    pub(super) fn get(&self, local: IpAddr, hello: &ClientHello<'_>) -> Arc<ServerConfig> {
        let by_address = if hello.server_name().is_some() { None } else { self.by_address.get(&local.to_canonical()) };
        by_address.unwrap_or(&self.any).clone()
    }
}

/// Certificates by server name.
#[derive(Debug)]
struct Names {
    by_name: BTreeMap<String, Arc<CertifiedKey>>,
    /// All certificates, the default one first.
    all: Vec<Arc<CertifiedKey>>,
}

impl Names {
    /// Maps names to certificates. Configured names override names in certificates, and earlier certificates override later
    /// ones.
    /// Follows `apiserver/pkg/server/dynamiccertificates/named_certificates.go#BuildNamedCertificates @v1.36.3`.
    fn new(pairs: &[Arc<Pair>], named: &[NamedPair]) -> Self {
        let mut by_name = BTreeMap::new();
        let pairs_of = |given: bool| {
            let named = pairs.iter().skip(1).zip(named).rev();
            named.filter(move |(_, named)| named.names.is_empty() != given)
        };
        for (pair, _) in pairs_of(false) {
            by_name.extend(pair.names.iter().map(|name| (name.clone(), pair.certified.clone())));
        }
        for (pair, named) in pairs_of(true) {
            by_name.extend(named.names.iter().map(|name| (name.clone(), pair.certified.clone())));
        }
        Self { by_name, all: pairs.iter().map(|pair| pair.certified.clone()).collect() }
    }

    /// Finds a certificate by exact name, then by wildcard, then by validity for the name. Falls back to the default one.
    /// Follows Go's `crypto/tls.Config.getCertificate`.
    fn find(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let Some(name) = name.filter(|_| self.all.len() > 1) else { return self.all.first().cloned() };
        let name = name.to_ascii_lowercase();
        let name = name.trim_end_matches('.');
        let pattern = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let by_name = self.by_name.get(name).or_else(|| self.by_name.get(&pattern?));
        by_name.or_else(|| self.all.iter().find(|key| is_for(key, name))).or(self.all.first()).cloned()
    }
}

fn is_for(key: &CertifiedKey, name: &str) -> bool {
    let Some(leaf) = key.cert.first() else { return false };
    let (Ok(leaf), Ok(name)) = (ParsedCertificate::try_from(leaf), ServerName::try_from(name)) else { return false };
    verify_server_name(&leaf, &name).is_ok()
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.find(hello.server_name())
    }
}

/// Verifier that requests a client certificate and accepts any or none.
///
/// The issuer is verified when a request arrives, since the client may authenticate in another way. The handshake still
/// proves that the client has the private key.
#[derive(Debug)]
struct OptionalClientCertificate {
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for OptionalClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
