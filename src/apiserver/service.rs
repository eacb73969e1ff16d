//! The server as a `tower` service, which needs no socket.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;

use super::ApiServer;
use super::body::{OpenRequest, ReplyBody};
use super::call::{Outcome, route};
use super::faults::Fault;
use super::reply::{Reply, watch_response};
use super::store::State;
use super::watcher::End;
use crate::apimachinery::Status;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Longest time for which a list or a watch waits for a version that the server has not reached.
/// `apiserver/pkg/storage/cacher/watch_cache.go#blockTimeout @v1.36.3`.
const BLOCK_TIMEOUT: SignedDuration = SignedDuration::from_secs(3);

impl tower::Service<Request<Body>> for ApiServer {
    type Response = Response<ReplyBody>;
    type Error = io::Error;
    type Future = Boxed<io::Result<Response<ReplyBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let server = self.clone();
        let open = OpenRequest::new(&server);
        Box::pin(async move { server.serve(request, open).await })
    }
}

impl ApiServer {
    /// Returns an error reply to a request whose body is not read.
    pub(super) fn refuse(&self, status: &Status) -> Response<ReplyBody> {
        Reply::failure(status).response(OpenRequest::new(self))
    }

    async fn serve(self, request: Request<Body>, open: OpenRequest) -> io::Result<Response<ReplyBody>> {
        let (parts, body) = request.into_parts();
        let fault = self.hook().decide(&parts);
        match &fault {
            Some(Fault::Status(code, retry_after)) => {
                return Ok(Reply::failure(&Status::injected(*code, *retry_after)).response(open));
            }
            Some(Fault::Reply(status)) => return Ok(Reply::failure(status).response(open)),
            Some(Fault::DropConnectionBeforeReply) => return Err(broken()),
            Some(Fault::Delay(gate)) => {
                self.with(|state| state.hold(None));
                let _held = HeldRequest(&self, None);
                gate.passed().await;
            }
            Some(Fault::DropWatch | Fault::DropConnectionAfterCommit) | None => {}
        }
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        let outcome = self.handle(&parts, &body).await;
        if matches!(fault, Some(Fault::DropConnectionAfterCommit)) {
            if let Outcome::Watch(id) = outcome {
                self.with(|state| state.close_watch(id));
            }
            return Err(broken());
        }
        Ok(match outcome {
            Outcome::Reply(reply) => reply.response(open),
            Outcome::Watch(id) => {
                if matches!(fault, Some(Fault::DropWatch)) {
                    self.with(|state| state.end_watch(id, End::Broken));
                }
                watch_response(ReplyBody::watch(self, id))
            }
            Outcome::Await(version) => Reply::failure(&self.with(|state| too_large(version, state))).response(open),
        })
    }

    /// Handles one request of a client. If the request has to wait for a version, handles it again after each change until the
    /// timeout.
    async fn handle(&self, parts: &Parts, body: &Bytes) -> Outcome {
        let mut progress = self.progress();
        let mut deadline = None;
        loop {
            progress.mark_unchanged();
            // The request is counted as held in the same transaction, so that every later write signals it.
            let (outcome, until) = self.with(|state| {
                let outcome = route(state, parts, body);
                let until = *deadline.get_or_insert(state.now + BLOCK_TIMEOUT);
                let waits = matches!(outcome, Outcome::Await(_)) && state.now < until;
                if waits {
                    state.hold(Some(until));
                }
                (outcome, waits.then_some(until))
            });
            if until.is_none() {
                return outcome;
            }
            let _held = HeldRequest(self, until);
            if progress.changed().await.is_err() {
                return outcome;
            }
        }
    }
}

impl State {
    /// Counts a request as held, because the server cannot finish it by itself before `deadline`.
    fn hold(&mut self, deadline: Option<Timestamp>) {
        self.held += 1;
        self.deadlines.extend(deadline);
    }

    fn release(&mut self, deadline: Option<Timestamp>) {
        self.held -= 1;
        if let Some(at) = self.deadlines.iter().position(|held| Some(*held) == deadline) {
            self.deadlines.swap_remove(at);
        }
    }
}

/// Guard of a held request. Releases the request when dropped, also if the client has disconnected.
struct HeldRequest<'a>(&'a ApiServer, Option<Timestamp>);

impl Drop for HeldRequest<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.release(self.1));
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

/// Returns the error for a version that the server has not reached in time.
/// Follows `apiserver/pkg/storage/errors.go#NewTooLargeResourceVersionError @v1.36.3`.
fn too_large(version: u64, state: &State) -> Status {
    let text = format!("Too large resource version: {version}, current: {}", state.version);
    Status::timeout(format!("Timeout: {text}"))
        .cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after(1)
}
