//! Clients that mean no good, and the end of the server.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_scheduler::serve::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::reviewer::{Known, Reviewer};
use super::{Running, options};

/// Reads until the server has ended the connection.
async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut text = Vec::new();
    // A connection that is cut off ends with an error, and that is an end too.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn slow_headers_close_the_connection() {
    let running = Running::start(options(), None).await;
    let (mut stream, _) = running.client.speaking(&["http/1.1"]).connect().await.expect("a connection");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").await.expect("sent");
    let reading = tokio::spawn(async move { rest(&mut stream).await });
    let began = running.clock.now().mono;
    running.until("the end", async || reading.is_finished()).await;
    assert_eq!(reading.await.expect("an end"), "");
    assert!(running.clock.now().mono.since(began) >= Duration::from_secs(32));
    assert_eq!(running.status("/healthz", None).await, 200);
}

#[tokio::test]
async fn slow_tls_handshake_closes_the_connection() {
    let running = Running::start(options(), None).await;
    let mut stream = tokio::net::TcpStream::connect(running.client.address).await.expect("it listens");
    stream.write_all(&[22, 3, 1, 2, 0, 1]).await.expect("sent");
    let reading = tokio::spawn(async move { rest(&mut stream).await });
    running.until("the end", async || reading.is_finished()).await;
}

#[tokio::test]
async fn idle_connection_is_closed_after_its_timeout() {
    let running = Running::start(options(), None).await;
    let (mut stream, _) = running.client.speaking(&["http/1.1"]).connect().await.expect("a connection");
    let mut ask = async || {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        let mut answer = vec![0; 1024];
        let length = stream.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    assert!(ask().await.starts_with("HTTP/1.1 200 OK\r\n"));
    // Longer than headers may take.
    running.clock.advance(Duration::from_secs(89));
    tokio::task::yield_now().await;
    assert!(ask().await.ends_with("\r\n\r\nok"));
    let reading = tokio::spawn(async move { rest(&mut stream).await });
    running.until("the end", async || reading.is_finished()).await;
}

#[tokio::test]
async fn too_large_headers_are_rejected() {
    let running = Running::start(options(), None).await;
    let value = "x".repeat(4096);
    let check = async |count: usize, protocol: &'static str, served: bool| {
        let names: Vec<String> = (0..count).map(|at| format!("x-{at}")).collect();
        let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        let got = running.client.speaking(&[protocol]).ask("GET", "/healthz", &headers, "").await;
        let status = got.map(|got| got.status);
        // A connection may also be cut off while the client still sends.
        assert_eq!(status == Ok(200), served, "{count} headers over {protocol}: {status:?}");
        assert!(served || matches!(status, Err(_) | Ok(431)), "{count} headers over {protocol}: {status:?}");
    };
    check(200, "http/1.1", true).await;
    check(300, "http/1.1", false).await;
    check(200, "h2", true).await;
    check(300, "h2", false).await;
    assert_eq!(running.status("/healthz", None).await, 200);
}

#[tokio::test]
async fn concurrent_large_headers_are_limited() {
    let running = Running::start(options(), None).await;
    let mut hoarders = Vec::new();
    let line = format!("X-Long: {}\r\n", "x".repeat(1024));
    // As long as they may be without being too long, and never whole.
    for _ in 0..20 {
        let (mut stream, _) = running.client.speaking(&["http/1.1"]).connect().await.expect("a connection");
        let line = line.clone();
        hoarders.push(tokio::spawn(async move {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n").await.expect("sent");
            for _ in 0..900 {
                if stream.write_all(line.as_bytes()).await.is_err() {
                    break;
                }
            }
            rest(&mut stream).await
        }));
    }
    // Nobody else waits for them.
    assert_eq!(running.status("/healthz", None).await, 200);
    let ended = async || hoarders.iter().all(tokio::task::JoinHandle::is_finished);
    running.until("the end of those who hoard", ended).await;
    for hoarder in hoarders {
        assert_eq!(hoarder.await.expect("an end"), "");
    }
    // And there is room again.
    let value = "x".repeat(4096);
    let names: Vec<String> = (0..200).map(|at| format!("x-{at}")).collect();
    let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
    let got = running.client.speaking(&["http/1.1"]).ask("GET", "/healthz", &headers, "").await;
    assert_eq!(got.map(|got| got.status), Ok(200));
}

/// Who is known may have as many streams as there are; more wait. Who is not gets one request a connection.
#[tokio::test]
async fn anonymous_clients_get_one_request_per_connection() {
    let known = Known { tokens: vec![("a", "alice", vec!["system:masters"])], ..Known::default() };
    let reviewer = Reviewer::new(known);
    let running = Running::start(Options { http2_max_streams: 3, ..options() }, Some(&reviewer)).await;
    let served = async |token: Option<&str>, asked: usize| {
        let (stream, _) = running.client.speaking(&["h2"]).connect().await.expect("a connection");
        let io = TokioIo::new(stream);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.expect("a handshake");
        let connection = tokio::spawn(connection);
        let mut count = 0;
        for _ in 0..asked {
            let mut request = Request::get("https://x/healthz");
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let request = request.body(Full::<Bytes>::default()).expect("a request");
            if sender.ready().await.is_err() || sender.send_request(request).await.is_err() {
                break;
            }
            count += 1;
            // A stranger's connection ends by itself.
            if token.is_none() {
                running.until("the end", async || connection.is_finished()).await;
            }
        }
        count
    };
    assert_eq!(served(Some("a"), 10).await, 10);
    assert_eq!(served(None, 10).await, 1);
    assert_eq!(served(Some("unknown"), 10).await, 1);
}

#[tokio::test]
async fn shutdown_refuses_connections_and_finishes_requests() {
    let mut running = Running::start(options(), None).await;
    let (mut waiting, _) = running.client.speaking(&["http/1.1"]).connect().await.expect("a connection");
    waiting.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
    let mut answer = vec![0; 1024];
    let length = waiting.read(&mut answer).await.expect("an answer");
    assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK\r\n"));
    let (mut stuck, _) = running.client.speaking(&["http/1.1"]).connect().await.expect("a connection");
    stuck.write_all(b"GET /healthz HTTP/1.1\r\nHost:").await.expect("sent");
    running.stop();
    assert_eq!(rest(&mut waiting).await, "", "who waits for nothing is sent away at once");
    running.until("the end", async || running.task.is_finished()).await;
    assert_eq!(rest(&mut stuck).await, "");
    tokio::net::TcpStream::connect(running.client.address).await.expect_err("nobody listens any more");
}
