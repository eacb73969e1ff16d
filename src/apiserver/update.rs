//! Updates of objects: PUT and the last steps of PATCH, on the main resource and on `status`.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go#Store.Update` and
//! `apiserver/pkg/registry/rest/update.go#BeforeUpdate @v1.36.3`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::set_namespace;
use super::kinds::{EVENTS, Kind, PODS};
use super::object::{Object, key_of};
use super::origin::Origin;
use super::part::Part;
use super::schema::{self, Object as Type};
use super::store::State;
use super::{admission, defaulting, events, meta, owners, strategy, validation};
use crate::apimachinery::{FieldError, Status};
use crate::go::number::invalid_syntax;

/// Result of an update request.
#[derive(Debug)]
pub(super) struct Updated {
    pub(super) object: Arc<Object>,
    /// Whether the update created the object.
    pub(super) created: bool,
}

/// The stored object that an update starts from.
#[derive(Debug)]
pub(super) struct UpdateBase {
    old: Arc<Object>,
    value: Value,
    /// Whether the spec was left out of `value`, because a status update cannot change the spec.
    without_spec: bool,
}

impl UpdateBase {
    /// Reads the stored object `old`. For an update of a pod's status, the spec is not parsed, because such updates are
    /// frequent. With `whole`, everything is parsed.
    pub(super) fn read(old: Arc<Object>, part: Part, whole: bool) -> Result<Self, Status> {
        let without_spec = part == Part::Status && old.kind.slot == PODS.slot && !whole && !old.raw;
        let value = if without_spec { old.value_without_spec() } else { Some(old.value()) };
        match value.filter(|value| value.is_object() && !old.raw) {
            Some(value) => Ok(Self { old, value, without_spec }),
            None => Err(Status::internal(format!("{} {:?} cannot be decoded", old.kind.qualified(), old.name()))),
        }
    }

    /// Returns the parsed stored object.
    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Encodes the object's next version with `value` as its content.
    fn next(&self, version: u64, value: &Value) -> Object {
        let with_old_spec = if self.without_spec { Object::encode_status(&self.old, version, value) } else { None };
        with_old_spec
            .unwrap_or_else(|| Object::encode(self.old.kind, self.old.key.clone(), version, value, Some(&self.old)))
    }
}

impl State {
    /// Returns the newest version of an object, or a 404 if the object does not exist.
    pub(super) fn existing(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Arc<Object>, Status> {
        let key = key_of(if kind.namespaced { namespace } else { "" }, name);
        self.find(kind, &key).cloned().ok_or_else(|| Status::not_found(kind, name))
    }

    /// Replaces an object with the one that a client sent.
    pub(super) fn put(
        &mut self,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        part: Part,
        value: Value,
        dry_run: bool,
    ) -> Result<Updated, Status> {
        let mut value = self.oddities.typed(kind, value)?;
        check_name(&value, name)?;
        set_namespace(kind, namespace, &mut value)?;
        match self.existing(kind, namespace, name) {
            Ok(old) => {
                check_uid(&old, meta::text(&value, "uid"))?;
                events::to_storage(kind, &mut value);
                let before = UpdateBase::read(old, part, self.settings.exact)?;
                let object = self.update(kind, &before, part, value, dry_run)?;
                Ok(Updated { object, created: false })
            }
            Err(_) if kind.create_on_update && part == Part::Main => {
                let uid = meta::text(&value, "uid");
                if !uid.is_empty() {
                    return Err(other_uid(kind, &key_of(namespace, name), name, uid, ""));
                }
                meta::metadata(&mut value).remove("resourceVersion");
                let object = self.create(kind, namespace, value, Origin::Client, dry_run)?;
                Ok(Updated { object, created: true })
            }
            Err(missing) => Err(missing),
        }
    }

    /// Stores `value`, which is in stored form, as the next version of an object.
    pub(super) fn update(
        &mut self,
        kind: &'static Kind,
        before: &UpdateBase,
        part: Part,
        mut value: Value,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        let old = &before.old;
        check_version(kind, old, &value)?;
        if !before.without_spec {
            defaulting::apply(kind, &mut value, Some(&before.value), &self.settings.gates);
        }
        let managers = self.managers(kind, part, &value, Some(&before.value));
        if part != Part::Status {
            admission::on_update(self, kind, &mut value, &before.value);
        }
        meta::set(meta::metadata(&mut value), "generation", before.value["metadata"]["generation"].clone());
        schema::complete(Type::of(kind.storage()), &mut value);
        meta::dedup_owners(&mut value);
        match part {
            Part::Main | Part::Finalizers => strategy::prepare_update(self, kind, part, &mut value, &before.value),
            Part::Status => strategy::prepare_status_update(self, kind, &mut value, &before.value),
        }
        schema::complete(Type::of(kind.storage()), &mut value);
        keep_identity(&mut value, &before.value);
        let errors = validation::on_update(&self.settings.gates, kind, part, &value, &before.value, old);
        if !errors.is_empty() {
            return Err(Status::invalid(kind.error_group(), kind.kind, old.name(), &errors));
        }
        if part == Part::Main {
            admission::check_update(self, kind, &value)?;
        }
        self.give_address(kind, &mut value, Some(&before.value));
        owners::set(meta::metadata(&mut value), managers.as_ref());
        let ends = deletes(part, &value, &before.value);
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

/// Checks that the update is based on the current version.
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
        Err(_) => Err(Status::unknown(invalid_syntax("ParseUint", version))),
    }
}

/// Checks that the name in the object equals the name in the URL.
/// Follows `apiserver/pkg/endpoints/handlers/rest.go#checkName @v1.36.3`.
pub(super) fn check_name(value: &Value, name: &str) -> Result<(), Status> {
    match meta::text(value, "name") {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        own if own == name => Ok(()),
        own => Err(Status::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        ))),
    }
}

/// Checks the UID in an update. If it is given, it must be the UID of the stored object.
fn check_uid(old: &Object, uid: &str) -> Result<(), Status> {
    if uid.is_empty() || *uid == *old.uid {
        return Ok(());
    }
    Err(other_uid(old.kind, &old.key, old.name(), uid, &old.uid))
}

fn other_uid(kind: &Kind, key: &str, name: &str, uid: &str, actual: &str) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}",
        kind.plural, key
    );
    Status::conflict(kind, name, &why)
}

/// Restores metadata that an update cannot change or may leave out.
fn keep_identity(value: &mut Value, before: &Value) {
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
}

/// Whether an update removes the object, because the object is marked as deleted with a grace period of 0 and has no finalizers
/// left. A namespace is removed only by an update of its finalizers.
/// Follows `apiserver/pkg/registry/generic/registry/store.go#ShouldDeleteDuringUpdate @v1.36.3`.
fn deletes(part: Part, value: &Value, before: &Value) -> bool {
    let kept = if value["kind"] == "Namespace" {
        part != Part::Finalizers || !meta::is_empty(&value["spec"]["finalizers"])
    } else {
        !meta::is_empty(&before["metadata"]["deletionGracePeriodSeconds"])
    };
    !kept && meta::finalizers(value).next().is_none() && meta::is_deleting(before)
}
