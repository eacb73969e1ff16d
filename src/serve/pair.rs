//! A serving certificate with its private key, and the server names that it is for.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::x509::common_name;
use crate::client::tls::{certified, provider};
use crate::go::quote::quote;

/// A certificate chain with the private key of its first certificate.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certified: Arc<CertifiedKey>,
    /// The names that the certificate is for: its common name if it looks like one, and its DNS names.
    pub(super) names: Vec<String>,
}

impl Pair {
    /// Parses the contents of the certificate's and the key's file, for [`ReloadedFiles`](super::reload::ReloadedFiles).
    /// Follows `apiserver/pkg/server/dynamiccertificates/dynamic_serving_content.go#loadCertKeyPair @v1.36.3`.
    pub(super) fn of_files(name: &str, contents: &[Vec<u8>]) -> Result<Self, String> {
        let [chain, key] = contents else { return Err("missing filename for serving cert".to_owned()) };
        if chain.is_empty() || key.is_empty() {
            return Err(format!("missing content for serving cert {}", quote(name)));
        }
        Self::parse(chain, key)
    }

    /// Parses a chain and a key in PEM. The errors have the texts of Go's `crypto/tls.X509KeyPair`.
    pub(super) fn parse(chain: &[u8], key: &[u8]) -> Result<Self, String> {
        let certified = certified(chain, key, &provider())?;
        let names = certified.end_entity_cert().map_err(|error| error.to_string()).and_then(names)?;
        Ok(Self { certified, names })
    }
}

/// Returns the server names that a certificate is for.
/// Follows `apiserver/pkg/server/dynamiccertificates/named_certificates.go#getCertificateNames @v1.36.3`.
fn names(leaf: &CertificateDer<'_>) -> Result<Vec<String>, String> {
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| "x509: malformed certificate".to_owned())?;
    let mut names = Vec::new();
    let name = common_name(leaf.subject());
    if name.parse::<IpAddr>().is_err() && is_domain(&name) {
        names.push(name);
    }
    if let Ok(Some(extension)) = leaf.subject_alternative_name() {
        names.extend(extension.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    Ok(names)
}

/// Whether a common name is a host name: a DNS-1123 subdomain, the same after `*.`, or `*` alone.
fn is_domain(name: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(edge)
            && bytes.last().is_some_and(edge)
            && bytes.iter().all(|byte| edge(byte) || *byte == b'-')
    };
    let plain = name.strip_prefix("*.").unwrap_or(name);
    name == "*" || (plain.len() <= 253 && plain.split('.').all(label))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn made(common_name: &str, names: &[&str]) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().expect("a key");
        (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
    }

    #[test]
    fn sni_names_come_from_common_name_and_sans() {
        let check = |common_name: &str, names: &[&str], expected: &[&str]| {
            let (chain, key) = made(common_name, names);
            assert_eq!(Pair::parse(chain.as_bytes(), key.as_bytes()).expect("a pair").names, expected, "{common_name}");
        };
        check("example.org", &["a.example.org", "127.0.0.1"], &["example.org", "a.example.org"]);
        check("*.example.org", &[], &["*.example.org"]);
        check("*", &[], &["*"]);
        check("10.0.0.1", &[], &[]);
        check("Some Body", &["a"], &["a"]);
        check("a-.b", &[], &[]);
    }

    #[test]
    fn invalid_pairs_give_gos_errors() {
        let (chain, key) = made("a", &[]);
        let (_, other) = made("b", &[]);
        let check = |chain: &str, key: &str, expected: &str| {
            assert_eq!(Pair::parse(chain.as_bytes(), key.as_bytes()).err().as_deref(), Some(expected));
        };
        check("x", &key, "tls: failed to find any PEM data in certificate input");
        check(&chain, "x", "tls: failed to find any PEM data in key input");
        check(&chain, &other, "tls: private key does not match public key");
        let switched = "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
            inputs may have been switched";
        check(&key, &chain, switched);
        check(&chain, &chain, "tls: found a certificate rather than a key in the PEM for the private key");
        let empty = Pair::of_files("serving-cert::a::b", &[Vec::new(), Vec::new()]).err();
        assert_eq!(empty.as_deref(), Some("missing content for serving cert \"serving-cert::a::b\""));
    }
}
