//! An API server that knows tokens, rights and one `ConfigMap`, and answers as a test wants.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// State of the server.
#[derive(Default)]
pub(crate) struct Known {
    /// Users by token, with their groups.
    pub(crate) tokens: Vec<(&'static str, &'static str, Vec<&'static str>)>,
    /// Users that may do everything.
    pub(crate) allowed: Vec<&'static str>,
    /// Why others may not.
    pub(crate) reason: &'static str,
    /// Response that replaces the normal one, if set.
    pub(crate) failure: Option<u16>,
    /// All that it was asked: what for, and the object.
    pub(crate) asked: Vec<(String, Value)>,
}

/// The server.
#[derive(Clone)]
pub(crate) struct Reviewer {
    known: Arc<Mutex<Known>>,
    /// The `ConfigMap`'s data.
    map: Arc<watch::Sender<Option<Value>>>,
}

impl Reviewer {
    pub(crate) fn new(known: Known) -> Self {
        Self { known: Arc::new(Mutex::new(known)), map: Arc::new(watch::Sender::new(None)) }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panicked")
    }

    /// Sets the `ConfigMap`'s data.
    pub(crate) fn set_map(&self, data: Value) {
        self.map.send_replace(Some(data));
    }

    /// Number of requests whose path ends with this text.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.known().asked.iter().filter(|(path, _)| path.ends_with(what)).count()
    }

    pub(crate) fn client(&self) -> kube::Client {
        let reviewer = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let reviewer = reviewer.clone();
            async move { Ok::<_, Infallible>(reviewer.answer(request).await) }
        });
        kube::Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        let object: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (path, query) = (parts.uri.path().to_owned(), parts.uri.query().unwrap_or_default().to_owned());
        self.known().asked.push((path.clone(), object.clone()));
        if let Some(code) = self.known().failure {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "message": "it is ill", "reason": if code == 500 { "InternalError" } else { "Forbidden" }});
            return reply(code, &status);
        }
        match path.rsplit('/').next() {
            Some("tokenreviews") => reply(201, &self.token(object)),
            Some("subjectaccessreviews") => reply(201, &self.access(object)),
            Some("configmaps") if query.contains("watch=") => self.watch(),
            Some("configmaps") => {
                let items: Vec<Value> = self.object().into_iter().collect();
                reply(
                    200,
                    &json!({"kind": "ConfigMapList", "apiVersion": "v1",
                    "metadata": {"resourceVersion": "1"}, "items": items}),
                )
            }
            _ => match self.object() {
                Some(map) => reply(200, &map),
                None => reply(404, &json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"})),
            },
        }
    }

    fn token(&self, mut review: Value) -> Value {
        let known = self.known();
        let user = known.tokens.iter().find(|(token, ..)| review["spec"]["token"] == *token);
        review["status"] = match user {
            Some((_, name, groups)) => json!({"authenticated": true, "user": {"username": name, "groups": groups}}),
            None => json!({"authenticated": false}),
        };
        review
    }

    fn access(&self, mut review: Value) -> Value {
        let known = self.known();
        let allowed = known.allowed.iter().any(|user| review["spec"]["user"] == *user);
        review["status"] = json!({"allowed": allowed, "reason": known.reason});
        review
    }

    fn object(&self) -> Option<Value> {
        let data = self.map.borrow().clone()?;
        Some(json!({"kind": "ConfigMap", "apiVersion": "v1", "data": data,
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system", "resourceVersion": "2"}}))
    }

    /// What the map becomes, for ever.
    fn watch(&self) -> Response<Answer> {
        let reviewer = self.clone();
        let changes = futures::stream::unfold(self.map.subscribe(), move |mut map| {
            let reviewer = reviewer.clone();
            async move {
                map.changed().await.ok()?;
                let event = json!({"type": "MODIFIED", "object": reviewer.object()});
                Some((Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{event}\n")))), map))
            }
        });
        Response::new(StreamBody::new(changes).boxed_unsync())
    }
}

fn reply(code: u16, object: &Value) -> Response<Answer> {
    let mut response = Response::new(Full::new(Bytes::from(object.to_string())).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).expect("a code");
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
