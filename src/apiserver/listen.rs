//! The server on a port: the same service over HTTP/1.1, for kubectl, another scheduler, or any other client.
//!
//! One task accepts connections and owns them. The same task calls [`ApiServer::tick`], so the caller does not have to. Dropping
//! the [`Listener`] ends the task and closes all connections.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::{JoinHandle, JoinSet};

use super::ApiServer;
use super::body::ReplyBody;
use crate::apimachinery::Status;
use crate::clock::Clock;

/// Interval between calls of [`ApiServer::tick`]. Bookmarks and the ends of watches are late by at most this time.
const TICK: Duration = Duration::from_millis(200);

/// Pause after a failed accept, for example when the process is out of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Largest request body in bytes.
/// `apiserver/pkg/server/config.go#NewConfig @v1.36.3`.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// A server that listens on a port. Dropping it closes the connections and frees the port.
///
/// ```no_run
/// # use kube_scheduler::apiserver::{ApiServer, Options};
/// # use kube_scheduler::clock::Clock;
/// # async fn example() -> std::io::Result<()> {
/// let server = ApiServer::new(Options::by_clock(&Clock::real()).exact());
/// let listener = server.listen("127.0.0.1:0").await?;
/// println!("kubectl --server {} get pods", listener.url());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the server stops listening once this is dropped"]
pub struct Listener {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl ApiServer {
    /// Listens on `address` in plain HTTP/1.1. There is no authentication, and everybody who can reach the address has full
    /// access, so it should be a loopback address. Port 0 takes a free port. Must be called inside a tokio runtime, which then
    /// runs the requests. The listener calls `tick` itself, so the server's clock should be a real one.
    ///
    /// kubectl takes the [`url`](Listener::url) as `--server` or as `server` of a kubeconfig. It sees the same replies as from a
    /// real server if this server is [`exact`](super::Options::exact). Request bodies may be protobuf. Objects in replies are
    /// JSON or YAML, so a client has to accept one of them.
    pub async fn listen(&self, address: impl ToSocketAddrs) -> io::Result<Listener> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(serve(self.clone(), listener));
        Ok(Listener { address, task })
    }
}

impl Listener {
    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as clients name it: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the listener ends by itself, which only a bug can cause.
    pub async fn ended(&mut self) -> Ended {
        Ended((&mut self.task).await.err().map(|error| error.to_string()))
    }

    /// Stops listening, and waits until the port is free and all connections are closed.
    pub async fn stop(mut self) {
        self.task.abort();
        // The task ends as aborted. If it panicked before, its thread has reported the panic.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reason why a listener has ended by itself.
#[derive(Debug)]
pub struct Ended(Option<String>);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the API server has stopped listening")?;
        self.0.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

impl std::error::Error for Ended {}

/// Accepts connections and calls `tick` regularly.
async fn serve(server: ApiServer, listener: TcpListener) {
    let clock = Clock::real();
    let mut connections = JoinSet::new();
    let mut tick = clock.sleep(TICK);
    loop {
        tokio::select! {
            biased;
            () = &mut tick => {
                server.tick();
                tick = clock.sleep(TICK);
            }
            Some(ended) = connections.join_next() => report(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(server.clone(), stream))),
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    clock.sleep(PAUSE).await;
                }
            },
        }
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "connection task of the API server failed");
    }
}

/// Serves one connection until it ends.
async fn connection(server: ApiServer, stream: TcpStream) {
    // The lines of a watch are small and must not wait for each other.
    let undelayed = stream.set_nodelay(true);
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), Requests(server)).await;
    if let Err(error) = undelayed.map_err(|error| error.to_string()).and(served.map_err(|error| error.to_string())) {
        tracing::debug!(error, "connection of a client failed");
    }
}

/// Service that answers the requests of one connection.
struct Requests(ApiServer);

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<ReplyBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<ReplyBody>>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        Box::pin(answer(self.0.clone(), request))
    }
}

/// Reads the whole request and passes it to the service.
async fn answer(mut server: ApiServer, request: Request<Incoming>) -> io::Result<Response<ReplyBody>> {
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Ok(server.refuse(&Status::too_large_body(BODY_LIMIT)));
        }
        Err(error) => return Err(io::Error::other(error)),
    };
    tower::Service::call(&mut server, Request::from_parts(parts, body_of(body))).await
}

fn body_of(bytes: Bytes) -> Body {
    if bytes.is_empty() { Body::empty() } else { Body::from(bytes) }
}
