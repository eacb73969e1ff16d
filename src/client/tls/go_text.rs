//! Go's texts for TLS errors, which guides and operators search for.

use std::error::Error as StdError;

use jiff::Timestamp;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// Go's text for the first rustls error among an error and its causes.
pub(crate) fn go_text_of(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<Error>() {
            return Some(go_text(error));
        }
        // `io::Error::source` skips the wrapped error itself, so the wrapped error is visited here.
        if let Some(inner) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            let inner: &(dyn StdError + 'static) = inner;
            next = Some(inner);
            continue;
        }
        next = error.source();
    }
    None
}

/// Go's text for a TLS error.
pub(crate) fn go_text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => format!("tls: failed to verify certificate: x509: {}", certificate(error)),
        Error::AlertReceived(alert) => format!("remote error: tls: {}", self::alert(*alert)),
        // A server without TLS answers with bytes that are not a TLS record.
        Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        error => format!("tls: {error}"),
    }
}

fn certificate(error: &CertificateError) -> String {
    match error {
        // `BadSignature`: the issuer has the name of a trusted authority but another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "certificate has expired or is not yet valid: current time {} is after {}",
            moment(*time),
            moment(*not_after)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "certificate has expired or is not yet valid: current time {} is before {}",
            moment(*time),
            moment(*not_before)
        ),
        CertificateError::Expired | CertificateError::NotValidYet => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => other_name(expected, presented),
        error => error.to_string(),
    }
}

/// Go's text for a certificate with other names. Follows `crypto/x509.HostnameError.Error` of Go.
fn other_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let wanted = expected.to_str();
    let is_address = matches!(expected, ServerName::IpAddress(_));
    // rustls formats each name as `DnsName("a")` or `IpAddress(127.0.0.1)`.
    let of_kind = presented.iter().filter_map(|name| {
        let (kind, name) = name.split_once('(')?;
        let name = name.trim_end_matches(')').trim_matches('"');
        ((kind == "IpAddress") == is_address).then_some(name)
    });
    let valid: Vec<&str> = of_kind.collect();
    match (valid.is_empty(), is_address) {
        (true, true) => format!("cannot validate certificate for {wanted} because it doesn't contain any IP SANs"),
        (true, false) => format!("certificate is not valid for any names, but wanted to match {wanted}"),
        (false, _) => format!("certificate is valid for {}, not {wanted}", valid.join(", ")),
    }
}

fn moment(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |moment| moment.to_string())
}

/// Go's text for an alert. Follows `crypto/tls/alert.go` of Go.
fn alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InternalError => "internal error",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::UnrecognisedName => "unrecognized name",
        other => return format!("{other:?}"),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn certificate_errors_read_as_gos() {
        let check = |error: CertificateError, expected: &str| {
            let error = io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(error));
            let expected = format!("tls: failed to verify certificate: x509: {expected}");
            assert_eq!(go_text_of(&error), Some(expected));
        };
        check(CertificateError::UnknownIssuer, "certificate signed by unknown authority");
        check(CertificateError::BadSignature, "certificate signed by unknown authority");
        let (time, limit) = (UnixTime::since_unix_epoch(Duration::from_hours(24)), Duration::from_mins(1));
        check(
            CertificateError::ExpiredContext { time, not_after: UnixTime::since_unix_epoch(limit) },
            "certificate has expired or is not yet valid: current time 1970-01-02T00:00:00Z is after 1970-01-01T00:01:00Z",
        );
        let expected = |name: &str| ServerName::try_from(name.to_owned()).unwrap();
        let presented = || vec!["DnsName(\"a\")".to_owned(), "DnsName(\"b\")".to_owned()];
        check(
            CertificateError::NotValidForNameContext { expected: expected("c"), presented: presented() },
            "certificate is valid for a, b, not c",
        );
        check(
            CertificateError::NotValidForNameContext { expected: expected("127.0.0.1"), presented: presented() },
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        );
    }

    #[test]
    fn other_errors_are_not_translated() {
        assert_eq!(go_text_of(&io::Error::other("no route")), None);
    }
}
