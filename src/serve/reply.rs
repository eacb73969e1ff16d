//! Responses of the handlers, and helpers that build them.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// A response with its whole body in memory, since no body is large or endless.
pub(super) type Reply = Response<Full<Bytes>>;

pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
pub(super) const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Tells browsers to trust the declared content type.
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Response with a status, a content type and a body.
pub(super) fn reply(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// Response in plain text with status 200.
pub(super) fn text(body: impl Into<Bytes>) -> Reply {
    reply(StatusCode::OK, TEXT, body)
}

/// Returns the same response with `X-Content-Type-Options: nosniff`.
pub(super) fn no_sniff(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    reply
}

/// Response with an error's text on a line of its own. Follows Go's `net/http.Error`.
pub(super) fn failure(status: StatusCode, text: &str) -> Reply {
    no_sniff(reply(status, TEXT, format!("{text}\n")))
}

/// Response to an unknown path. Follows Go's `net/http.NotFound`.
pub(super) fn not_found() -> Reply {
    failure(StatusCode::NOT_FOUND, "404 page not found")
}

/// Redirects to another path. Follows Go's `net/http.Redirect`.
pub(super) fn redirect(to: &'static str, with_body: bool) -> Reply {
    let body = if with_body { format!("<a href=\"{to}\">Found</a>.\n\n") } else { String::new() };
    let mut reply = reply(StatusCode::FOUND, HTML, body);
    reply.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    if !with_body {
        reply.headers_mut().remove(CONTENT_TYPE);
    }
    reply
}

/// Returns the same response with one more header.
pub(super) fn with(mut reply: Reply, name: HeaderName, value: HeaderValue) -> Reply {
    reply.headers_mut().insert(name, value);
    reply
}

/// Returns the status and the body of a response, for tests.
#[cfg(test)]
pub(super) fn shown(reply: Reply) -> (u16, String) {
    use http_body_util::BodyExt as _;

    let status = reply.status().as_u16();
    let body = futures::executor::block_on(reply.into_body().collect()).expect("a whole body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}
