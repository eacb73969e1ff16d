//! A certificate with its key, in PEM, and Go's words for what is none.

use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::oid_registry::{OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A chain and the key of its first certificate. Texts, and which of several is told, are those of Go's
/// `crypto/tls.X509KeyPair`.
pub(crate) fn certified(chain: &[u8], key: &[u8], provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, String> {
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(chain).filter_map(Result::ok).collect();
    let Some(leaf) = certificates.first() else { return Err(no_certificate(&kinds(chain))) };
    let kinds = kinds(key);
    if !kinds.iter().any(|kind| is_key(kind)) {
        return Err(no_key(&kinds));
    }
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| "x509: malformed certificate".to_owned())?;
    let unreadable = "tls: failed to parse private key";
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| unreadable.to_owned())?;
    let key = provider.key_provider.load_private_key(key).map_err(|_| unreadable.to_owned())?;
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
        // Of a key that cannot tell, nothing is known.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(Arc::new(pair)),
        Err(_) => Err("tls: private key does not match public key".to_owned()),
    }
}

/// What the blocks of a text in PEM say that they are.
fn kinds(pem: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(pem);
    let begin = |line: &str| line.trim_end().strip_prefix("-----BEGIN ")?.strip_suffix("-----").map(str::to_owned);
    let has_end = |kind: &String| text.contains(&format!("-----END {kind}-----"));
    text.lines().filter_map(begin).filter(has_end).collect()
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
