//! Tests of the server as its clients see it: through a real `kube::Client`, a real watcher, and bytes.

mod eviction;
mod faults;
mod gates;
mod list;
mod listen;
mod pods;
mod random;
mod rules;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::{ApiServer, Options, ReplyBody};

/// A server and the clock that it reads.
struct World {
    server: ApiServer,
    seconds: Arc<AtomicI64>,
}

/// Time of the start, 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let seconds = Arc::new(AtomicI64::new(START));
        let clock = seconds.clone();
        let mut options = Options::new(move || Timestamp::from_second(clock.load(Ordering::Relaxed)).unwrap());
        change(&mut options);
        Self { server: ApiServer::new(options), seconds }
    }

    fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
        self.server.tick();
    }

    /// Sends a request, and returns the reply with its body still open.
    async fn open(&self, method: Method, path: &str, media_type: &str, body: &str) -> http::Response<ReplyBody> {
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        self.server.service().oneshot(request).await.unwrap()
    }

    async fn call(&self, method: Method, path: &str, media_type: &str, body: &str) -> (StatusCode, Value) {
        let response = self.open(method, path, media_type, body).await;
        let code = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        (code, value)
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.call(Method::GET, path, "", "").await
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.call(Method::POST, path, "application/json", &body.to_string()).await
    }

    async fn put(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.call(Method::PUT, path, "application/json", &body.to_string()).await
    }

    async fn patch(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.call(Method::PATCH, path, "application/strategic-merge-patch+json", &body.to_string()).await
    }

    async fn remove(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.call(Method::DELETE, path, "application/json", &text).await
    }

    fn create(&self, value: Value) -> Value {
        self.server.create(value).unwrap().value()
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
}

fn binding(pod: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, "namespace": "default"},
        "target": {"kind": "Node", "name": node}})
}

/// Returns `value` with `changes` merged into it.
fn with(mut value: Value, changes: Value) -> Value {
    fn lay(target: &mut Value, changes: Value) {
        match changes {
            Value::Object(changes) if target.is_object() => {
                for (key, change) in changes {
                    lay(&mut target[key.as_str()], change);
                }
            }
            other => *target = other,
        }
    }
    lay(&mut value, changes);
    value
}
