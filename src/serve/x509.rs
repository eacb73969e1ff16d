//! Identities in client certificates, and the authorities that sign the certificates.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{DistinguishedName, RootCertStore};
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, Oid};
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Name};

use crate::client::tls::pem;
use crate::go::quote::quote;

/// Object identifier of the UID in a certificate's subject: 1.3.6.1.4.1.57683.2.
/// From `apimachinery/pkg/apis/asn1/oid.go#X509UID @v1.36.3`.
const UID: [u64; 8] = [1, 3, 6, 1, 4, 1, 57683, 2];

/// Identity from the subject of a client certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// The last common name. Empty if there is none.
    pub(super) common_name: String,
    /// The organizations, which become the user's groups.
    pub(super) organizations: Vec<String>,
    /// The UIDs in the subject.
    pub(super) uids: Vec<String>,
    /// When the certificate expires, in seconds since 1970.
    pub(super) ends: i64,
    /// Serial number and key identifiers, for messages.
    pub(super) identifier: String,
}

impl Subject {
    /// Reads the identity in a certificate.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, certificate) =
            X509Certificate::from_der(certificate).map_err(|_| "x509: malformed certificate".to_owned())?;
        let uid = Oid::from(&UID).map_err(|error| format!("{error:?}"))?;
        Ok(Self {
            common_name: common_name(certificate.subject()),
            organizations: values(certificate.subject(), &OID_X509_ORGANIZATION_NAME),
            uids: values(certificate.subject(), &uid),
            ends: certificate.validity().not_after.timestamp(),
            identifier: identifier(&certificate),
        })
    }
}

/// Returns the last common name, as Go does.
pub(super) fn common_name(name: &X509Name<'_>) -> String {
    values(name, &OID_X509_COMMON_NAME).pop().unwrap_or_default()
}

fn values(name: &X509Name<'_>, kind: &Oid<'_>) -> Vec<String> {
    let attributes = name.iter_attributes().filter(|attribute| attribute.attr_type() == kind);
    attributes.filter_map(|attribute| attribute.as_str().ok()).map(str::to_owned).collect()
}

/// Returns the serial number and key identifiers for messages.
/// Follows `apiserver/pkg/authentication/request/x509/x509.go#certificateIdentifier @v1.36.3`.
fn identifier(certificate: &X509Certificate<'_>) -> String {
    let (mut subject, mut authority) = (String::new(), String::new());
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => subject = hex(id.0),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                authority = id.key_identifier.as_ref().map(|id| hex(id.0)).unwrap_or_default();
            }
            _ => {}
        }
    }
    format!("SN={}, SKID={subject}, AKID={authority}", certificate.tbs_certificate.serial)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = write!(text, "{}{byte:02X}", if at == 0 { "" } else { ":" });
    }
    text
}

/// Authorities that sign client certificates.
#[derive(Debug)]
pub(super) struct Bundle {
    /// Names of the authorities. Clients receive them to choose a matching certificate.
    pub(super) subjects: Vec<DistinguishedName>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Bundle {
    /// Parses the contents of a file, for [`ReloadedFiles`](super::reload::ReloadedFiles).
    /// Follows `apiserver/pkg/server/dynamiccertificates/dynamic_cafile_content.go#newCABundleAndVerifier @v1.36.3`.
    pub(super) fn of_files(name: &str, contents: &[Vec<u8>]) -> Result<Self, String> {
        Self::parse(name, &contents.concat())
    }

    /// Parses authorities in PEM. An unreadable certificate is an error.
    pub(super) fn parse(name: &str, pem: &[u8]) -> Result<Self, String> {
        if pem.is_empty() {
            return Err(format!("missing content for CA bundle {}", quote(name)));
        }
        let failed = |text: &str| format!("error loading CA bundle for {}: {text}", quote(name));
        let mut roots = RootCertStore::empty();
        for certificate in pem::certificates(pem) {
            X509Certificate::from_der(&certificate).map_err(|_| failed("x509: malformed certificate"))?;
            roots.add(certificate).map_err(|error| failed(&error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(failed("data does not contain any valid RSA or ECDSA certificates"));
        }
        let subjects = roots.subjects();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()))
            .build()
            .map_err(|error| failed(&error.to_string()))?;
        Ok(Self { subjects, verifier })
    }

    /// Verifies that a client's chain leads to one of the authorities, is valid now and is for client authentication.
    pub(super) fn verify(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> Result<(), String> {
        let [leaf, intermediates @ ..] = chain else { return Err("x509: no certificate".to_owned()) };
        let seconds = u64::try_from(now.as_second()).unwrap_or(0);
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let verified = self.verifier.verify_client_cert(leaf, intermediates, now);
        verified.map(drop).map_err(|error| format!("x509: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, KeyPair};

    use super::*;
    use crate::client::testing::certificates::{Authority, params_of_client};

    fn leaf(issuer: &Authority, change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = params_of_client("alice", &["team"]);
        params.not_before = at(1_000);
        params.not_after = at(2_000);
        change(&mut params);
        issuer.pair_of(&params).der.into()
    }

    fn at(second: i64) -> time::OffsetDateTime {
        time::OffsetDateTime::from_unix_timestamp(second).expect("a time")
    }

    #[test]
    fn a_subject_is_read() {
        let issuer = Authority::new();
        let subject = Subject::of(&leaf(&issuer, |params| {
            params.distinguished_name.push(DnType::CustomDnType(UID.to_vec()), "u-1");
        }))
        .expect("a certificate");
        assert_eq!((subject.common_name.as_str(), subject.ends), ("alice", 2_000));
        assert_eq!((subject.organizations, subject.uids), (vec!["team".to_owned()], vec!["u-1".to_owned()]));
        assert!(subject.identifier.starts_with("SN="), "{}", subject.identifier);
        Subject::of(&CertificateDer::from(vec![1, 2, 3])).expect_err("no certificate");
    }

    #[test]
    fn only_what_an_authority_has_signed_for_a_client_and_for_now_is_taken() {
        let (issuer, stranger) = (Authority::new(), Authority::new());
        let bundle = Bundle::parse("b", issuer.pem().as_bytes()).expect("a bundle");
        let check = |certificate: CertificateDer<'static>, second: i64, taken: bool| {
            let now = Timestamp::from_second(second).expect("a time");
            assert_eq!(bundle.verify(&[certificate], now).is_ok(), taken);
        };
        check(leaf(&issuer, |_| ()), 1_500, true);
        check(leaf(&issuer, |params| params.extended_key_usages.clear()), 1_500, true);
        check(leaf(&stranger, |_| ()), 1_500, false);
        check(leaf(&issuer, |_| ()), 999, false);
        check(leaf(&issuer, |_| ()), 2_001, false);
        check(leaf(&issuer, |p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]), 1_500, false);
        let critical = |params: &mut CertificateParams| {
            let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
            extension.set_criticality(true);
            params.custom_extensions.push(extension);
        };
        check(leaf(&issuer, critical), 1_500, false);
    }

    #[test]
    fn what_is_no_bundle_is_named_as_upstream_names_it() {
        let check = |pem: &str, expected: &str| {
            assert_eq!(Bundle::parse("p::f", pem.as_bytes()).err().as_deref(), Some(expected));
        };
        check("", "missing content for CA bundle \"p::f\"");
        let none = "error loading CA bundle for \"p::f\": data does not contain any valid RSA or ECDSA certificates";
        check("x", none);
        check(&KeyPair::generate().expect("a key").serialize_pem(), none);
    }
}
