//! Errors of calls to extenders. They have the texts of Go's client and appear in the pod's condition and event.

use std::error::Error;
use std::io;

use ::http::Uri;

use crate::client::dial_error::unreachable;
use crate::client::tls::go_text;

/// Reason why a call to an extender failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// The URL is invalid.
    #[error("parse {url:?}: {reason}")]
    Url {
        /// The invalid URL, as configured.
        url: String,
        /// Why the URL is invalid.
        reason: String,
    },
    /// The request failed without a reply.
    #[error("Post \"{}\": {reason}", without_password(url))]
    Failed {
        /// URL of the failed request.
        url: String,
        /// Why the request failed.
        reason: String,
    },
    /// The timeout passed before the headers arrived.
    #[error(
        "Post \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        without_password(url)
    )]
    NoHeaders {
        /// URL of the failed request.
        url: String,
    },
    /// The timeout passed before the body was complete.
    #[error("context deadline exceeded (Client.Timeout or context cancellation while reading body)")]
    NoBody,
    /// The connection failed while the body was read, or the body was too long.
    #[error("{0}")]
    Body(String),
    /// The status of the reply is not 200. Follows `pkg/scheduler/extender.go#HTTPExtender.send @v1.36.3`.
    #[error("failed {verb} with extender at URL {url}, code {code}")]
    Code {
        /// Verb of the failed call.
        verb: String,
        /// URL of the failed call.
        url: String,
        /// Status code of the reply.
        code: u16,
    },
    /// The scheduler is shutting down.
    #[error("context canceled")]
    Ended,
}

/// Returns the URL with its password replaced by `***`.
fn without_password(url: &str) -> String {
    let shown = || {
        let (scheme, rest) = url.split_once("://")?;
        let (authority, _) = rest.split_once('/')?;
        let (user, _) = authority.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}:***{}", &rest[user.len()..]))
    };
    shown().unwrap_or_else(|| url.to_owned())
}

/// Returns why a request to `uri` failed, in Go's words if Go has any for the cause.
pub(super) fn reason(error: &(dyn Error + 'static), uri: &Uri) -> String {
    let chain: Vec<&(dyn Error + 'static)> = std::iter::successors(Some(error), |cause| (*cause).source()).collect();
    for cause in &chain {
        if let Some(text) = known(*cause, uri) {
            return text;
        }
    }
    // The outermost text says only that the client failed.
    let texts: Vec<String> = chain.iter().skip(usize::from(chain.len() > 1)).map(ToString::to_string).collect();
    texts.join(": ")
}

fn known(cause: &(dyn Error + 'static), uri: &Uri) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        // The errors that an `io::Error` wraps, such as a failed handshake, are not among its sources.
        if let Some(text) = error.get_ref().and_then(|inner| known(inner, uri)) {
            return Some(text);
        }
        return match error.kind() {
            io::ErrorKind::ConnectionReset => Some("read: connection reset by peer".to_owned()),
            io::ErrorKind::UnexpectedEof => Some("EOF".to_owned()),
            _ => unreachable(error, uri),
        };
    }
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(go_text(error));
    }
    // hyper's error has no other sign that the peer closed the connection.
    (cause.to_string() == "connection closed before message completed").then(|| "EOF".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_redacted() {
        let check = |url: &str, expected: &str| assert_eq!(without_password(url), expected);
        check("http://u:p@h:1/x/y", "http://u:***@h:1/x/y");
        check("http://u@h/x", "http://u@h/x");
        check("http://h/x:y@z", "http://h/x:y@z");
        check("u/x", "u/x");
    }

    #[test]
    fn transport_errors_equal_gos() {
        let uri = Uri::from_static("https://host/filter");
        let check = |error: io::Error, expected: &str| assert_eq!(reason(&error, &uri), expected);
        check(io::ErrorKind::ConnectionRefused.into(), "dial tcp host:443: connect: connection refused");
        check(io::ErrorKind::UnexpectedEof.into(), "EOF");
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        check(
            io::Error::other(io::Error::new(io::ErrorKind::InvalidData, unknown)),
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        );
        let lookup = "failed to lookup address information: Name or service not known";
        check(io::Error::other(lookup), "dial tcp: lookup host: no such host");
        check(io::Error::other("strange"), "strange");
    }
}
