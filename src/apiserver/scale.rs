//! The `scale` subresource: the number of replicas of a workload, in a form that all workloads share.
//!
//! Follows `pkg/registry/apps/deployment/storage/storage.go#ScaleREST @v1.36.3` and the same type of the other workloads.

use std::sync::Arc;

use http::Method;
use serde_json::{Map, Value, json};

use super::call::{Call, Outcome};
use super::kinds::Kind;
use super::object::Object;
use super::part::Part;
use super::reply::Reply;
use super::store::State;
use super::update::UpdateBase;
use super::{meta, table};
use crate::apimachinery::{FieldError, Status};

/// Returns the `Scale` of an object.
fn of(object: &Object) -> Value {
    let value = object.value();
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        meta::set(&mut metadata, key, value["metadata"][key].clone());
    }
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {}, "status": {"replicas": value["status"]["replicas"].as_i64().unwrap_or(0)}});
    // Go omits a value of 0.
    if let Some(replicas) = value["spec"]["replicas"].as_i64().filter(|replicas| *replicas != 0) {
        scale["spec"]["replicas"] = json!(replicas);
    }
    let selector = match object.kind().kind {
        "ReplicationController" => table::selector(&json!({"matchLabels": value["spec"]["selector"]})),
        _ => table::selector(&value["spec"]["selector"]),
    };
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

impl Call<'_> {
    pub(super) fn scale(&self, state: &mut State, kind: &'static Kind, at: (&str, &str)) -> Result<Outcome, Status> {
        let form = self.form()?;
        let old = state.existing(kind, at.0, at.1)?;
        let new = match *self.method {
            Method::GET => return Ok(Outcome::Reply(Reply::json(200, &of(&old)).in_form(form))),
            Method::PUT => {
                let value = self.object(state, "Scale")?;
                state.oddities.typed_scale(value)?
            }
            Method::PATCH => self.patch_body()?.apply(kind, of(&old))?,
            _ => return Err(Status::method_not_allowed()),
        };
        let object = state.set_scale(kind, old, &new, self.dry_run())?;
        Ok(Outcome::Reply(Reply::json(200, &of(&object)).in_form(form)))
    }
}

impl State {
    fn set_scale(
        &mut self,
        kind: &'static Kind,
        old: Arc<Object>,
        scale: &Value,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        let own_name = meta::text(scale, "name");
        if own_name != old.name() {
            return Err(Status::bad_request(format!(
                "the name of the object ({own_name}) does not match the name on the URL ({})",
                old.name()
            )));
        }
        if replicas < 0 {
            let error = FieldError::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
            return Err(Status::invalid("autoscaling", "Scale", old.name(), &[error]));
        }
        if let Some(author) = &mut self.author {
            author.through = "scale";
        }
        let before = UpdateBase::read(old, Part::Main, true)?;
        let mut value = before.value().clone();
        meta::child(&mut value, "spec").insert("replicas".to_owned(), json!(replicas));
        let version = scale["metadata"]["resourceVersion"].clone();
        meta::set(meta::metadata(&mut value), "resourceVersion", version);
        self.update(kind, &before, Part::Main, value, dry_run)
    }
}
