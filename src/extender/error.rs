//! Errors of calls to extenders, with the texts of Go's client, which become the pod's condition and event.

use std::error::Error;
use std::io;

use ::http::Uri;

use crate::client::dial_error::unreachable;
use crate::client::tls::go_text;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// The URL is none.
    #[error("parse {url:?}: {reason}")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// There was no reply.
    #[error("Post \"{}\": {reason}", without_password(url))]
    Failed {
        /// Where the request went.
        url: String,
        /// Why.
        reason: String,
    },
    /// The reply did not begin in time.
    #[error(
        "Post \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        without_password(url)
    )]
    NoHeaders {
        /// Where the request went.
        url: String,
    },
    /// The reply did not end in time.
    #[error("context deadline exceeded (Client.Timeout or context cancellation while reading body)")]
    NoBody,
    /// The reply broke off.
    #[error("{0}")]
    Body(String),
    /// The extender did not answer with 200. Follows `pkg/scheduler/extender.go#HTTPExtender.send @v1.36.3`.
    #[error("failed {verb} with extender at URL {url}, code {code}")]
    Code {
        /// What it was asked for.
        verb: String,
        /// Where.
        url: String,
        /// What it said instead.
        code: u16,
    },
    /// The scheduler is ending.
    #[error("context canceled")]
    Ended,
}

/// The URL as it may be shown.
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

/// Why a request to `uri` failed: Go's words where the cause has some, else the cause's own.
pub(super) fn reason(error: &(dyn Error + 'static), uri: &Uri) -> String {
    let chain: Vec<&(dyn Error + 'static)> = std::iter::successors(Some(error), |cause| (*cause).source()).collect();
    for cause in &chain {
        if let Some(text) = known(*cause, uri) {
            return text;
        }
    }
    // The outermost text says no more than that a client failed.
    let texts: Vec<String> = chain.iter().skip(usize::from(chain.len() > 1)).map(ToString::to_string).collect();
    texts.join(": ")
}

fn known(cause: &(dyn Error + 'static), uri: &Uri) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        // What it wraps, as a failed handshake twice over, is not among its sources.
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
    // hyper's own type has no other way to tell that the other side hung up.
    (cause.to_string() == "connection closed before message completed").then(|| "EOF".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let check = |url: &str, expected: &str| assert_eq!(without_password(url), expected);
        check("http://u:p@h:1/x/y", "http://u:***@h:1/x/y");
        check("http://u@h/x", "http://u@h/x");
        check("http://h/x:y@z", "http://h/x:y@z");
        check("u/x", "u/x");
    }

    #[test]
    fn reasons() {
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
