//! HTTP client for one extender, with the extender's timeout. All calls run on a background thread.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use ::http::{Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::runtime::Runtime;

use super::error::{self, CallError};
use super::tls::{self, Tls};
use crate::config::Extender;
use crate::go::base64;
use crate::version;

/// Default timeout of a call. Follows `pkg/scheduler/extender.go#DefaultExtenderTimeout @v1.36.3`.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which an idle connection is closed.
/// Follows `apimachinery/pkg/util/net/http.go#SetOldTransportDefaults @v1.36.3`, which sets the value of Go's default transport.
const IDLE: Duration = Duration::from_secs(90);

/// Maximum bytes of a reply: 15,000 nodes of 32 KiB each, more than any real reply.
const MAX_REPLY: usize = 15_000 * (32 << 10);

/// The thread that runs the calls to all extenders of a scheduler. A caller may be inside a runtime, or on the only thread of a
/// runtime, so the calls cannot run on the caller's thread.
pub(super) struct Background(Option<Runtime>);

impl Background {
    /// Starts the background thread.
    pub(super) fn start() -> std::io::Result<Arc<Self>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("extenders")
            .enable_all()
            .build()?;
        Ok(Arc::new(Self(Some(runtime))))
    }

    /// Runs a call on the background thread. A panic of the call continues in the caller.
    async fn run<T: Send + 'static>(&self, call: impl Future<Output = T> + Send + 'static) -> Result<T, CallError> {
        let Some(runtime) = &self.0 else { return Err(CallError::Ended) };
        match runtime.spawn(call).await {
            Ok(outcome) => Ok(outcome),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(CallError::Ended),
        }
    }
}

impl Drop for Background {
    /// Shuts down without waiting, because the last extender may be dropped inside a runtime, which must not block.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

type Http = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// HTTP client for one extender.
pub(super) struct Client {
    http: Http,
    /// Timeout of a call. `None` means no limit.
    timeout: Option<Duration>,
    prefix: String,
    background: Arc<Background>,
}

impl Client {
    /// Creates a client for one extender. It does not connect yet.
    pub(super) fn new(extender: &Extender, background: Arc<Background>) -> Result<Self, String> {
        let Tls { config, server_name } = tls::of(extender)?;
        let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
        let builder = match server_name {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => builder,
        };
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        let mut http = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
        http.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new());
        Ok(Self {
            http: http.build(builder.enable_http1().wrap_connector(connector)),
            timeout: match extender.http_timeout.as_nanos() {
                0 => Some(DEFAULT_TIMEOUT),
                // As in Go, a negative timeout means no limit.
                _ => extender.http_timeout.to_std(),
            },
            prefix: extender.url_prefix.clone(),
            background,
        })
    }

    /// Returns the configured URL prefix, which is also the extender's name.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Sends a request and waits for the whole reply.
    /// Follows `pkg/scheduler/extender.go#HTTPExtender.send @v1.36.3`.
    pub(super) async fn post(&self, verb: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        let url = format!("{}/{verb}", self.prefix.trim_end_matches('/'));
        let request = request(&url, body)?;
        let (http, timeout, verb) = (self.http.clone(), self.timeout, verb.to_owned());
        let call = async move {
            let deadline = timeout.and_then(|timeout| tokio::time::Instant::now().checked_add(timeout));
            let uri = request.uri().clone();
            let reply = match within(deadline, http.request(request)).await {
                Some(Ok(reply)) => reply,
                Some(Err(error)) => return Err(CallError::Failed { url, reason: error::reason(&error, &uri) }),
                None => return Err(CallError::NoHeaders { url }),
            };
            if reply.status() != StatusCode::OK {
                return Err(CallError::Code { verb, url, code: reply.status().as_u16() });
            }
            match within(deadline, Limited::new(reply.into_body(), MAX_REPLY).collect()).await {
                Some(Ok(body)) => Ok(body.to_bytes()),
                Some(Err(error)) => Err(CallError::Body(error::reason(&*error, &uri))),
                None => Err(CallError::NoBody),
            }
        };
        self.background.run(call).await?
    }

    /// Like [`Self::post`], but blocks the caller's thread.
    pub(super) fn post_blocking(&self, verb: &str, body: Vec<u8>) -> Result<Bytes, CallError> {
        futures::executor::block_on(self.post(verb, body))
    }
}

/// Awaits a future until a deadline. Returns `None` if the deadline passes first.
async fn within<T>(deadline: Option<tokio::time::Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

/// Creates a POST request. A user in the URL becomes an `Authorization` header, as in Go.
fn request(url: &str, body: Vec<u8>) -> Result<Request<Full<Bytes>>, CallError> {
    let invalid = |error: &dyn std::fmt::Display| CallError::Url { url: url.to_owned(), reason: error.to_string() };
    let uri: Uri = url.parse().map_err(|error| invalid(&error))?;
    let scheme = uri.scheme_str().unwrap_or_default();
    if !matches!(scheme, "http" | "https") {
        let reason = format!("unsupported protocol scheme {scheme:?}");
        return Err(CallError::Failed { url: url.to_owned(), reason });
    }
    let agent = version::user_agent("extender");
    let mut request = Request::post(&uri).header(CONTENT_TYPE, "application/json").header(USER_AGENT, agent);
    let user = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    if let Some((user, host)) = user {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        let pair = [&*unescape(name), b":", &*unescape(password)].concat();
        let mut parts = uri.clone().into_parts();
        parts.authority = Some(host.parse().map_err(|error| invalid(&error))?);
        let uri = Uri::from_parts(parts).map_err(|error| invalid(&error))?;
        request = request.uri(uri).header(AUTHORIZATION, format!("Basic {}", base64::encode(&pair)));
    }
    request.body(Full::from(body)).map_err(|error| invalid(&error))
}

/// Decodes the percent escapes of a text. Malformed ones stay as they are.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_url_and_basic_auth() {
        let check = |url: &str, to: &str, authorization: Option<&str>| {
            let request = request(url, Vec::new()).expect("a good URL");
            assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("POST", to));
            assert_eq!(request.headers()[CONTENT_TYPE], "application/json");
            let sent = request.headers().get(AUTHORIZATION).map(|value| value.to_str().expect("text"));
            assert_eq!(sent, authorization);
        };
        check("http://host:1/a/filter", "http://host:1/a/filter", None);
        check("https://u%40:p%zz@host/filter", "https://host/filter", Some("Basic dUA6cCV6eg=="));
        check("https://u@host/filter", "https://host/filter", Some("Basic dTo="));
    }

    #[test]
    fn invalid_urls_give_gos_errors() {
        let check = |url: &str, expected: &str| {
            assert_eq!(request(url, Vec::new()).expect_err("a bad URL").to_string(), expected);
        };
        check("u/filter", "parse \"u/filter\": invalid format");
        check("/filter", "Post \"/filter\": unsupported protocol scheme \"\"");
        check("ftp://host/filter", "Post \"ftp://host/filter\": unsupported protocol scheme \"ftp\"");
    }
}
