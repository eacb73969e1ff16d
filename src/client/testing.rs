//! A fake API server that records requests and answers from a script, so that tests need no network.

#[expect(dead_code, reason = "shared with the integration tests, which use more of it")]
#[path = "../../tests/it/certificates.rs"]
pub(crate) mod certificates;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode, header};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::oneshot;
use tower::BoxError;

use super::request::RestClient;
use crate::clock::SimClock;

/// One request as the fake server received it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) content_type: String,
    /// The JSON body; null if empty.
    pub(crate) body: Value,
}

/// The scripted answer to the next request.
pub(crate) enum Answer {
    /// Responds with a status code, a `Retry-After` header and a body.
    Reply(u16, Option<&'static str>, String),
    /// Fails with an error of the connection.
    Broken(io::ErrorKind),
    /// Responds with 200 once the sender sends; fails if the sender is dropped.
    Held(oneshot::Receiver<()>),
}

#[derive(Default)]
struct Inner {
    requests: Vec<Recorded>,
    script: VecDeque<Answer>,
}

/// A handle to the fake server. Requests beyond the script get 200 and an empty object.
#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<Inner>>);

impl Answer {
    /// A Status object with this code and this reason.
    pub(crate) fn status(code: u16, reason: &str) -> Self {
        let body = format!(
            r#"{{"kind":"Status","status":"Failure","message":"{reason} it is","reason":"{reason}","code":{code}}}"#
        );
        Self::Reply(code, None, body)
    }

    /// A plain text response with this `Retry-After` header.
    pub(crate) fn retry_after(code: u16, seconds: &'static str) -> Self {
        Self::Reply(code, Some(seconds), "busy".to_owned())
    }

    /// An answer that is held back until the returned sender sends.
    pub(crate) fn held() -> (Self, oneshot::Sender<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self::Held(receiver), sender)
    }
}

impl FakeApi {
    pub(crate) fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.0.lock().unwrap().script.extend(answers);
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.0.lock().unwrap().requests.clone()
    }

    /// Returns `METHOD path` of each request.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
    }

    pub(crate) fn client(&self) -> kube::Client {
        let inner = Arc::clone(&self.0);
        kube::Client::new(tower::service_fn(move |request| answer(Arc::clone(&inner), request)), "default")
    }

    /// A client without a rate limit, on a simulated clock.
    pub(crate) fn rest(&self, sim: &SimClock) -> RestClient {
        RestClient::new(self.client(), None, sim.clock())
    }
}

/// A simulated clock at a fixed start time.
pub(crate) fn sim_clock() -> SimClock {
    let wall: Timestamp = "2026-02-03T04:05:06.789012Z".parse().unwrap();
    SimClock::new(wall)
}

/// Yields 100 times, so that the other tasks of a single-threaded runtime run until all of them wait.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

async fn answer(inner: Arc<Mutex<Inner>>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let content_type = parts.headers.get(header::CONTENT_TYPE).map_or("", |value| value.to_str().unwrap());
    let recorded = Recorded {
        method: parts.method.to_string(),
        path: parts.uri.to_string(),
        content_type: content_type.to_owned(),
        body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? },
    };
    let answer = {
        let mut inner = inner.lock().unwrap();
        inner.requests.push(recorded);
        inner.script.pop_front()
    };
    let (code, retry_after, body) = match answer {
        None => (200, None, "{}".to_owned()),
        Some(Answer::Reply(code, retry_after, body)) => (code, retry_after, body),
        Some(Answer::Broken(kind)) => return Err(io::Error::new(kind, "it broke").into()),
        Some(Answer::Held(word)) => {
            word.await?;
            (200, None, "{}".to_owned())
        }
    };
    let mut response = Response::builder().status(StatusCode::from_u16(code)?);
    if body.starts_with('{') {
        response = response.header(header::CONTENT_TYPE, "application/json");
    }
    if let Some(seconds) = retry_after {
        response = response.header(header::RETRY_AFTER, seconds);
    }
    Ok(response.body(Body::from(body.into_bytes()))?)
}
