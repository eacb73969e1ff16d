//! The server as a `tower` service: requests in, replies out, nothing in between that a socket would need.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde_json::{Value, json};

use super::body::{Open, ReplyBody};
use super::create::Origin;
use super::decode::{FieldValidation, Oddities};
use super::delete::DeleteOptions;
use super::faults::Fault;
use super::field_error::FieldError;
use super::kinds::{Kind, NAMESPACES, PODS};
use super::list::ListOptions;
use super::object::Object;
use super::patch::Patch;
use super::route::{Query, Target};
use super::selectors::Selection;
use super::status::Status;
use super::store::State;
use super::update::Part;
use super::watch::{End, WatchOptions};
use super::{ApiServer, decode, discovery, events, list, meta};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A finished reply.
struct Reply {
    code: StatusCode,
    content_type: &'static str,
    retry_after: Option<u32>,
    warnings: Vec<String>,
    frames: VecDeque<Bytes>,
}

/// What handling a request comes to.
enum Outcome {
    Reply(Reply),
    Watch(u64),
    /// The server has not reached this version yet.
    Await(u64),
}

/// How long a list waits for a version that the server has not reached.
/// `apiserver/pkg/storage/cacher/watch_cache.go: blockTimeout @v1.36.3`.
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
        let open = Open::new(&server);
        Box::pin(async move { server.serve(request, open).await })
    }
}

impl ApiServer {
    async fn serve(self, request: Request<Body>, open: Open) -> io::Result<Response<ReplyBody>> {
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
                let _held = Held(&self, None);
                gate.passed().await;
            }
            Some(Fault::DropWatch | Fault::DropConnectionAfterCommit) | None => {}
        }
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        let outcome = self.handle(&parts, &body).await;
        if matches!(fault, Some(Fault::DropConnectionAfterCommit)) {
            if let Ok(Outcome::Watch(id)) = outcome {
                self.with(|state| state.close_watch(id));
            }
            return Err(broken());
        }
        Ok(match outcome {
            Ok(Outcome::Reply(reply)) => reply.response(open),
            Ok(Outcome::Watch(id)) => {
                if matches!(fault, Some(Fault::DropWatch)) {
                    self.with(|state| state.end_watch(id, End::Broken));
                }
                watch_response(ReplyBody::watch(self, id))
            }
            Ok(Outcome::Await(version)) => Reply::failure(&self.with(|state| too_large(version, state))).response(open),
            Err(status) => Reply::failure(&status).response(open),
        })
    }

    /// Handles a request, again whenever it had to wait and the server has moved on.
    async fn handle(&self, parts: &Parts, body: &Bytes) -> Result<Outcome, Status> {
        let mut progress = self.progress();
        let mut deadline = None;
        loop {
            progress.mark_unchanged();
            // Held in the same transaction, so that no write after it goes unsignalled.
            let (outcome, until) = self.with(|state| {
                let outcome = route(state, parts, body);
                let until = *deadline.get_or_insert(state.now + BLOCK_TIMEOUT);
                let waits = matches!(outcome, Ok(Outcome::Await(_))) && state.now < until;
                if waits {
                    state.hold(Some(until));
                }
                (outcome, waits.then_some(until))
            });
            if until.is_none() {
                return outcome;
            }
            let _held = Held(self, until);
            if progress.changed().await.is_err() {
                return outcome;
            }
        }
    }
}

impl State {
    /// Takes a request out of those that the server can finish by itself, until `deadline` if it has one.
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

/// Releases a held request, also one whose client has gone away.
struct Held<'a>(&'a ApiServer, Option<Timestamp>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.release(self.1));
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

/// Follows `apiserver/pkg/storage/errors.go#NewTooLargeResourceVersionError @v1.36.3`.
fn too_large(version: u64, state: &State) -> Status {
    let text = format!("Too large resource version: {version}, current: {}", state.version);
    Status::timeout(format!("Timeout: {text}"))
        .cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after(1)
}

/// The one place where requests meet the store.
fn route(state: &mut State, parts: &Parts, body: &[u8]) -> Result<Outcome, Status> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let validation = match query.text("fieldValidation") {
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        _ => FieldValidation::Warn,
    };
    state.oddities = Oddities { is_request: true, validation, ..Oddities::default() };
    let outcome = to_target(state, parts, &query, body);
    let mut outcome = outcome.or_else(|status| Ok(Outcome::Reply(Reply::failure(&status))));
    // Nothing is odd about what the server itself writes.
    let oddities = std::mem::take(&mut state.oddities);
    if let Ok(Outcome::Reply(reply)) = &mut outcome {
        reply.warnings = oddities.warnings;
    }
    outcome
}

fn to_target(state: &mut State, parts: &Parts, query: &Query, body: &[u8]) -> Result<Outcome, Status> {
    let request = Call { method: &parts.method, query, content_type: media_type(parts), body };
    match Target::parse(parts.uri.path()) {
        Target::Collection { kind, namespace } => request.on_collection(state, kind, &namespace),
        Target::Object { kind, namespace, name, subresource } => {
            let at = (&*namespace, &*name);
            match (&*subresource, kind) {
                ("", _) => request.on_object(state, kind, at, Part::Main),
                ("status", kind) if kind.has_status => request.on_object(state, kind, at, Part::Status),
                ("binding", kind) if kind.slot == PODS.slot && *request.method == Method::POST => {
                    request.bind(state, &namespace, Some(&name))
                }
                ("binding", kind) if kind.slot == PODS.slot => Err(Status::method_not_allowed()),
                ("finalize", kind) => request.finalize(state, kind, &name),
                _ => Err(Status::no_such_resource()),
            }
        }
        Target::Bindings { namespace } if *request.method == Method::POST => request.bind(state, &namespace, None),
        Target::Bindings { .. } => Err(Status::method_not_allowed()),
        Target::Discovery(path) => Ok(Outcome::Reply(
            discovery::document(&path).map_or_else(Reply::not_found_page, |value| Reply::json(200, &value)),
        )),
        Target::Page(page) => Ok(Outcome::Reply(Reply::page(&page))),
        Target::UnknownResource => Err(Status::no_such_resource()),
        Target::Unknown => Ok(Outcome::Reply(Reply::not_found_page())),
    }
}

fn media_type(parts: &Parts) -> &str {
    let value = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// A request that has found its target.
struct Call<'a> {
    method: &'a Method,
    query: &'a Query,
    content_type: &'a str,
    body: &'a [u8],
}

impl Call<'_> {
    fn dry_run(&self) -> bool {
        self.query.text("dryRun") == "All"
    }

    fn object(&self, state: &mut State, kind_name: &str) -> Result<Value, Status> {
        decode::body(kind_name, self.content_type, self.body, &mut state.oddities)
    }

    /// Checks the parameters that all writes have; `options` is what messages call them.
    /// Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateCreateOptions @v1.36.3`.
    fn check_options(&self, options: &str) -> Result<(), Status> {
        let mut errors = Vec::new();
        let (run, validation) = (self.query.text("dryRun"), self.query.text("fieldValidation"));
        if !matches!(run, "" | "All") {
            errors.push(FieldError::not_supported("dryRun", &json!([run]), &["All"]));
        }
        let known = ["", "Ignore", "Strict", "Warn"];
        if !known.contains(&validation) {
            errors.push(FieldError::not_supported("fieldValidation", &json!(validation), &known));
        }
        if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", options, "", &errors)) }
    }

    /// The options of a delete: the body's, or without one the query's.
    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        if !self.body.is_empty() {
            return DeleteOptions::parse(&decode::delete_options(self.content_type, self.body)?);
        }
        let mut value = json!({});
        if let Some(seconds) = self.query.number("gracePeriodSeconds")? {
            value["gracePeriodSeconds"] = json!(seconds);
        }
        if let Some(policy) = self.query.get("propagationPolicy") {
            value["propagationPolicy"] = json!(policy);
        }
        if self.query.get("orphanDependents").is_some() {
            value["orphanDependents"] = json!(self.query.flag("orphanDependents"));
        }
        if let Some(run) = self.query.get("dryRun").filter(|run| !run.is_empty()) {
            value["dryRun"] = json!([run]);
        }
        DeleteOptions::parse(&value)
    }

    fn selection(&self, kind: &Kind, namespace: &str) -> Result<Selection, Status> {
        Selection::parse(kind, namespace, self.query.text("labelSelector"), self.query.text("fieldSelector"))
    }

    fn on_collection(&self, state: &mut State, kind: &'static Kind, namespace: &str) -> Result<Outcome, Status> {
        match *self.method {
            Method::GET if self.query.flag("watch") => {
                let selection = self.selection(kind, namespace)?;
                self.watch(state, kind, selection)
            }
            Method::GET => {
                let selection = self.selection(kind, namespace)?;
                let options = ListOptions::parse(self.query)?;
                if let Some(version) = options.awaited(state.version) {
                    return Ok(Outcome::Await(version));
                }
                let page = state.list(kind, &selection, &options)?;
                Ok(Outcome::Reply(Reply::frames(200, page.frames(kind))))
            }
            Method::POST | Method::DELETE if kind.namespaced && namespace.is_empty() => {
                Err(Status::method_not_allowed())
            }
            Method::POST => {
                self.check_options("CreateOptions")?;
                let value = self.object(state, kind.kind)?;
                let object = state.create(kind, namespace, value, Origin::Client, self.dry_run())?;
                Ok(Outcome::Reply(Reply::object(201, kind, &object)))
            }
            Method::DELETE if kind.slot == NAMESPACES.slot => Err(Status::method_not_allowed()),
            Method::DELETE => {
                let selection = self.selection(kind, namespace)?;
                let options = self.delete_options()?;
                // The answer is the list that the deletes went by.
                let metadata = json!({"resourceVersion": state.version.to_string()});
                let gone = state.delete_collection(kind, &selection, &options)?;
                Ok(Outcome::Reply(Reply::frames(200, list::list_frames(kind, &metadata, &gone))))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn watch(&self, state: &mut State, kind: &'static Kind, selection: Selection) -> Result<Outcome, Status> {
        let options = WatchOptions::parse(self.query)?;
        if let Some(version) = options.awaited(state.version) {
            return Ok(Outcome::Await(version));
        }
        Ok(Outcome::Watch(state.open_watch(kind, selection, &options)))
    }

    fn on_object(
        &self,
        state: &mut State,
        kind: &'static Kind,
        at: (&str, &str),
        part: Part,
    ) -> Result<Outcome, Status> {
        match *self.method {
            Method::GET => {
                let version = self.query.text("resourceVersion");
                if !version.is_empty() {
                    list::parse_version(version).map_err(Status::unknown)?;
                }
                let object = state.existing(kind, at.0, at.1)?;
                Ok(Outcome::Reply(Reply::object(200, kind, &object)))
            }
            Method::PUT => {
                self.check_options("UpdateOptions")?;
                let value = self.object(state, kind.kind)?;
                let updated = state.put(kind, at, part, value, self.dry_run())?;
                Ok(Outcome::Reply(Reply::object(if updated.created { 201 } else { 200 }, kind, &updated.object)))
            }
            Method::PATCH => {
                self.check_options("PatchOptions")?;
                let patch = Patch::parse(self.content_type, self.body)?;
                let object = state.patch(kind, at, part, &patch, self.dry_run())?;
                Ok(Outcome::Reply(Reply::object(200, kind, &object)))
            }
            Method::DELETE if part == Part::Main => {
                let options = self.delete_options()?;
                let deleted = state.delete(kind, at, &options)?;
                Ok(Outcome::Reply(if kind.returns_deleted || !deleted.gone {
                    Reply::object(200, kind, &deleted.object)
                } else {
                    Reply::deleted(kind, &deleted.object)
                }))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn bind(&self, state: &mut State, namespace: &str, name: Option<&str>) -> Result<Outcome, Status> {
        let body = self.object(state, "Binding")?;
        let body = state.oddities.typed_binding(body)?;
        state.bind(namespace, name, &body, self.dry_run())?;
        Ok(Outcome::Reply(Reply::created()))
    }

    /// What a namespace's finalizers are taken away with.
    fn finalize(&self, state: &mut State, kind: &'static Kind, name: &str) -> Result<Outcome, Status> {
        if *self.method != Method::PUT {
            return Err(Status::method_not_allowed());
        }
        let value = self.object(state, kind.kind)?;
        let object = state.finalize(kind, name, &value)?;
        Ok(Outcome::Reply(Reply::object(200, kind, &object)))
    }
}

impl Reply {
    fn frames(code: u16, frames: VecDeque<Bytes>) -> Self {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, content_type: "application/json", retry_after: None, warnings: Vec::new(), frames }
    }

    fn json(code: u16, value: &Value) -> Self {
        Self::frames(code, [Bytes::from(value.to_string())].into())
    }

    fn object(code: u16, kind: &Kind, object: &Object) -> Self {
        if object.version() > 0 {
            return Self::frames(code, [events::view(kind, object)].into());
        }
        // What a dry run would have stored has no version.
        let mut value = object.value();
        meta::metadata(&mut value).remove("resourceVersion");
        events::to_view(kind, &mut value);
        Self::json(code, &value)
    }

    fn created() -> Self {
        let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}"#;
        Self::frames(201, [Bytes::from_static(text.as_bytes())].into())
    }

    /// The answer to a delete of a kind that does not answer with the object.
    fn deleted(kind: &Kind, object: &Object) -> Self {
        let mut details = json!({"name": object.name(), "kind": kind.plural, "uid": object.uid()});
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        Self::json(200, &status)
    }

    fn failure(status: &Status) -> Self {
        let mut reply = Self::json(status.code, &status.to_value());
        reply.retry_after =
            status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
        reply
    }

    fn text(code: u16, text: &'static str) -> Self {
        let mut reply = Self::frames(code, [Bytes::from_static(text.as_bytes())].into());
        reply.content_type = "text/plain; charset=utf-8";
        reply
    }

    fn not_found_page() -> Self {
        Self::text(404, "404 page not found\n")
    }

    fn page(page: &str) -> Self {
        match page {
            "version" => Self::json(200, &discovery::version()),
            "healthz" | "livez" | "readyz" => Self::text(200, "ok"),
            _ => Self::not_found_page(),
        }
    }

    fn response(self, open: Open) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::plain(self.frames, open));
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        for warning in &self.warnings {
            if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}

fn watch_response(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
