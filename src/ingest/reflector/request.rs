//! Requests for lists and watches, and classification of their errors.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::io;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::header;
use kube::core::Status;

/// The URL of a kind's objects.
#[derive(Clone, Debug)]
pub(in super::super) struct Source {
    /// The path, such as `/api/v1/pods`.
    pub(in super::super) path: String,
    /// Field selector that is already URL-escaped. Empty for all objects.
    pub(in super::super) field_selector: &'static str,
}

/// A request's path with its query parameters.
#[derive(Debug)]
pub(super) struct Query(String);

/// The lines of a watch.
pub(super) type Lines = BoxStream<'static, io::Result<String>>;

impl Source {
    /// Returns the request for a page of a list. Version "0" accepts any version that the server has, and an empty version is
    /// the newest.
    pub(super) fn list(&self, version: &str, limit: Option<u32>, next: Option<&str>) -> Query {
        let limit = limit.map(|limit| limit.to_string()).unwrap_or_default();
        self.query(&[("limit", &limit), ("continue", next.unwrap_or_default()), ("resourceVersion", version)])
    }

    /// Returns the request for a watch that starts after a version.
    pub(super) fn watch(&self, version: &str, timeout: Duration) -> Query {
        let timeout = timeout.as_secs().to_string();
        self.query(&[
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("timeoutSeconds", &timeout),
            ("watch", "true"),
        ])
    }

    /// Returns the request for a watch-list at this version or a newer one. An empty version is the newest.
    pub(super) fn watch_list(&self, version: &str, timeout: Duration) -> Query {
        let timeout = timeout.as_secs().to_string();
        self.query(&[
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", version),
            ("resourceVersionMatch", "NotOlderThan"),
            ("sendInitialEvents", "true"),
            ("timeoutSeconds", &timeout),
            ("watch", "true"),
        ])
    }

    fn query(&self, parameters: &[(&str, &str)]) -> Query {
        let mut url = self.path.clone();
        let mut separator = '?';
        for (name, value) in [("fieldSelector", self.field_selector)].iter().chain(parameters) {
            if value.is_empty() {
                continue;
            }
            url.extend([separator]);
            url.extend([name, "="]);
            if *name == "fieldSelector" {
                url.push_str(value);
            } else {
                escape(value, &mut url);
            }
            separator = '&';
        }
        Query(url)
    }
}

/// Appends a value to a URL, percent-encoded.
fn escape(value: &str, url: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
}

impl Query {
    fn request(self) -> Result<http::Request<Vec<u8>>, kube::Error> {
        let request = http::Request::get(self.0).header(header::ACCEPT, "application/json");
        request.body(Vec::new()).map_err(kube::Error::HttpError)
    }

    /// Sends the request for a list, and returns the response body.
    pub(super) async fn text(self, client: &kube::Client) -> Result<String, kube::Error> {
        client.request_text(self.request()?).await
    }

    /// Opens a watch and returns its lines.
    pub(super) async fn lines(self, client: &kube::Client) -> Result<Lines, kube::Error> {
        Ok(client.request_stream(self.request()?).await?.lines().boxed())
    }
}

/// An error with its chain of causes, down to the operating system's error.
pub(in super::super) struct Chain<'a>(pub(in super::super) &'a kube::Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = status(self.0) {
            return write!(f, "{status}");
        }
        let mut text = self.0.to_string();
        f.write_str(&text)?;
        for cause in causes(self.0) {
            let next = cause.to_string();
            // Many errors already include the text of their cause.
            if !text.contains(&next) {
                write!(f, ": {next}")?;
            }
            text = next;
        }
        Ok(())
    }
}

/// Iterates over the causes of an error.
fn causes<'a>(error: &'a kube::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&'a (dyn Error + 'static)| (*cause).source())
}

fn status(error: &kube::Error) -> Option<&Status> {
    if let kube::Error::Api(status) = error { Some(status) } else { None }
}

/// Whether the requested version is older than the versions that the server has.
/// Follows `client-go/tools/cache/reflector.go#isExpiredError @v1.36.3`.
pub(super) fn is_expired(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.code == 410 || matches!(&*status.reason, "Expired" | "Gone"))
}

/// Whether the requested version is newer than the versions that the server has.
/// Follows `client-go/tools/cache/reflector.go#isTooLargeResourceVersionError @v1.36.3`.
pub(super) fn is_too_large(error: &kube::Error) -> bool {
    let Some(status) = status(error) else { return false };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    causes
        .iter()
        .any(|cause| cause.reason == "ResourceVersionTooLarge" || cause.message == "Too large resource version")
        || (status.reason == "Timeout" && status.message.contains("Too large resource version"))
}

/// Whether the server throttles the client.
pub(super) fn is_too_many_requests(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.code == 429 || status.reason == "TooManyRequests")
}

/// Whether the same watch should be requested again: the connection was refused, or the server throttles the client.
/// Follows `client-go/tools/cache/reflector.go#isWatchErrorRetriable @v1.36.3`.
pub(super) fn is_retriable(error: &kube::Error) -> bool {
    is_too_many_requests(error) || is_connection_refused(error)
}

/// Whether the connection was refused.
pub(super) fn is_connection_refused(error: &kube::Error) -> bool {
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    causes(error).any(|cause| cause.downcast_ref::<io::Error>().is_some_and(refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_and_watch_urls_have_their_parameters() {
        let nodes = Source { path: "/api/v1/nodes".into(), field_selector: "" };
        let pods = Source { path: "/api/v1/pods".into(), field_selector: "a%21%3Db" };
        let check = |query: Query, expected: &str| assert_eq!(query.0, expected);
        check(nodes.list("", None, None), "/api/v1/nodes");
        check(nodes.list("0", Some(500), None), "/api/v1/nodes?limit=500&resourceVersion=0");
        check(
            pods.list("", Some(500), Some("a/b=")),
            "/api/v1/pods?fieldSelector=a%21%3Db&limit=500&continue=a%2Fb%3D",
        );
        check(
            pods.watch("7", Duration::from_mins(5)),
            "/api/v1/pods?fieldSelector=a%21%3Db&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300&watch=true",
        );
        check(
            nodes.watch_list("", Duration::from_mins(5)),
            "/api/v1/nodes?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true\
             &timeoutSeconds=300&watch=true",
        );
    }

    #[test]
    fn errors_name_their_causes() {
        let check = |error: kube::Error, text: &str| assert_eq!(Chain(&error).to_string(), text);
        let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "refused");
        check(kube::Error::ReadEvents(refused()), "Error reading events stream: refused");
        check(kube::Error::Service(Box::new(refused())), "ServiceError: refused");
        let nested = io::Error::other(kube::Error::ReadEvents(refused()));
        check(kube::Error::Service(Box::new(nested)), "ServiceError: Error reading events stream: refused");
    }

    #[test]
    fn errors_are_classified_as_expired_too_large_or_retriable() {
        let check = |code: u16, reason: &str, message: &str, cause: &str, expected: &str| {
            let details = serde_json::json!({"causes": [{"reason": cause, "message": "", "field": ""}]});
            let status = serde_json::json!({"code": code, "reason": reason, "message": message, "details": details});
            let error = kube::Error::Api(serde_json::from_value(status).expect("a status"));
            let kinds = [
                ("expired", is_expired(&error)),
                ("too large", is_too_large(&error)),
                ("retriable", is_retriable(&error)),
            ];
            let kinds: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind).collect();
            assert_eq!(kinds.join(" "), expected, "{code} {reason} {message}");
        };
        check(410, "Expired", "", "", "expired");
        check(410, "", "", "", "expired");
        check(504, "Timeout", "Too large resource version: 9, current: 3", "", "too large");
        check(504, "Timeout", "", "ResourceVersionTooLarge", "too large");
        check(504, "Timeout", "", "", "");
        check(429, "TooManyRequests", "", "", "retriable");
        check(500, "InternalError", "", "", "");
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(is_retriable(&kube::Error::ReadEvents(refused)));
        assert!(!is_retriable(&kube::Error::ReadEvents(io::ErrorKind::ConnectionReset.into())));
    }
}
