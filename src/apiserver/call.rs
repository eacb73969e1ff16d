//! Dispatch of requests: calls the store according to the request's method, target and options.

use http::request::Parts;
use http::{Method, header};
use serde_json::{Value, json};

use super::accept::{self, Answers, Form};
use super::decode::{self, BodyFindings, FieldValidation};
use super::delete::DeleteOptions;
use super::kinds::{Kind, NAMESPACES, PODS};
use super::list::{self, ListOptions};
use super::origin::Origin;
use super::owners::{Apply, Author};
use super::part::Part;
use super::patch::Patch;
use super::reply::Reply;
use super::route::{Query, Target};
use super::selectors::Selection;
use super::store::State;
use super::watch::WatchOptions;
use super::{discovery, meta, openapi, table};
use crate::apimachinery::{FieldError, Status};

/// Outcome of handling a request: a reply, a watch, or a wait.
pub(super) enum Outcome {
    Reply(Reply),
    Watch(u64),
    /// The request has to wait, because the server has not reached this version yet.
    Await(u64),
}

/// Handles a request with the store. Every HTTP request takes this path.
pub(super) fn route(state: &mut State, parts: &Parts, body: &[u8]) -> Outcome {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let validation = match query.text("fieldValidation") {
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        _ => FieldValidation::Warn,
    };
    state.oddities = BodyFindings { is_request: true, validation, ..BodyFindings::default() };
    if state.settings.exact {
        state.author = Some(Author::of(parts, &query));
    }
    let outcome = to_target(state, parts, &query, body);
    // Taking the findings also clears them, so that the server's own writes are decoded without field validation.
    let warnings = std::mem::take(&mut state.oddities).warnings;
    match outcome.unwrap_or_else(|status| Outcome::Reply(Reply::failure(&status))) {
        Outcome::Reply(reply) => Outcome::Reply(reply.warning(warnings)),
        other => other,
    }
}

fn to_target(state: &mut State, parts: &Parts, query: &Query, body: &[u8]) -> Result<Outcome, Status> {
    let request = Call { parts, method: &parts.method, query, content_type: media_type(parts), body };
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
                ("eviction", kind) if kind.slot == PODS.slot => request.evict(state, at),
                ("finalize", kind) => request.finalize(state, kind, &name),
                ("scale", kind) if kind.has_scale() => request.scale(state, kind, at),
                _ => Err(Status::no_such_resource()),
            }
        }
        Target::Bindings { namespace } if *request.method == Method::POST => request.bind(state, &namespace, None),
        Target::Bindings { .. } => Err(Status::method_not_allowed()),
        Target::Discovery(path) => {
            let form = accept::form(parts, query, Answers::Discovery)?;
            Ok(Outcome::Reply(discovery::reply(&path, form).in_form(form)))
        }
        Target::Page(page) => Ok(Outcome::Reply(match page.strip_prefix("openapi/v3") {
            Some(path) => openapi::reply(path.trim_start_matches('/')).unwrap_or_else(Reply::not_found_page),
            None => Reply::page(&page),
        })),
        Target::UnknownResource => Err(Status::no_such_resource()),
        Target::Unknown => Ok(Outcome::Reply(Reply::not_found_page())),
    }
}

fn media_type(parts: &Parts) -> &str {
    let value = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// A request whose target is known.
pub(super) struct Call<'a> {
    parts: &'a Parts,
    pub(super) method: &'a Method,
    query: &'a Query,
    content_type: &'a str,
    body: &'a [u8],
}

impl Call<'_> {
    pub(super) fn dry_run(&self) -> bool {
        self.query.text("dryRun") == "All"
    }

    /// Decodes the body, which should hold an object of the kind `kind_name`.
    pub(super) fn object(&self, state: &mut State, kind_name: &str) -> Result<Value, Status> {
        decode::body(kind_name, self.content_type, self.body, &mut state.oddities)
    }

    /// Returns the form of a reply that contains one or more objects.
    pub(super) fn form(&self) -> Result<Form, Status> {
        accept::form(self.parts, self.query, Answers::Objects)
    }

    /// Parses the body as a patch.
    pub(super) fn patch_body(&self) -> Result<Patch, Status> {
        Patch::parse(self.content_type, self.body)
    }

    /// Checks the parameters that creates, updates and patches have in common. `options` is the name of the options' type in
    /// messages, such as `CreateOptions`.
    /// Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateCreateOptions @v1.36.3`.
    pub(super) fn check_options(&self, options: &str) -> Result<(), Status> {
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

    /// Parses the options of a delete from the body, or from the query if there is no body.
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
            Method::GET => self.list(state, kind, namespace),
            Method::POST | Method::DELETE if kind.namespaced && namespace.is_empty() => {
                Err(Status::method_not_allowed())
            }
            Method::POST => {
                self.check_options("CreateOptions")?;
                let value = self.object(state, kind.kind)?;
                let form = self.form()?;
                let object = state.create(kind, namespace, value, Origin::Client, self.dry_run())?;
                Ok(Outcome::Reply(Reply::object(201, kind, &object).in_form(form)))
            }
            Method::DELETE if kind.slot == NAMESPACES.slot => Err(Status::method_not_allowed()),
            Method::DELETE => {
                let selection = self.selection(kind, namespace)?;
                let options = self.delete_options()?;
                // The reply lists the objects as they were before the deletes.
                let metadata = json!({"resourceVersion": state.version.to_string()});
                let gone = state.delete_collection(kind, &selection, &options)?;
                Ok(Outcome::Reply(Reply::frames(200, list::list_frames(kind, &metadata, &gone))))
            }
            _ => Err(Status::method_not_allowed()),
        }
    }

    fn list(&self, state: &mut State, kind: &'static Kind, namespace: &str) -> Result<Outcome, Status> {
        let selection = self.selection(kind, namespace)?;
        let options = ListOptions::parse(self.query)?;
        if let Some(version) = options.awaited(state.version) {
            return Ok(Outcome::Await(version));
        }
        let form = self.form()?;
        let page = state.list(kind, &selection, &options)?;
        Ok(Outcome::Reply(if let Form::Table(form) = form {
            let objects = page.objects.iter().map(AsRef::as_ref);
            Reply::json(200, &table::of(form, kind, &page.metadata(), objects, state.now))
        } else {
            Reply::frames(200, page.frames(kind)).in_form(form)
        }))
    }

    fn watch(&self, state: &mut State, kind: &'static Kind, selection: Selection) -> Result<Outcome, Status> {
        let options = WatchOptions::parse(self.query)?;
        if let Some(version) = options.awaited(state.version) {
            return Ok(Outcome::Await(version));
        }
        let form = accept::form(self.parts, self.query, Answers::Stream)?;
        Ok(Outcome::Watch(state.open_watch(kind, selection, &options, form)))
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
                Ok(Outcome::Reply(match self.form()? {
                    Form::Table(form) => Reply::json(200, &table::of_one(form, kind, &object, state.now)),
                    form => Reply::object(200, kind, &object).in_form(form),
                }))
            }
            Method::PUT => {
                self.check_options("UpdateOptions")?;
                let value = self.object(state, kind.kind)?;
                let form = self.form()?;
                let updated = state.put(kind, at, part, value, self.dry_run())?;
                let code = if updated.created { 201 } else { 200 };
                Ok(Outcome::Reply(Reply::object(code, kind, &updated.object).in_form(form)))
            }
            Method::PATCH => self.patch(state, kind, at, part),
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

    fn patch(&self, state: &mut State, kind: &'static Kind, at: (&str, &str), part: Part) -> Result<Outcome, Status> {
        self.check_options("PatchOptions")?;
        if self.content_type == "application/apply-patch+yaml" {
            return self.apply(state, kind, at, part);
        }
        let patch = self.patch_body()?;
        let form = self.form()?;
        let object = state.patch(kind, at, part, &patch, self.dry_run())?;
        Ok(Outcome::Reply(Reply::object(200, kind, &object).in_form(form)))
    }

    fn apply(&self, state: &mut State, kind: &'static Kind, at: (&str, &str), part: Part) -> Result<Outcome, Status> {
        let form = self.form()?;
        let apply = Apply::parse(self.query.text("fieldManager"), self.query.flag("force"), self.body)?;
        let updated = state.apply(kind, at, part, &apply, self.dry_run())?;
        let code = if updated.created { 201 } else { 200 };
        Ok(Outcome::Reply(Reply::object(code, kind, &updated.object).in_form(form)))
    }

    fn bind(&self, state: &mut State, namespace: &str, name: Option<&str>) -> Result<Outcome, Status> {
        let body = self.object(state, "Binding")?;
        let body = state.oddities.typed_binding(body)?;
        state.bind(namespace, name, &body, self.dry_run())?;
        Ok(Outcome::Reply(Reply::created()))
    }

    fn evict(&self, state: &mut State, at: (&str, &str)) -> Result<Outcome, Status> {
        if *self.method != Method::POST {
            return Err(Status::method_not_allowed());
        }
        self.check_options("CreateOptions")?;
        let body = self.object(state, "Eviction")?;
        let body = state.oddities.typed_eviction(body)?;
        let own_namespace = meta::text(&body, "namespace");
        if !own_namespace.is_empty() && own_namespace != at.0 {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        state.evict(at, &body, self.dry_run())?;
        Ok(Outcome::Reply(Reply::created()))
    }

    /// Replaces the finalizers of a namespace.
    fn finalize(&self, state: &mut State, kind: &'static Kind, name: &str) -> Result<Outcome, Status> {
        if *self.method != Method::PUT {
            return Err(Status::method_not_allowed());
        }
        let value = self.object(state, kind.kind)?;
        let object = state.finalize(kind, name, &value)?;
        Ok(Outcome::Reply(Reply::object(200, kind, &object)))
    }
}
