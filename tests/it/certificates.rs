//! Certificates that tests make: authorities, the pairs that they sign, and the TLS configurations of servers.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair,
};
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

/// A certificate authority, whose certificate signs itself.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub(crate) struct Pair {
    /// The certificate in PEM.
    pub(crate) certificate: String,
    /// The key in PEM.
    pub(crate) key: String,
    /// The certificate in DER.
    pub(crate) der: Vec<u8>,
    /// The key in DER, as PKCS #8.
    pub(crate) key_der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::of(params_of_host("authority"))
    }

    /// Makes an authority whose certificate has these parameters.
    pub(crate) fn of(mut params: CertificateParams) -> Self {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate"))
    }

    /// The authority's certificate in PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// The name and the key that sign certificates.
    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.0
    }

    /// The authority's own certificate, for a server that shows it.
    pub(crate) fn own_pair(&self) -> Pair {
        Pair::new(self.0.as_ref(), self.0.key())
    }

    /// Makes a pair for a host name or an address.
    pub(crate) fn pair(&self, host: &str) -> Pair {
        self.pair_of(&params_of_host(host))
    }

    /// Makes a pair with these parameters.
    pub(crate) fn pair_of(&self, params: &CertificateParams) -> Pair {
        Pair::signed_by(self.issuer(), params)
    }

    /// Begins a verifier of client certificates that this authority signed.
    pub(crate) fn clients(&self) -> ClientCertVerifierBuilder {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("an authority");
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()))
    }

    /// The configuration of a server that shows this pair, speaks HTTP, and verifies the certificates of clients that have one.
    pub(crate) fn config(&self, pair: &Pair) -> Arc<ServerConfig> {
        let clients = self.clients().allow_unauthenticated().build();
        Arc::new(http_server(pair, clients.expect("a verifier")))
    }
}

impl Pair {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().to_vec(),
            key_der: key.serialize_der(),
        }
    }

    /// Makes a new key, and a certificate of it that this issuer signs.
    pub(crate) fn signed_by(issuer: &Issuer<'static, KeyPair>, params: &CertificateParams) -> Self {
        let key = KeyPair::generate().expect("a key");
        Self::new(&params.signed_by(&key, issuer).expect("a certificate"), &key)
    }
}

/// Parameters of a certificate for a host name or an address.
pub(crate) fn params_of_host(host: &str) -> CertificateParams {
    CertificateParams::new(vec![host.to_owned()]).expect("a name")
}

/// Parameters of a certificate whose subject is a common name, encoded as Go encodes it.
pub(crate) fn params_of_subject(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let name = name.try_into().expect("a printable name");
    params.distinguished_name.push(DnType::CommonName, DnValue::PrintableString(name));
    params
}

/// Parameters of a certificate for a client with this name in these groups.
pub(crate) fn params_of_client(name: &str, groups: &[&str]) -> CertificateParams {
    let mut params = params_of_subject(name);
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

/// The configuration of a server that shows this pair.
pub(crate) fn server(pair: &Pair, clients: Arc<dyn ClientCertVerifier>) -> ServerConfig {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.key_der.clone()));
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![pair.der.clone().into()], key)
        .expect("a pair")
}

/// The same for a server of HTTP/2 and HTTP/1.1.
pub(crate) fn http_server(pair: &Pair, clients: Arc<dyn ClientCertVerifier>) -> ServerConfig {
    let mut config = server(pair, clients);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}
