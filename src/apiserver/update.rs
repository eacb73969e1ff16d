//! Changing objects: PUT and the last steps of PATCH, on the main resource and on `status`.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go#Store.Update` and
//! `apiserver/pkg/registry/rest/update.go#BeforeUpdate @v1.36.3`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{Origin, set_namespace};
use super::field_error::FieldError;
use super::kinds::{EVENTS, Kind, PODS};
use super::object::{Object, key_of};
use super::status::Status;
use super::store::State;
use super::{admission, decode, defaulting, events, meta, owners, strategy, validation};

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

/// What an update starts from.
#[derive(Debug)]
pub(super) struct Before {
    old: Arc<Object>,
    value: Value,
    /// The specification was left out of `value`, since nobody may write it.
    without_spec: bool,
}

impl Before {
    /// Reads `old`. A pod's status is written so often that the rest of the pod is not read for it, unless `whole` asks
    /// for it.
    pub(super) fn read(old: Arc<Object>, part: Part, whole: bool) -> Result<Self, Status> {
        let without_spec = part == Part::Status && old.kind.slot == PODS.slot && !whole && !old.raw;
        let value = if without_spec { old.value_without_spec() } else { Some(old.value()) };
        match value.filter(|value| value.is_object() && !old.raw) {
            Some(value) => Ok(Self { old, value, without_spec }),
            None => Err(Status::internal(format!("{} {:?} cannot be decoded", old.kind.qualified(), old.name()))),
        }
    }

    /// The stored object.
    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// The next version, with `value` as its content.
    fn next(&self, version: u64, value: &Value) -> Object {
        let with_old_spec = if self.without_spec { Object::encode_status(&self.old, version, value) } else { None };
        with_old_spec
            .unwrap_or_else(|| Object::encode(self.old.kind, self.old.key.clone(), version, value, Some(&self.old)))
    }
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
                let before = Before::read(old, part, self.settings.exact)?;
                let object = self.update(kind, &before, part, value, dry_run)?;
                Ok(Updated { object, created: false })
            }
            Err(_) if kind.create_on_update && part == Part::Main => {
                let object = self.create(kind, namespace, value, Origin::Client, dry_run)?;
                Ok(Updated { object, created: true })
            }
            Err(missing) => Err(missing),
        }
    }

    /// Makes `value` (in stored form) the next version of an object.
    pub(super) fn update(
        &mut self,
        kind: &'static Kind,
        before: &Before,
        part: Part,
        mut value: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        let old = &before.old;
        check_version(kind, old, &value)?;
        if !before.without_spec {
            defaulting::apply(kind, &mut value, Some(&before.value));
        }
        let managers = self.managers(kind, part, &value, Some(&before.value));
        if part == Part::Main {
            admission::on_update(self, kind, &mut value, &before.value)?;
        }
        meta::set(meta::metadata(&mut value), "generation", before.value["metadata"]["generation"].clone());
        match part {
            Part::Main => strategy::prepare_update(kind, &mut value, &before.value),
            Part::Status => strategy::prepare_status_update(self, kind, &mut value, &before.value),
        }
        let mut errors = keep_identity(&mut value, &before.value);
        errors.extend(validation::on_update(kind, part, &value, &before.value, old));
        if !errors.is_empty() {
            return Err(Status::invalid(kind.group, kind.kind, old.name(), &errors));
        }
        self.complete(kind, &mut value, Some(&before.value));
        owners::set(meta::metadata(&mut value), managers.as_ref());
        let ends = deletes(&value, &before.value);
        if dry_run || ends {
            let object = Arc::new(before.next(old.version, &value));
            if !dry_run {
                self.remove(old);
            }
            return Ok(object);
        }
        let next = before.next(self.version + 1, &value);
        let object = self.replace_with(old, next);
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
