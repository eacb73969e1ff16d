//! A certificate and its key in PEM, with Go's error texts.

use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use x509_parser::oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::pem::{self, Block};

/// Parses a certificate chain and the key of its first certificate. Error texts, and the order of checks, are those of Go's
/// `crypto/tls.X509KeyPair`.
pub(crate) fn certified(chain: &[u8], key: &[u8], provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, String> {
    let (chain, blocks) = (pem::blocks(chain), pem::blocks(key));
    let of_kind = |block: &&Block| block.kind == "CERTIFICATE";
    let certificates: Vec<CertificateDer<'static>> =
        chain.iter().filter(of_kind).map(|block| block.content.clone().into()).collect();
    let Some(leaf) = certificates.first() else { return Err(no_certificate(&kinds(&chain))) };
    let Some(key) = blocks.iter().find(|block| is_key(&block.kind)) else { return Err(no_key(&kinds(&blocks))) };
    let (left, leaf) = X509Certificate::from_der(leaf).map_err(|_| "x509: malformed certificate".to_owned())?;
    if !left.is_empty() {
        return Err("x509: trailing data".to_owned());
    }
    let key = private_key(&key.content, provider).ok_or_else(|| "tls: failed to parse private key".to_owned())?;
    let algorithm = &leaf.public_key().algorithm.algorithm;
    let expected = if *algorithm == OID_PKCS1_RSAENCRYPTION {
        SignatureAlgorithm::RSA
    } else if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        SignatureAlgorithm::ECDSA
    } else if *algorithm == OID_SIG_ED25519 {
        SignatureAlgorithm::ED25519
    } else {
        return Err("tls: unknown public key algorithm".to_owned());
    };
    if key.algorithm() != expected {
        return Err("tls: private key type does not match public key type".to_owned());
    }
    let pair = CertifiedKey::new(certificates, key);
    match pair.keys_match() {
        // Some keys do not reveal their public key. Such a pair is accepted.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(Arc::new(pair)),
        Err(_) => Err("tls: private key does not match public key".to_owned()),
    }
}

/// Parses a key as PKCS#1, PKCS#8 or SEC 1, whatever its PEM label is. Bytes after the key are ignored.
fn private_key(content: &[u8], provider: &CryptoProvider) -> Option<Arc<dyn SigningKey>> {
    let content = outermost(content)?;
    let forms = [
        PrivateKeyDer::Pkcs1(content.to_vec().into()),
        PrivateKeyDer::Pkcs8(content.to_vec().into()),
        PrivateKeyDer::Sec1(content.to_vec().into()),
    ];
    forms.into_iter().find_map(|form| provider.key_provider.load_private_key(form).ok())
}

/// Returns the first DER value. Only its length is parsed.
fn outermost(content: &[u8]) -> Option<&[u8]> {
    let (start, length) = match content.get(1)? {
        short @ 0..0x80 => (2, usize::from(*short)),
        long => {
            let count = usize::from(long & 0x7f);
            let bytes = content.get(2..2 + count).filter(|_| count <= 4)?;
            (2 + count, bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
        }
    };
    content.get(..start.checked_add(length)?)
}

/// Returns the PEM labels of blocks.
fn kinds(blocks: &[Block]) -> Vec<String> {
    blocks.iter().map(|block| block.kind.clone()).collect()
}

fn is_key(kind: &str) -> bool {
    kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY")
}

fn no_certificate(kinds: &[String]) -> String {
    match kinds {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [kind] if kind.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched"
                .to_owned()
        }
        kinds => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: [{}]",
            kinds.join(" ")
        ),
    }
}

fn no_key(kinds: &[String]) -> String {
    match kinds {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [kind] if kind == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        kinds => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            kinds.join(" ")
        ),
    }
}
