//! Serves one connection: its handshake, its requests and its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use http::{Request, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::server::Acceptor;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tracing::trace;

use super::activity::{Activity, HEADERS, HeaderPermits, TrackedStream};
use super::authenticate::Peer;
use super::handler::Handler;
use super::listener::keep_alive;
use super::refuse;
use super::reply::failure;
use super::serving::Serving;
use crate::clock::Clock;

/// Maximum bytes of a request's headers: the limit of `apiserver/pkg/server/secure_serving.go#Serve @v1.36.3` and the 4096
/// bytes that Go adds to it.
const MAX_HEADER_BYTES: usize = (1 << 20) + 4096;
/// Maximum number of headers of a request. Upstream limits only the bytes.
const MAX_HEADERS: usize = 1024;
/// Flow-control window of a stream in bytes. From `apiserver/pkg/server/secure_serving.go#Serve @v1.36.3`.
///
/// Upstream also allows frames of this length. Here frames keep their default maximum length: the longer frames may be, the
/// fewer frames h2 accepts for the headers of a request, and clients send long headers in many short frames.
const STREAM_BYTES: u32 = 256 * 1024;

/// Response to a client that sends plain HTTP. Follows Go's `net/http.badRequestError`.
const NOT_TLS: &str = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// State that all connections share.
pub(super) struct ConnectionContext {
    pub(super) serving: Serving,
    pub(super) handler: Handler,
    pub(super) clock: Clock,
    /// Maximum number of HTTP/2 streams of a connection.
    pub(super) max_streams: u32,
    pub(super) header_permits: HeaderPermits,
    /// Cancelled when the server shuts down. Connections then finish their requests.
    pub(super) stop: CancellationToken,
}

/// Serves a connection until it ends.
pub(super) async fn serve(shared: Arc<ConnectionContext>, stream: TcpStream, remote: SocketAddr) {
    keep_alive(&stream);
    let deadline = shared.clock.mono() + HEADERS;
    // Boxed, since the future of the handshake is larger than the rest.
    let shaken = Box::pin(shared.clock.timeout_at(deadline, handshake(&shared, stream)));
    let shaken = tokio::select! {
        biased;
        () = shared.stop.cancelled() => return,
        shaken = shaken => shaken,
    };
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return trace!(%remote, %error, "TLS handshake error"),
        Err(_) => return trace!(%remote, "TLS handshake error: timed out"),
    };
    let tls = stream.get_ref().1;
    let chain = tls.peer_certificates().unwrap_or_default().iter().map(|one| one.clone().into_owned()).collect();
    let http2 = tls.alpn_protocol() == Some(b"h2");
    let peer = Peer { chain };
    let activity = Activity::new(&shared.clock, !http2);
    let io = TokioIo::new(TrackedStream::new(stream, activity.clone(), &shared.header_permits));
    let service = {
        let (shared, activity) = (shared.clone(), activity.clone());
        service_fn(move |request: Request<Incoming>| {
            let answering = activity.answer();
            let (shared, activity, peer) = (shared.clone(), activity.clone(), peer.clone());
            async move {
                let version = request.version();
                if header_bytes(&request) > MAX_HEADER_BYTES {
                    activity.end_after_this();
                    return Ok(failure(HEADERS_TOO_LARGE, "431 Request Header Fields Too Large"));
                }
                if let Some(reply) = refuse::at_once(&request) {
                    return Ok(reply);
                }
                // Boxed, so that the future is freed before the response is sent. Sending to a slow client may take long.
                let answered = Box::pin(shared.handler.handle(request, &peer, remote)).await;
                // HTTP/2 is easily abused, so an unauthenticated client gets one request per connection.
                // Follows `apiserver/pkg/endpoints/filters/authentication.go#withAuthentication @v1.36.3`.
                if version == Version::HTTP_2 && answered.is_stranger {
                    activity.end_after_this();
                }
                drop(answering);
                Ok::<_, Infallible>(answered.reply)
            }
        })
    };
    if http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(shared.max_streams)
            .max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_BYTES)
            .initial_connection_window_size(STREAM_BYTES.saturating_mul(shared.max_streams));
        let connection = builder.serve_connection(io, service);
        drive(&shared, &activity, remote, pin!(connection), http2::Connection::graceful_shutdown).await;
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // `Activity` limits the time for headers. Unlike hyper, it distinguishes an idle client from a slow one.
            .header_read_timeout(None)
            .max_buf_size(MAX_HEADER_BYTES)
            .max_headers(MAX_HEADERS);
        let connection = builder.serve_connection(io, service);
        drive(&shared, &activity, remote, pin!(connection), http1::Connection::graceful_shutdown).await;
    }
}

/// Returns the bytes of a request's headers. hyper's own limit is not exact: it may let through more than
/// [`MAX_HEADER_BYTES`].
fn header_bytes(request: &Request<Incoming>) -> usize {
    // In a request's text, each header has `: ` and a line end of two bytes.
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    request.uri().path().len() + request.uri().query().map_or(0, str::len) + headers.sum::<usize>()
}

async fn handshake(shared: &ConnectionContext, mut stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
    let mut first = [0; 5];
    if stream.peek(&mut first).await? == first.len() && looks_like_http(first) {
        stream.write_all(NOT_TLS.as_bytes()).await?;
        stream.shutdown().await?;
        return Err(std::io::Error::other("client sent an HTTP request to an HTTPS server"));
    }
    let local = stream.local_addr()?.ip();
    let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let configs = shared.serving.configs().map_err(std::io::Error::other)?;
    let config = configs.get(local, &start.client_hello());
    start.into_stream(config).await
}

/// Whether the first bytes are plain HTTP. Follows Go's `net/http.tlsRecordHeaderLooksLikeHTTP`.
fn looks_like_http(first: [u8; 5]) -> bool {
    [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"].contains(&&first)
}

/// Runs a connection until it ends, has been idle or slow for too long, or the server shuts down.
async fn drive<C, E>(
    shared: &ConnectionContext,
    activity: &Activity,
    remote: SocketAddr,
    mut connection: Pin<&mut C>,
    graceful: impl Fn(Pin<&mut C>),
) where
    C: Future<Output = Result<(), E>>,
    E: std::error::Error,
{
    let mut stop = pin!(shared.stop.cancelled());
    let mut deadline = activity.deadline();
    let mut sleep = shared.clock.sleep_until(deadline);
    let mut told = false;
    let end = poll_fn(|cx| {
        if !told && (activity.is_ending() || stop.as_mut().poll(cx).is_ready()) {
            told = true;
            activity.end();
            graceful(connection.as_mut());
        }
        if let Poll::Ready(end) = connection.as_mut().poll(cx) {
            return Poll::Ready(Some(end));
        }
        if !told && activity.is_ending() {
            told = true;
            graceful(connection.as_mut());
            if let Poll::Ready(end) = connection.as_mut().poll(cx) {
                return Poll::Ready(Some(end));
            }
        }
        loop {
            let now = activity.deadline();
            if now != deadline {
                deadline = now;
                sleep = shared.clock.sleep_until(deadline);
            }
            if Pin::new(&mut sleep).poll(cx).is_pending() {
                return Poll::Pending;
            }
            if activity.deadline() == deadline {
                return Poll::Ready(None);
            }
        }
    })
    .await;
    match end {
        Some(Ok(())) => {}
        Some(Err(error)) => trace!(%remote, %error, "Connection failed"),
        None => trace!(%remote, "Connection timed out"),
    }
}

const HEADERS_TOO_LARGE: StatusCode = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;

/// Response to a malformed URL. Follows Go's `net/http.conn.serve`.
pub(super) const BAD_REQUEST: (StatusCode, &str) = (StatusCode::BAD_REQUEST, "400 Bad Request");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_known_by_its_first_bytes() {
        let check = |first: &[u8; 5], expected: bool| assert_eq!(looks_like_http(*first), expected);
        check(b"GET /", true);
        check(b"PUT /", true);
        check(b"DELET", false);
        check(&[22, 3, 1, 2, 0], false);
    }
}
