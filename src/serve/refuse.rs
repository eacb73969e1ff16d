//! Requests that are answered before authentication: malformed ones, which are rejected, and `OPTIONS *`, which names no path.
//! Follows Go's `net/http.conn.readRequest`, `conn.serve` and `serverHandler.ServeHTTP`.
//!
//! Except for `OPTIONS *`, these checks apply to HTTP/1.1 and older only. In HTTP/2 the crate `h2` makes them.

use http::header::{CONNECTION, EXPECT, HOST, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;

use super::reply::{Reply, TEXT, reply};

/// Characters that Go allows in a host besides letters and digits. From `golang.org/x/net/http/httpguts.ValidHostHeader`.
const IN_HOST: &[u8] = b"!$%&'()*+,-.:;=[]_~";

/// Returns the response to a malformed request or to `OPTIONS *`, and `None` for other requests.
pub(super) fn at_once<B>(request: &Request<B>) -> Option<Reply> {
    if request.version() != Version::HTTP_2
        && let Some(refused) = refused(request)
    {
        return Some(refused);
    }
    let about_nothing = request.method() == Method::OPTIONS && request.uri().path() == "*";
    about_nothing.then(|| Response::new(Full::default()))
}

fn refused<B>(request: &Request<B>) -> Option<Reply> {
    let uri = request.uri();
    if uri.scheme().is_none() && uri.authority().is_some() && request.method() != Method::CONNECT {
        return Some(bad(ReasonPhrase::from_static(b"Bad Request")));
    }
    let mut hosts = request.headers().get_all(HOST).into_iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version() == Version::HTTP_11 && request.method() != Method::CONNECT => {
            return Some(bad(ReasonPhrase::from_static(b"Bad Request: missing required Host header")));
        }
        (Some(_), Some(_)) => return Some(bad(ReasonPhrase::from_static(b"Bad Request"))),
        (Some(host), None) if !is_host(host) => {
            return Some(bad(ReasonPhrase::from_static(b"Bad Request: malformed Host header")));
        }
        _ => {}
    }
    let mut encodings = request.headers().get_all(TRANSFER_ENCODING).into_iter();
    let is_chunked = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (encodings.next(), encodings.next()) {
        (None, _) => {}
        (Some(encoding), None) if is_chunked(encoding) => {}
        // Ambiguous encodings allow request smuggling: two parties may disagree on the end of the body.
        _ => return Some(last(reply(StatusCode::NOT_IMPLEMENTED, TEXT, "Unsupported transfer encoding"))),
    }
    let expected = request.headers().get(EXPECT)?.as_bytes();
    // hyper handles `100-continue` itself.
    let continues =
        expected.split(|byte| *byte == b',').any(|one| one.trim_ascii().eq_ignore_ascii_case(b"100-continue"));
    (!continues && !expected.is_empty()).then(|| {
        let mut reply = Response::new(Full::default());
        *reply.status_mut() = StatusCode::EXPECTATION_FAILED;
        last(reply)
    })
}

fn bad(reason: ReasonPhrase) -> Reply {
    let mut text = b"400 ".to_vec();
    text.extend(reason.as_bytes());
    let mut reply = reply(StatusCode::BAD_REQUEST, TEXT, text);
    reply.extensions_mut().insert(reason);
    last(reply)
}

/// Closes the connection after this reply, so that nothing more is read from the client.
fn last(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

fn is_host(host: &HeaderValue) -> bool {
    host.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || IN_HOST.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::super::reply::shown;
    use super::*;

    fn request(method: &str, uri: &str, version: Version, headers: &[(&str, &str)]) -> Request<()> {
        let request = Request::builder().method(method).uri(uri).version(version);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request")
    }

    fn check(version: Version, headers: &[(&str, &str)], expected: Option<(u16, &str)>) {
        let answer = at_once(&request("GET", "/healthz", version, headers)).map(shown);
        assert_eq!(answer, expected.map(|(status, text)| (status, text.to_owned())), "{version:?} {headers:?}");
    }

    #[test]
    fn request_must_have_one_host_header() {
        let missing = Some((400, "400 Bad Request: missing required Host header"));
        check(Version::HTTP_11, &[], missing);
        check(Version::HTTP_10, &[], None);
        check(Version::HTTP_2, &[], None);
        check(Version::HTTP_11, &[("host", "")], None);
        check(Version::HTTP_11, &[("host", "[::1]:10259")], None);
        check(Version::HTTP_11, &[("host", "a b")], Some((400, "400 Bad Request: malformed Host header")));
        check(Version::HTTP_11, &[("host", "a"), ("host", "a")], Some((400, "400 Bad Request")));
    }

    #[test]
    fn request_must_have_a_path() {
        let check = |method: &str, uri: &str, expected: Option<u16>| {
            let answer = at_once(&request(method, uri, Version::HTTP_11, &[("host", "a")]));
            assert_eq!(answer.map(|reply| reply.status().as_u16()), expected, "{method} {uri}");
        };
        check("GET", "healthz", Some(400));
        check("GET", "http://other/healthz", None);
        check("CONNECT", "other:1", None);
    }

    #[test]
    fn only_expect_100_continue_is_accepted() {
        check(Version::HTTP_11, &[("host", "a"), ("expect", "100-Continue")], None);
        check(Version::HTTP_11, &[("host", "a"), ("expect", "")], None);
        check(Version::HTTP_11, &[("host", "a"), ("expect", "more")], Some((417, "")));
        check(Version::HTTP_2, &[("expect", "more")], None);
    }

    #[test]
    fn only_a_single_chunked_encoding_is_accepted() {
        let check = |encodings: &[&str], expected: Option<(u16, &str)>| {
            let encodings = encodings.iter().map(|encoding| ("transfer-encoding", *encoding));
            let headers: Vec<_> = std::iter::once(("host", "a")).chain(encodings).collect();
            super::tests::check(Version::HTTP_11, &headers, expected);
        };
        let unsupported = Some((501, "Unsupported transfer encoding"));
        check(&["Chunked"], None);
        check(&["chunked, chunked"], unsupported);
        check(&["chunked", "chunked"], unsupported);
        check(&["gzip, chunked"], unsupported);
    }

    #[test]
    fn options_star_is_answered_at_once() {
        let answered = at_once(&request("OPTIONS", "*", Version::HTTP_11, &[("host", "a")])).map(shown);
        assert_eq!(answered, Some((200, String::new())));
        assert!(at_once(&request("OPTIONS", "/healthz", Version::HTTP_11, &[("host", "a")])).is_none());
        assert!(at_once(&request("OPTIONS", "*", Version::HTTP_11, &[])).is_some_and(|reply| reply.status() == 400));
    }
}
