//! Errors of requests, with the texts that upstream puts into conditions and events.

use std::error::Error as StdError;
use std::io;

use http::{HeaderMap, Method, StatusCode, Uri, header};
use kube::core::response::{Status, StatusCause, StatusDetails, StatusSummary};
use tower::BoxError;

use super::target::Target;

/// Maximum bytes quoted from a body that is not a Status object.
/// Follows `client-go/rest/request.go#maxUnstructuredResponseTextBytes @v1.36.3`.
const MAX_QUOTED_BYTES: usize = 2048;

/// hyper's error text for an HTTP/2 ping that was not answered.
const PINGS_LOST: &str = "keep-alive timed out";

/// Go's error text for an HTTP/2 ping that was not answered. From
/// `apimachinery/pkg/util/net/util.go#IsHTTP2ConnectionLost @v1.36.3`.
const CONNECTION_LOST: &str = "http2: client connection lost";

/// A request that failed. `Display` is the text that upstream would put into a message.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ApiError {
    /// The server answered with an error.
    #[error("{}", .0.message)]
    Status(Box<Status>),
    /// The server did not respond.
    #[error("{message}")]
    Transport {
        /// The method, the URL and the connection's error.
        message: String,
        /// The kind of failure of the connection.
        kind: TransportKind,
    },
    /// The request could not be built. A retry would not help.
    #[error("{0}")]
    Request(String),
    /// This process is no longer the leader, so it must not write.
    #[error("this process no longer holds the lease")]
    NotLeading,
    /// The dispatcher was closed before the request was sent.
    #[error("context canceled")]
    Closed,
}

/// The kind of failure of a connection, as far as retries depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// The connection was refused because no process listens.
    Refused,
    /// The connection was reset, or ended before the response did.
    Reset,
    /// Any other failure of the connection.
    Other,
}

/// The error of a request without a response, with the URL of the request.
#[derive(Debug, thiserror::Error)]
#[error("no response from {url}")]
pub(super) struct Unanswered {
    pub(super) url: Uri,
    pub(super) source: BoxError,
}

impl ApiError {
    /// The error of a response that is not a success: its Status object, or one made from the code and the text.
    /// Follows `client-go/rest/request.go#transformResponse @v1.36.3`.
    pub(super) fn from_response(
        method: &Method,
        target: &Target<'_>,
        code: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        if let Ok(status) = serde_json::from_slice::<Status>(body)
            && status.status == Some(StatusSummary::Failure)
        {
            return Self::Status(Box::new(status));
        }
        let quoted = &body[..body.len().min(MAX_QUOTED_BYTES)];
        let text =
            if is_text(headers) { String::from_utf8_lossy(quoted).trim().to_owned() } else { "unknown".to_owned() };
        Self::Status(Box::new(generic_status(method, target, code, headers, text)))
    }

    /// The error of a request that got no response.
    pub(crate) fn from_transport(method: &Method, path: &str, error: &(dyn StdError + 'static)) -> Self {
        let (mut texts, mut kind, mut url) = (Vec::new(), TransportKind::Other, path.to_owned());
        let mut cause = Some(error);
        while let Some(error) = cause {
            if kind == TransportKind::Other {
                kind = connection_kind(error);
            }
            if let Some(unanswered) = error.downcast_ref::<Unanswered>() {
                url = unanswered.url.to_string();
            }
            texts.push(error.to_string());
            cause = error.source();
        }
        // The innermost error says what happened. The errors around it repeat that or only name a layer.
        let text = if texts.iter().any(|text| text.contains(PINGS_LOST)) {
            kind = TransportKind::Reset;
            CONNECTION_LOST.to_owned()
        } else {
            texts.pop().unwrap_or_default()
        };
        Self::unanswered(method, &url, &text, kind)
    }

    /// The error of a request that timed out before it got a response.
    pub(super) fn out_of_time(method: &Method, path: &str) -> Self {
        Self::unanswered(method, path, "context deadline exceeded", TransportKind::Other)
    }

    fn unanswered(method: &Method, url: &str, text: &str, kind: TransportKind) -> Self {
        let mut verb = method.as_str().to_ascii_lowercase();
        verb[..1].make_ascii_uppercase();
        Self::Transport { message: format!("{verb} \"{url}\": {text}"), kind }
    }

    /// The server's Status object, if it answered.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is("NotFound", StatusCode::NOT_FOUND)
    }

    /// Whether another client changed the object, or the object is in a state that forbids the request.
    pub fn is_conflict(&self) -> bool {
        self.is("Conflict", StatusCode::CONFLICT)
    }

    /// Whether an object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// Whether the server reported an internal error.
    pub fn is_internal(&self) -> bool {
        self.is("InternalError", StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether the server reported that it is unavailable.
    pub fn is_unavailable(&self) -> bool {
        self.is("ServiceUnavailable", StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Whether the connection was refused.
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, Self::Transport { kind: TransportKind::Refused, .. })
    }

    /// Whether a status patch is retried after this error. Follows `pkg/scheduler/util/utils.go#Retriable @v1.36.3`.
    pub fn is_retriable(&self) -> bool {
        self.is_internal() || self.is_unavailable() || self.is_conflict() || self.is_connection_refused()
    }

    /// Whether the Status has this reason or, if its reason is empty, this code.
    /// Follows `apimachinery/pkg/api/errors/errors.go#reasonAndCodeForError @v1.36.3` and its users.
    fn is(&self, reason: &str, code: StatusCode) -> bool {
        self.status()
            .is_some_and(|status| status.reason == reason || (status.reason.is_empty() && status.code == code.as_u16()))
    }
}

fn connection_kind(error: &(dyn StdError + 'static)) -> TransportKind {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => return TransportKind::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                return TransportKind::Reset;
            }
            _ => {}
        }
    }
    let text = error.to_string();
    // The texts for a stream that ended before the response, for a reset connection, and for an HTTP/2 GOAWAY frame.
    let closed = ["connection closed before message completed", "connection reset by peer", "GOAWAY"];
    if closed.iter().any(|part| text.contains(part)) { TransportKind::Reset } else { TransportKind::Other }
}

fn is_text(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_none_or(|value| value.as_bytes().starts_with(b"text/"))
}

/// Status of a response without a Status object. Follows
/// `apimachinery/pkg/api/errors/errors.go#NewGenericServerResponse @v1.36.3`.
fn generic_status(method: &Method, target: &Target<'_>, code: StatusCode, headers: &HeaderMap, text: String) -> Status {
    let (reason, mut message) = generic_reason(method, code, &text);
    let resource = target.qualified_resource();
    let verb = method.as_str().to_ascii_lowercase();
    if !target.name.is_empty() {
        message = format!("{message} ({verb} {resource} {})", target.name);
    } else if !resource.is_empty() {
        message = format!("{message} ({verb} {resource})");
    }
    let cause = StatusCause { reason: "UnexpectedServerResponse".to_owned(), message: text, field: String::new() };
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let details = StatusDetails {
        name: target.name.to_owned(),
        group: target.group.to_owned(),
        kind: target.resource.to_owned(),
        uid: String::new(),
        causes: vec![cause],
        retry_after_seconds: seconds.unwrap_or(0),
    };
    Status::failure(&message, reason).with_code(code.as_u16()).with_details(details)
}

fn generic_reason(method: &Method, code: StatusCode, text: &str) -> (&'static str, String) {
    let (reason, message) = match code.as_u16() {
        400 => ("BadRequest", "the server rejected our request for an unknown reason"),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
        403 => ("Forbidden", text),
        404 => ("NotFound", "the server could not find the requested resource"),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
        406 if text.is_empty() || text == "unknown" => {
            ("NotAcceptable", "the server was unable to respond with a content type that the client supports")
        }
        406 => ("NotAcceptable", text),
        409 if *method == Method::POST => ("AlreadyExists", "the server reported a conflict"),
        409 => ("Conflict", "the server reported a conflict"),
        415 => ("UnsupportedMediaType", text),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        500.. => {
            let message = format!("an error on the server ({text:?}) has prevented the request from succeeding");
            return ("InternalError", message);
        }
        other => {
            let message =
                format!("the server responded with the status code {other} but did not return more information");
            return ("", message);
        }
    };
    (reason, message.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const POD: Target<'static> = Target::pod("default", "p1");

    fn response(method: &Method, code: u16, content_type: &'static str, body: &str) -> ApiError {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        ApiError::from_response(method, &POD, StatusCode::from_u16(code).unwrap(), &headers, body.as_bytes())
    }

    #[test]
    fn a_status_object_speaks_for_itself() {
        let body = r#"{"kind":"Status","status":"Failure","message":"pod p1 is being deleted","reason":"Conflict","code":409}"#;
        let error = response(&Method::POST, 409, "application/json", body);
        assert_eq!(error.to_string(), "pod p1 is being deleted");
        assert!(error.is_conflict() && error.is_retriable());
        assert!(!error.is_already_exists() && !error.is_not_found());
    }

    #[test]
    fn other_bodies_are_described() {
        let check = |method: &Method, code: u16, content_type, body: &str, message: &str, reason: &str| {
            let error = response(method, code, content_type, body);
            assert_eq!(error.to_string(), message);
            assert_eq!(error.status().unwrap().reason, reason);
        };
        let busy = "the server has received too many requests and has asked us to try again later (post pods p1)";
        check(&Method::POST, 429, "text/plain; charset=utf-8", "Too many requests\n", busy, "TooManyRequests");
        let broken = "an error on the server (\"boom\") has prevented the request from succeeding (patch pods p1)";
        check(&Method::PATCH, 500, "text/plain", " boom\n", broken, "InternalError");
        let unknown = "an error on the server (\"unknown\") has prevented the request from succeeding (patch pods p1)";
        check(&Method::PATCH, 502, "application/json", "{}", unknown, "InternalError");
        check(&Method::POST, 409, "text/plain", "", "the server reported a conflict (post pods p1)", "AlreadyExists");
        check(&Method::GET, 403, "text/plain", "no", "no (get pods p1)", "Forbidden");
        let strange = "the server responded with the status code 418 but did not return more information (get pods p1)";
        check(&Method::GET, 418, "text/plain", "no", strange, "");
    }

    #[test]
    fn the_code_counts_only_without_a_reason() {
        let check = |reason: &str, code: u16, conflict: bool| {
            let status = Status::failure("m", reason).with_code(code);
            assert_eq!(ApiError::Status(Box::new(status)).is_conflict(), conflict, "{reason} {code}");
        };
        check("", 409, true);
        check("AlreadyExists", 409, false);
        check("Conflict", 200, true);
    }

    #[test]
    fn connections_are_told_apart() {
        let check = |error: io::Error, expected: TransportKind, message: &str| {
            let error = kube::Error::Service(Box::new(error));
            let error = ApiError::from_transport(&Method::POST, "/api/v1/x", &error);
            assert_eq!(error.to_string(), message);
            assert!(matches!(error, ApiError::Transport { kind, .. } if kind == expected), "{error:?}");
        };
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "dial: connection refused");
        check(refused, TransportKind::Refused, "Post \"/api/v1/x\": dial: connection refused");
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "read: connection reset by peer");
        check(reset, TransportKind::Reset, "Post \"/api/v1/x\": read: connection reset by peer");
        check(io::Error::other("no route"), TransportKind::Other, "Post \"/api/v1/x\": no route");
    }
}
