//! Self-signed certificate for a server that is configured with none.
//!
//! As in upstream, the chain consists of an authority of its own and a leaf. The certificate is for `localhost`, 127.0.0.1 and
//! the bound address. Its validity of one year starts an hour before it is generated. Unlike upstream's RSA 2048 keys, the keys
//! are ECDSA P-256. Every client that supports TLS 1.2 supports these keys, and generating one is a thousand times faster. ring
//! cannot generate RSA keys.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};

use super::error::ServeError;
use crate::go::errno;

/// Host name in the certificate. Upstream's caller passes this name.
const HOST: &str = "localhost";
/// Seconds between the start of the validity and now, for clients whose clocks are late.
const EARLIER_SECONDS: i64 = 3600;
/// Validity of the certificate in seconds: one year.
const LIFETIME_SECONDS: i64 = 365 * 24 * 3600;

/// A certificate chain and its key, both in PEM.
pub(super) struct SelfSigned {
    pub(super) chain: String,
    pub(super) key: String,
}

/// Generates a self-signed certificate.
/// Follows `client-go/util/cert/cert.go#GenerateSelfSignedCertKeyWithOptions @v1.36.3`.
pub(super) fn self_signed(bound: IpAddr, now: Timestamp) -> Result<SelfSigned, ServeError> {
    let failed = |error: &dyn std::fmt::Display| ServeError(format!("unable to generate self signed cert: {error}"));
    let mut authority = params(format!("{HOST}-ca@{}", now.as_second()), now).map_err(|error| failed(&error))?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages =
        vec![KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let authority = CertifiedIssuer::self_signed(authority, key).map_err(|error| failed(&error))?;

    let mut leaf = params(format!("{HOST}@{}", now.as_second()), now).map_err(|error| failed(&error))?;
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.key_usages = vec![KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let name = HOST.try_into().map_err(|error: rcgen::Error| failed(&error))?;
    leaf.subject_alt_names = vec![SanType::DnsName(name), SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
    if !bound.is_unspecified() && bound != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        leaf.subject_alt_names.push(SanType::IpAddress(bound));
    }
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let leaf = leaf.signed_by(&key, &authority).map_err(|error| failed(&error))?;
    Ok(SelfSigned { chain: format!("{}{}", leaf.pem(), authority.pem()), key: key.serialize_pem() })
}

fn params(name: String, now: Timestamp) -> Result<CertificateParams, String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let at = |second: i64| time::OffsetDateTime::from_unix_timestamp(second).map_err(|error| error.to_string());
    let begins = now.as_second() - EARLIER_SECONDS;
    (params.not_before, params.not_after) = (at(begins)?, at(begins + LIFETIME_SECONDS)?);
    Ok(params)
}

/// Writes both files, and creates their directories if they are missing. Only the owner may read the key.
/// Follows `client-go/util/cert/io.go#WriteCert` and `client-go/util/keyutil/key.go#WriteKey @v1.36.3`.
pub(super) fn write(pair: &SelfSigned, cert_file: &Path, key_file: &Path) -> Result<(), ServeError> {
    use std::fs::{DirBuilder, OpenOptions};
    use std::io::Write as _;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

    for (path, text, mode) in [(cert_file, &pair.chain, 0o644), (key_file, &pair.key, 0o600)] {
        let failed = |verb: &str, path: &Path, error: &std::io::Error| {
            ServeError(format!("{verb} {}: {}", path.display(), errno::text(error)))
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            if let Some(file) = folder.ancestors().find(|path| path.exists()).filter(|path| !path.is_dir()) {
                return Err(failed("mkdir", file, &std::io::ErrorKind::NotADirectory.into()));
            }
            let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            made.map_err(|error| failed("mkdir", folder, &error))?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| failed("open", path, &error))?;
    }
    Ok(())
}

/// Whether both files can be read. If only one can, the result is an error.
/// Follows `client-go/util/cert/io.go#CanReadCertAndKey @v1.36.3`.
pub(super) fn can_read(cert_file: &Path, key_file: &Path) -> Result<bool, ServeError> {
    let missing = match [cert_file, key_file].map(|path| std::fs::File::open(path).is_ok()) {
        [true, true] => return Ok(true),
        [false, false] => return Ok(false),
        [false, true] => cert_file,
        [true, false] => key_file,
    };
    let text = format!("error reading {}, certificate and key must be supplied as a pair", missing.display());
    Err(ServeError(text))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use x509_parser::prelude::*;

    use super::*;

    fn made(bound: IpAddr) -> Vec<CertificateDer<'static>> {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let pair = self_signed(bound, now).expect("a certificate");
        assert!(pair.key.starts_with("-----BEGIN PRIVATE KEY-----"));
        CertificateDer::pem_slice_iter(pair.chain.as_bytes()).map(|der| der.expect("a certificate")).collect()
    }

    #[test]
    fn self_signed_certificate_equals_upstreams() {
        let check = |bound: IpAddr, names: usize| {
            let chain = made(bound);
            let [leaf, authority] = &chain[..] else { panic!("a leaf and its authority") };
            let (_, leaf) = X509Certificate::from_der(leaf).expect("a certificate");
            let (_, authority) = X509Certificate::from_der(authority).expect("a certificate");
            assert_eq!(leaf.subject().to_string(), "CN=localhost@1800000000");
            assert_eq!(leaf.issuer().to_string(), "CN=localhost-ca@1800000000");
            assert_eq!(leaf.validity().not_before.timestamp(), 1_800_000_000 - 3600);
            assert_eq!(leaf.validity().not_after.timestamp(), 1_800_000_000 - 3600 + 365 * 24 * 3600);
            assert!(authority.is_ca() && !leaf.is_ca());
            let usage = leaf.extended_key_usage().expect("readable").expect("it has one").value;
            assert!(usage.server_auth && !usage.client_auth);
            let listed = leaf.subject_alternative_name().expect("readable").expect("it has some").value;
            assert_eq!(listed.general_names.len(), names);
        };
        check(Ipv4Addr::UNSPECIFIED.into(), 2);
        check(Ipv4Addr::LOCALHOST.into(), 2);
        check(Ipv6Addr::LOCALHOST.into(), 3);
    }
}
