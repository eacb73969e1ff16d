//! Tests of the server on a port, over a bare connection.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::TcpStream;

use super::super::{ApiServer, Listener, Options};
use crate::clock::Clock;

async fn listening() -> (ApiServer, Listener) {
    let server = ApiServer::new(Options::by_clock(&Clock::real()).exact());
    let listener = server.listen("127.0.0.1:0").await.expect("a free port");
    (server, listener)
}

/// Sends a request and reads until the reply contains the expected text.
async fn ask(listener: &Listener, request: &str, expected: &str) -> TcpStream {
    let stream = TcpStream::connect(listener.address()).await.expect("it listens");
    let mut rest = request.as_bytes();
    while !rest.is_empty() {
        stream.writable().await.expect("it reads");
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "it reads"),
        }
    }
    let mut seen = String::new();
    let read = async {
        let mut bytes = [0; 4096];
        while !seen.contains(expected) {
            stream.readable().await.expect("it answers");
            match stream.try_read(&mut bytes) {
                Ok(0) => panic!("{expected:?} never came: {seen}"),
                Ok(count) => seen.push_str(&String::from_utf8_lossy(&bytes[..count])),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "it answers"),
            }
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), read).await.is_ok(), "{expected:?} has not come: {seen}");
    stream
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n")
}

#[tokio::test]
async fn disconnected_client_frees_its_watch() {
    let (server, listener) = listening().await;
    let watches = || server.with(|state| state.watchers.len());
    let stream = ask(&listener, &get("/api/v1/namespaces?watch=true", ""), "kube-system").await;
    assert_eq!(watches(), 1);
    drop(stream);
    let gone = async {
        while watches() > 0 {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), gone).await.is_ok(), "the watch is still there");
    listener.stop().await;
    assert_eq!(server.pending(), 0);
}

#[tokio::test]
async fn watch_times_out_in_real_time() {
    let (server, listener) = listening().await;
    let path = "/api/v1/pods?watch=true&timeoutSeconds=1";
    // The last chunk of a stream that ends cleanly.
    drop(ask(&listener, &get(path, ""), "0\r\n\r\n").await);
    assert_eq!(server.next_deadline(), None, "the watch has ended");
}

#[tokio::test]
async fn response_format_follows_the_accept_header() {
    let (_server, listener) = listening().await;
    let check = async |path: &str, accept: &str, expected: &str| {
        drop(ask(&listener, &get(path, &format!("Accept: {accept}\r\n")), expected).await);
    };
    check("/api/v1/namespaces/default", "application/yaml", "kind: Namespace").await;
    check("/api/v1/namespaces", "application/vnd.kubernetes.protobuf, */*", r#""kind":"NamespaceList""#).await;
    check("/api/v1/namespaces", "application/json;as=Table;v=v1;g=meta.k8s.io", r#""kind":"Table""#).await;
    check("/api/v1/namespaces", "application/vnd.kubernetes.protobuf", "406 Not Acceptable").await;
    check("/api", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "APIGroupDiscoveryList")
        .await;
}

#[tokio::test]
async fn too_large_body_is_rejected() {
    let (_server, listener) = listening().await;
    let body = "x".repeat(4 << 20);
    let head = "POST /api/v1/namespaces HTTP/1.1\r\nHost: test\r\nContent-Length: 4194304\r\n\r\n";
    // The server does not read bytes over the limit, so the request ends one byte past it.
    let request = format!("{head}{}", &body[..=3 << 20]);
    drop(ask(&listener, &request, "limit is 3145728").await);
}

#[tokio::test]
async fn stopped_listener_frees_its_port() {
    let (server, listener) = listening().await;
    let address = listener.address();
    listener.stop().await;
    let again = server.listen(address).await.expect("the port is free");
    drop(ask(&again, &get("/healthz", ""), "ok").await);
}
