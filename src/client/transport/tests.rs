//! Tests against an HTTP/2 server on a loopback socket, through a relay that can go silent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use super::super::error::{ApiError, TransportKind};
use super::super::request::{Call, RestClient};
use super::super::target::Target;
use super::liveness::HANDSHAKE;
use super::*;
use crate::client::testing::certificates::{self, Authority};
use crate::clock::Clock;

const POD: Target<'static> = Target::pod("ns", "p");

/// Short time limits, so that tests do not wait long.
fn impatient() -> Liveness {
    let silence = Some(Duration::from_millis(200));
    Liveness { http2: true, silence, patience: Duration::from_millis(200), handshake: Duration::from_millis(200) }
}

/// A server that answers a request with the major HTTP version, and never answers requests for events.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    /// Notified for each request that is not answered.
    unanswered: Arc<Notify>,
    /// Notified when the client closes a silent connection.
    given_up: Arc<Notify>,
    /// Number of times that all open connections have gone silent.
    silences: watch::Sender<usize>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::<AtomicUsize>::default();
        let (unanswered, given_up) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let silences = watch::Sender::new(0);
        let (heard, count) = (silences.subscribe(), connections.clone());
        let (asked, closed) = (unanswered.clone(), given_up.clone());
        let tls =
            certificates::http_server(&Authority::new().pair("127.0.0.1"), WebPkiClientVerifier::no_client_auth());
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(relay(stream, acceptor.clone(), heard.clone(), asked.clone(), closed.clone()));
            }
        });
        Self { port, connections, unanswered, given_up, silences }
    }

    fn client(&self, liveness: &Liveness) -> RestClient {
        client(self.port, liveness)
    }
}

fn client(port: u16, liveness: &Liveness) -> RestClient {
    let mut access = Access::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    access.tls.insecure = true;
    let server = Transport::with_liveness(access, Clock::real(), liveness.clone()).unwrap();
    RestClient::new(server.client("test", None), None, Clock::real())
}

/// Relays a connection to the server until told to go silent. The connection then stays open, but the server gets nothing.
async fn relay(
    mut client: TcpStream,
    acceptor: TlsAcceptor,
    mut silences: watch::Receiver<usize>,
    unanswered: Arc<Notify>,
    given_up: Arc<Notify>,
) {
    let (mut near, far) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let Ok(stream) = acceptor.accept(far).await else { return };
        let service = service_fn(move |request: http::Request<Incoming>| {
            let unanswered = unanswered.clone();
            async move {
                if request.uri().path().contains("events") {
                    unanswered.notify_one();
                    std::future::pending::<()>().await;
                }
                let version = if request.version() == Version::HTTP_2 { "2" } else { "1" };
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(version))))
            }
        });
        let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
    });
    let born = *silences.borrow_and_update();
    let carried = tokio::io::copy_bidirectional(&mut client, &mut near);
    tokio::select! {
        biased;
        silent = silences.wait_for(|now| *now > born) => drop(silent),
        _ = carried => return,
    }
    // Discards the client's data until the client closes the connection.
    let _ = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
    given_up.notify_one();
}

#[test]
fn limits_are_client_gos_unless_the_environment_has_others() {
    let check = |variables: &[(&str, &str)], http2: bool, silence: Option<u64>, patience: u64| {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let (silence, patience) = (silence.map(Duration::from_secs), Duration::from_secs(patience));
        let expected = Liveness { http2, silence, patience, handshake: HANDSHAKE };
        assert_eq!(Liveness::from_variables(variable), expected, "{variables:?}");
    };
    check(&[], true, Some(30), 15);
    check(&[("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "7"), ("HTTP2_PING_TIMEOUT_SECONDS", "3")], true, Some(7), 3);
    check(&[("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "0"), ("DISABLE_HTTP2", "")], true, None, 15);
    check(&[("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "soon"), ("HTTP2_PING_TIMEOUT_SECONDS", "")], true, Some(30), 15);
    check(&[("DISABLE_HTTP2", "x")], false, Some(30), 15);
}

#[tokio::test]
async fn requests_share_a_connection_of_http_2() {
    let server = Server::start().await;
    let client = server.client(&impatient());
    let asked = futures::future::join_all((0..20).map(|_| client.send(&Call::Get, &POD))).await;
    assert!(asked.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer == "2")), "{asked:?}");
    client.send(&Call::Get, &POD).await.unwrap();
    let opened = server.connections.load(Ordering::SeqCst);
    client.send(&Call::Get, &POD).await.unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), opened, "there was one to use");
}

#[tokio::test]
async fn http_2_can_be_turned_off() {
    let server = Server::start().await;
    let client = server.client(&Liveness { http2: false, ..impatient() });
    assert_eq!(client.send(&Call::Get, &POD).await.unwrap(), "1");
}

#[tokio::test]
async fn a_connection_that_went_silent_is_noticed_and_replaced() {
    let server = Server::start().await;
    let client = server.client(&impatient());
    let events = Target { resource: "events", name: "", ..POD };
    let write = Call::Post(Bytes::from_static(b"{}"));
    let (lost, ()) = tokio::join!(client.send(&write, &events), async {
        server.unanswered.notified().await;
        server.silences.send_modify(|silences| *silences += 1);
    });
    let error = lost.unwrap_err();
    let url = format!("https://127.0.0.1:{}/api/v1/namespaces/ns/events", server.port);
    assert_eq!(error.to_string(), format!("Post \"{url}\": http2: client connection lost"));
    // The error counts as a reset, so a read is retried.
    assert!(matches!(error, ApiError::Transport { kind: TransportKind::Reset, .. }), "{error:?}");
    assert_eq!(client.send(&Call::Get, &POD).await.unwrap(), "2");
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_idle_connection_that_went_silent_loses_no_request() {
    let server = Server::start().await;
    let client = server.client(&impatient());
    client.send(&Call::Get, &POD).await.unwrap();
    server.silences.send_modify(|silences| *silences += 1);
    // A write is not retried, so it must not be sent on the dead connection.
    server.given_up.notified().await;
    assert_eq!(client.send(&Call::Put(Bytes::from_static(b"{}")), &POD).await.unwrap(), "2");
}

#[tokio::test]
async fn a_server_that_never_speaks_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let error = client(port, &impatient()).send(&Call::Get, &POD).await.unwrap_err();
    let url = format!("https://127.0.0.1:{port}/api/v1/namespaces/ns/pods/p");
    assert_eq!(error.to_string(), format!("Get \"{url}\": net/http: TLS handshake timeout"));
}

#[tokio::test]
async fn where_nobody_listens_is_said_as_go_says_it() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = client(port, &impatient()).send(&Call::Put(Bytes::new()), &POD).await.unwrap_err();
    let expected = format!(
        "Put \"https://127.0.0.1:{port}/api/v1/namespaces/ns/pods/p\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(error.to_string(), expected);
    assert!(error.is_connection_refused());
}
