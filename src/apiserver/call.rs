//! What each request does: its method, its target and its options, brought to the store.

use http::request::Parts;
use http::{Method, header};
use serde_json::{Value, json};

use super::accept::{self, Answers, Form};
use super::create::Origin;
use super::delete::DeleteOptions;
use super::kinds::{Kind, PODS};
use super::list::{self, ListOptions};
use super::listen::Remote;
use super::owners::{Apply, Author};
use super::patch::Patch;
use super::reply::Reply;
use super::route::{Query, Target};
use super::selectors::Selection;
use super::status::Status;
use super::store::State;
use super::strict::Directive;
use super::update::Part;
use super::watch::WatchOptions;
use super::{decode, discovery, openapi, table};

/// What handling a request comes to.
pub(super) enum Outcome {
    Reply(Reply),
    Watch(u64),
    /// The server has not reached this version yet.
    Await(u64),
}

/// The one place where requests meet the store.
pub(super) fn route(state: &mut State, parts: &Parts, body: &[u8]) -> Result<Outcome, Status> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let request = Call { parts, method: &parts.method, query: &query, content_type: media_type(parts), body };
    if state.settings.exact {
        state.author = Some(Author::of(parts, &query));
    }
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
                ("finalize", kind) => request.finalize(state, kind, &name),
                ("scale", kind) if kind.has_scale() => request.scale(state, kind, at),
                _ => Err(Status::no_such_resource()),
            }
        }
        Target::Bindings { namespace } if *request.method == Method::POST => request.bind(state, &namespace, None),
        Target::Bindings { .. } => Err(Status::method_not_allowed()),
        Target::Discovery(path) => {
            let form = accept::form(parts, &query, Answers::Discovery)?;
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

/// A request that has found its target.
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

    pub(super) fn body(&self, kind_name: &str) -> Result<Value, Status> {
        decode::body(kind_name, self.content_type, self.body)
    }

    /// The form of an answer that is an object, or several.
    pub(super) fn form(&self) -> Result<Form, Status> {
        accept::form(self.parts, self.query, Answers::Objects)
    }

    /// A patch of an object.
    pub(super) fn patch_body(&self) -> Result<Patch, Status> {
        Patch::parse(self.content_type, self.body)
    }

    fn directive(&self, options: &str) -> Result<Directive, Status> {
        Directive::of(self.query, self.parts.extensions.get::<Remote>().is_some(), options)
    }

    /// An object to be written, with warnings about what it has that no object of its kind has.
    fn object(&self, kind: &Kind, options: &str) -> Result<(Value, Vec<String>), Status> {
        let directive = self.directive(options)?;
        let mut value = self.body(kind.kind)?;
        let warnings = directive.apply(kind, &mut value).map_err(|unknown| unknown.in_object(kind))?;
        Ok((value, warnings))
    }

    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let body = if self.body.is_empty() { Value::Null } else { self.body("DeleteOptions")? };
        let mut options = DeleteOptions::parse(&body)?;
        if body.is_null() {
            options.grace_period_seconds = self.query.get("gracePeriodSeconds").and_then(|text| text.parse().ok());
            options.propagation_policy = self.query.get("propagationPolicy").map(str::to_owned);
        }
        options.dry_run |= self.dry_run();
        Ok(options)
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
                let options = ListOptions::parse(|key| self.query.get(key).map(str::to_owned))?;
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
            Method::POST => {
                let (value, warnings) = self.object(kind, "CreateOptions")?;
                let form = self.form()?;
                let object = state.create(kind, namespace, value, Origin::Client, self.dry_run())?;
                Ok(Outcome::Reply(Reply::object(201, kind, &object).in_form(form).warning(warnings)))
            }
            Method::DELETE => {
                let selection = self.selection(kind, namespace)?;
                let gone = state.delete_collection(kind, &selection, &self.delete_options()?)?;
                let metadata = json!({"resourceVersion": state.version.to_string()});
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
            Method::GET if self.query.flag("watch") && part == Part::Main => {
                let mut selection = self.selection(kind, at.0)?;
                selection.only(at.1);
                self.watch(state, kind, selection)
            }
            Method::GET => {
                let object = state.existing(kind, at.0, at.1)?;
                Ok(Outcome::Reply(match self.form()? {
                    Form::Table(form) => Reply::json(200, &table::of_one(form, kind, &object, state.now)),
                    form => Reply::object(200, kind, &object).in_form(form),
                }))
            }
            Method::PUT => {
                let (value, warnings) = self.object(kind, "UpdateOptions")?;
                let form = self.form()?;
                let updated = state.put(kind, at, part, value, self.dry_run())?;
                let code = if updated.created { 201 } else { 200 };
                Ok(Outcome::Reply(Reply::object(code, kind, &updated.object).in_form(form).warning(warnings)))
            }
            Method::PATCH => self.patch(state, kind, at, part),
            Method::DELETE if part == Part::Main => {
                let deleted = state.delete(kind, at, &self.delete_options()?)?;
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
        let body = self.body("Binding")?;
        state.bind(namespace, name, &body, self.dry_run())?;
        Ok(Outcome::Reply(Reply::created()))
    }

    /// What a namespace's finalizers are taken away with.
    fn finalize(&self, state: &mut State, kind: &'static Kind, name: &str) -> Result<Outcome, Status> {
        if *self.method != Method::PUT {
            return Err(Status::method_not_allowed());
        }
        let object = state.finalize(kind, name, &self.body(kind.kind)?)?;
        Ok(Outcome::Reply(Reply::object(200, kind, &object)))
    }

    fn patch(&self, state: &mut State, kind: &'static Kind, at: (&str, &str), part: Part) -> Result<Outcome, Status> {
        let directive = self.directive("PatchOptions")?;
        if self.content_type == "application/apply-patch+yaml" {
            return self.apply(state, kind, at, part);
        }
        let patch = self.patch_body()?;
        let form = self.form()?;
        let (object, warnings) = state.patch_strictly(kind, at, part, &patch, directive, self.dry_run())?;
        Ok(Outcome::Reply(Reply::object(200, kind, &object).in_form(form).warning(warnings)))
    }

    fn apply(&self, state: &mut State, kind: &'static Kind, at: (&str, &str), part: Part) -> Result<Outcome, Status> {
        let form = self.form()?;
        let apply = Apply::parse(self.query.text("fieldManager"), self.query.flag("force"), self.body)?;
        let updated = state.apply(kind, at, part, &apply, self.dry_run())?;
        let code = if updated.created { 201 } else { 200 };
        Ok(Outcome::Reply(Reply::object(code, kind, &updated.object).in_form(form)))
    }
}
