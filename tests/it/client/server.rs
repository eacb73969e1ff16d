//! A server over TLS that remembers who asked it and how, and a proxy before it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Response of an API server to unauthenticated requests.
const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;

/// A request as it came in.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The client's certificate.
    pub(super) certificate: Option<Vec<u8>>,
    pub(super) headers: HeaderMap,
    /// The number of its connection.
    pub(super) connection: usize,
    /// Its own.
    pub(super) number: usize,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text"))
    }
}

/// A server that answers with codes.
pub(super) struct Server {
    pub(super) port: u16,
    /// TLS configuration of new connections.
    pub(super) tls: Arc<Mutex<Arc<ServerConfig>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(super) async fn start(
        tls: Arc<ServerConfig>,
        answer: impl Fn(&Asked) -> u16 + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let server = Self { port, tls: Arc::new(Mutex::new(tls)), asked: Arc::default() };
        let (tls, asked) = (server.tls.clone(), server.asked.clone());
        let (connections, numbers) = (AtomicUsize::new(0), Arc::<AtomicUsize>::default());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = connections.fetch_add(1, Ordering::Relaxed);
                let config = tls.lock().expect("no test panicked under the lock").clone();
                tokio::spawn(serve(stream, config, connection, numbers.clone(), answer.clone(), asked.clone()));
            }
        });
        server
    }

    pub(super) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().expect("no test panicked under the lock"))
    }
}

async fn serve(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    connection: usize,
    numbers: Arc<AtomicUsize>,
    answer: impl Fn(&Asked) -> u16 + Clone + Send + Sync + 'static,
    log: Arc<Mutex<Vec<Asked>>>,
) {
    let Ok(stream) = TlsAcceptor::from(config).accept(stream).await else { return };
    let certificate = stream.get_ref().1.peer_certificates().map(|chain| chain[0].to_vec());
    let service = service_fn(move |request: Request<Incoming>| {
        let headers = request.headers().clone();
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let asked = Asked { certificate: certificate.clone(), headers, connection, number };
        let code = answer(&asked);
        log.lock().expect("no test panicked under the lock").push(asked);
        let body = if code == 401 { UNAUTHORIZED } else { "{}" };
        let mut response = Response::builder().status(code).header("content-type", "application/json");
        if code == 429 || code >= 500 {
            response = response.header("retry-after", "0");
        }
        let response = response.body(Full::new(Bytes::from_static(body.as_bytes()))).expect("a response");
        async move { Ok::<_, Infallible>(response) }
    });
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// A proxy that tunnels to whatever it is asked for, and remembers the heads of the requests.
pub(super) async fn proxy() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let log = heads.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let log = log.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut head).await.is_ok_and(|length| length > 0) {
                        continue;
                    }
                    return;
                }
                let server = head.split(' ').nth(1).unwrap_or_default().to_owned();
                log.lock().expect("no test panicked under the lock").push(head);
                let Ok(mut server) = TcpStream::connect(server).await else { return };
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (address, heads)
}
