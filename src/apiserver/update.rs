//! Changing objects: PUT and the last steps of PATCH, on the main resource and on `status`.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go#Store.Update` and
//! `apiserver/pkg/registry/rest/update.go#BeforeUpdate @v1.36.3`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{Origin, set_namespace};
use super::kinds::{EVENTS, Kind};
use super::object::{Object, key_of};
use super::status::{FieldError, Status};
use super::store::State;
use super::{admission, decode, defaulting, events, meta, strategy, validation};

/// Which part of an object a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything but the status.
    Main,
    /// The status subresource.
    Status,
}

/// What became of an update.
#[derive(Debug)]
pub(super) struct Updated {
    pub(super) object: Arc<Object>,
    /// The object did not exist before.
    pub(super) created: bool,
}

impl State {
    /// The object, or the 404 that says it is not there.
    pub(super) fn existing(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Arc<Object>, Status> {
        let key = key_of(if kind.namespaced { namespace } else { "" }, name);
        self.find(kind, &key).cloned().ok_or_else(|| Status::not_found(kind, name))
    }

    /// Replaces an object by what a client sent.
    pub(super) fn put(
        &mut self,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        part: Part,
        value: Value,
        dry_run: bool,
    ) -> Result<Updated, Status> {
        let mut value = decode::typed(kind, value)?;
        let own_name = meta::text(&value, "name");
        if own_name.is_empty() {
            meta::metadata(&mut value).insert("name".to_owned(), json!(name));
        } else if own_name != name {
            return Err(Status::bad_request(format!(
                "the name of the object ({own_name}) does not match the name on the URL ({name})"
            )));
        }
        set_namespace(kind, namespace, &mut value)?;
        match self.existing(kind, namespace, name) {
            Ok(old) => {
                events::to_storage(kind, &mut value);
                let object = self.update(kind, &old, part, value, dry_run)?;
                Ok(Updated { object, created: false })
            }
            Err(_) if kind.create_on_update && part == Part::Main => {
                let object = self.create(kind, namespace, value, Origin::Client, dry_run)?;
                Ok(Updated { object, created: true })
            }
            Err(missing) => Err(missing),
        }
    }

    /// Makes `value` (in stored form) the next version of `old`.
    pub(super) fn update(
        &mut self,
        kind: &'static Kind,
        old: &Arc<Object>,
        part: Part,
        mut value: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        let before = old.value();
        if old.raw || !before.is_object() {
            return Err(Status::internal(format!("{} {:?} cannot be decoded", kind.qualified(), old.name())));
        }
        check_version(kind, old, &value)?;
        defaulting::apply(kind, &mut value, Some(&before));
        if part == Part::Main {
            admission::on_update(self, kind, &mut value, &before)?;
        }
        meta::set(meta::metadata(&mut value), "generation", before["metadata"]["generation"].clone());
        match part {
            Part::Main => strategy::prepare_update(kind, &mut value, &before),
            Part::Status => strategy::prepare_status_update(self, kind, &mut value, &before),
        }
        let errors = keep_identity(&mut value, &before);
        let errors: Vec<_> = errors.into_iter().chain(validation::on_update(kind, part, &mut value, &before)).collect();
        if !errors.is_empty() {
            return Err(Status::invalid(kind.group, kind.kind, old.name(), &errors));
        }
        if dry_run {
            return Ok(Arc::new(Object::encode(old.kind, old.key.clone(), old.version, &value, Some(old))));
        }
        if deletes(&value, &before) {
            self.remove(old);
            return Ok(Arc::new(Object::encode(old.kind, old.key.clone(), old.version, &value, Some(old))));
        }
        let object = self.replace(old, &value);
        if kind.slot == EVENTS.slot {
            self.note_expiry(&object);
        }
        Ok(object)
    }
}

/// Checks the version that an update is based on.
fn check_version(kind: &Kind, old: &Object, value: &Value) -> Result<(), Status> {
    let version = meta::text(value, "resourceVersion");
    if matches!(version, "" | "0") {
        if kind.unconditional_update {
            return Ok(());
        }
        let error = FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        return Err(Status::invalid(kind.group, kind.plural, old.name(), &[error]));
    }
    match version.parse::<u64>() {
        Ok(version) if version == old.version => Ok(()),
        Ok(_) => Err(Status::modified(kind, old.name())),
        Err(error) => {
            let error = FieldError::invalid("metadata.resourceVersion", &json!(version), error.to_string());
            Err(Status::invalid(kind.group, kind.plural, old.name(), &[error]))
        }
    }
}

/// Keeps what an update cannot change, and reports what it tried to change of the rest.
fn keep_identity(value: &mut Value, before: &Value) -> Vec<FieldError> {
    let old = &before["metadata"];
    let metadata = meta::metadata(value);
    metadata.remove("managedFields");
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if !old[key].is_null() {
            meta::set(metadata, key, old[key].clone());
        }
    }
    let period = "deletionGracePeriodSeconds";
    if metadata.get(period).is_none_or(Value::is_null) {
        meta::set(metadata, period, old[period].clone());
    }
    if metadata.get("uid").is_none_or(meta::is_empty) {
        meta::set(metadata, "uid", old["uid"].clone());
    }
    let mut errors = Vec::new();
    for key in ["name", "namespace", "uid", "deletionTimestamp", period] {
        let new = metadata.get(key).unwrap_or(&Value::Null);
        if *new != old[key] {
            errors.push(FieldError::invalid(format!("metadata.{key}"), new, "field is immutable"));
        }
    }
    if !old["deletionTimestamp"].is_null() {
        let known: Vec<&Value> = meta::list(&old["finalizers"]).collect();
        let added: Vec<&Value> = meta::list(metadata.get("finalizers").unwrap_or(&Value::Null))
            .filter(|finalizer| !known.contains(finalizer))
            .collect();
        if !added.is_empty() {
            let names: Vec<String> = added.iter().map(ToString::to_string).collect();
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    names.join(", ")
                ),
            ));
        }
    }
    errors
}

/// Whether an update takes away the last thing that kept a deleted object.
/// Follows `registry/generic/registry/store.go#ShouldDeleteDuringUpdate @v1.36.3`.
fn deletes(value: &Value, before: &Value) -> bool {
    meta::finalizers(value).next().is_none()
        && meta::is_deleting(before)
        && meta::is_empty(&before["metadata"]["deletionGracePeriodSeconds"])
}
