//! A client that speaks TLS with anybody, and keeps what it is shown.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Version};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::Pair;

/// A certificate with its key, both in DER.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: Vec<u8>,
}

impl From<Pair> for Identity {
    fn from(pair: Pair) -> Self {
        Self { chain: vec![pair.der.into()], key: pair.key_der }
    }
}

/// Settings of the client.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    /// Server name of the TLS handshake. An IP address is not sent as a name.
    pub(crate) name: String,
    pub(crate) identity: Option<Identity>,
    /// Protocols that are offered.
    pub(crate) protocols: Vec<&'static str>,
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Bytes,
    pub(crate) version: Version,
    /// The certificate that the server presented.
    pub(crate) certificate: CertificateDer<'static>,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            name: "127.0.0.1".to_owned(),
            identity: None,
            protocols: vec!["h2", "http/1.1"],
            versions: rustls::ALL_VERSIONS.to_vec(),
        }
    }

    /// The same, as somebody.
    pub(crate) fn with(&self, identity: &Identity) -> Self {
        Self { identity: Some(identity.clone()), ..self.clone() }
    }

    /// The same, with these protocols.
    pub(crate) fn speaking(&self, protocols: &[&'static str]) -> Self {
        Self { protocols: protocols.to_vec(), ..self.clone() }
    }

    /// A connection on which nothing was asked yet, and what the server has shown.
    pub(crate) async fn connect(&self) -> Result<(TlsStream<TcpStream>, CertificateDer<'static>), String> {
        let provider = Arc::new(ring::default_provider());
        let seen = Arc::new(Mutex::new(None));
        let verifier = Arc::new(Anybody { provider: provider.clone(), seen: seen.clone() });
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match self.identity.clone() {
            None => builder.with_no_client_auth(),
            Some(Identity { chain, key }) => builder
                .with_client_auth_cert(chain, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)))
                .map_err(|error| error.to_string())?,
        };
        config.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(self.name.clone()).map_err(|error| error.to_string())?;
        let stream = TcpStream::connect(self.address).await.map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let certificate = seen.lock().expect("nobody panicked").take().ok_or("no certificate was shown")?;
        Ok((stream, certificate))
    }

    /// Asks once, on a connection of its own.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Got, String> {
        let (stream, certificate) = self.connect().await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let method: Method = method.parse().map_err(|_| "no method".to_owned())?;
        let authority = if http2 { format!("https://{}", self.address) } else { String::new() };
        let mut request = Request::builder().method(method).uri(format!("{authority}{path}"));
        if !http2 {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).map_err(|error| error.to_string())?;
        let io = TokioIo::new(stream);
        let text = |error: hyper::Error| {
            let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
        };
        let response = if http2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.map_err(text)?;
            tokio::spawn(connection);
            sender.send_request(request).await.map_err(text)?
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.map_err(text)?;
            tokio::spawn(connection);
            sender.send_request(request).await.map_err(text)?
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(text)?.to_bytes();
        let headers = parts.headers.iter();
        let headers = headers
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        let (status, headers) = (parts.status.as_u16(), headers.collect());
        Ok(Got { status, headers, body, version: parts.version, certificate })
    }

    /// Asks for a path, with a token if there is one.
    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> Got {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
        self.ask("GET", path, &headers, "").await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

/// Trusts any server, and keeps its certificate.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
    seen: Arc<Mutex<Option<CertificateDer<'static>>>>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.seen.lock().expect("nobody panicked") = Some(end_entity.clone().into_owned());
        Ok(ServerCertVerified::assertion())
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
