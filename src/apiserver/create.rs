//! Creation of objects: the steps of a POST, in upstream's order, and the loading of objects from other clusters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::{EVENTS, Kind, NAMESPACES};
use super::object::{Object, key_of};
use super::origin::Origin;
use super::schema::{self, Object as Type};
use super::store::State;
use super::{admission, defaulting, events, meta, owners, strategy, validation};
use crate::apimachinery::Status;

/// Number of attempts to find a free generated name.
/// `apiserver/pkg/registry/generic/registry/store.go#maxNameGenerationCreateAttempts @v1.36.3`.
const NAME_ATTEMPTS: usize = 8;
/// Largest length of the prefix in a generated name: 63 characters less the 5 random ones.
/// `apiserver/pkg/storage/names/generate.go#MaxGeneratedNameLength @v1.36.3`.
const PREFIX_LENGTH: usize = 58;

impl State {
    /// Creates an object of `kind`. `namespace` comes from the URL. If it is empty, the object's own namespace is used.
    pub(super) fn create(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        value: Value,
        origin: Origin,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        let value = self.oddities.typed(kind, value)?;
        let generated = meta::text(&value, "name").is_empty() && !meta::text(&value, "generateName").is_empty();
        for _ in 1..NAME_ATTEMPTS {
            if !generated {
                break;
            }
            match self.create_once(kind, namespace, value.clone(), origin, dry_run) {
                Err(status) if status.reason == "AlreadyExists" => {}
                result => return result,
            }
        }
        self.create_once(kind, namespace, value, origin, dry_run).map_err(|status| match status {
            Status { reason: "AlreadyExists", details: Some(details), .. } if generated => {
                Status::generate_name_conflict(kind, &details.name)
            }
            status => status,
        })
    }

    fn create_once(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        mut value: Value,
        origin: Origin,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        set_namespace(kind, namespace, &mut value)?;
        let is_versioned = origin == Origin::Client && !matches!(meta::text(&value, "resourceVersion"), "" | "0");
        self.fill_system_fields(kind, &mut value, origin);
        events::to_storage(kind, &mut value);
        let managers = self.managers_of_new(kind, &value);
        defaulting::apply(kind, &mut value, None, &self.settings.gates);
        let namespace = meta::text(&value, "namespace").to_owned();
        if kind.namespaced {
            self.require_namespace(kind, &namespace, &value)?;
        }
        admission::on_create(self, kind, &mut value, origin)?;
        schema::complete(Type::of(kind.storage()), &mut value);
        meta::dedup_owners(&mut value);
        strategy::prepare_create(self, kind, &mut value, origin)?;
        schema::complete(Type::of(kind.storage()), &mut value);
        let name = meta::text(&value, "name").to_owned();
        let errors = validation::on_create(&self.settings.gates, kind, &value, origin);
        if !errors.is_empty() {
            return Err(Status::invalid(kind.error_group(), kind.kind, &name, &errors));
        }
        admission::check_create(self, kind, &value, origin)?;
        // A dry run skips this check, because upstream makes it only when it stores the object.
        if is_versioned && !dry_run {
            return Err(Status::unknown("resourceVersion should not be set on objects to be created"));
        }
        self.give_address(kind, &mut value, None);
        owners::set(meta::metadata(&mut value), managers.as_ref());
        let key = key_of(if kind.namespaced { &namespace } else { "" }, &name);
        if let Some(other) = self.find(kind, &key) {
            let mut status = Status::already_exists(kind, &name);
            if meta::is_deleting(&other.value()) {
                status.message.insert_str(0, "object is being deleted: ");
            }
            return Err(status);
        }
        if dry_run {
            return Ok(Arc::new(Object::encode(kind.storage(), key, 0, &value, None)));
        }
        let object = self.add(kind, key, &value);
        if kind.slot == EVENTS.slot {
            self.note_expiry(&object);
        }
        Ok(object)
    }

    fn fill_system_fields(&mut self, kind: &Kind, value: &mut Value, origin: Origin) {
        let (now, uid, suffix) = (meta::time_text(self.now), self.names.uid(), self.names.suffix());
        let metadata = meta::metadata(value);
        metadata.remove("resourceVersion");
        if origin == Origin::Client {
            for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
                metadata.remove(key);
            }
        }
        metadata.remove("managedFields");
        let is_absent = |value: Option<&Value>| value.is_none_or(meta::is_empty);
        if is_absent(metadata.get("uid")) {
            metadata.insert("uid".to_owned(), json!(uid));
        }
        if is_absent(metadata.get("creationTimestamp")) {
            metadata.insert("creationTimestamp".to_owned(), json!(now));
        }
        if kind.generation {
            if origin == Origin::Client || is_absent(metadata.get("generation")) {
                metadata.insert("generation".to_owned(), json!(1));
            }
        } else if metadata.get("generation").is_none_or(|generation| generation.as_i64() >= Some(0)) {
            metadata.remove("generation");
        }
        if is_absent(metadata.get("name"))
            && let Some(prefix) = metadata.get("generateName").and_then(Value::as_str).filter(|text| !text.is_empty())
        {
            let kept: String = prefix.chars().take(PREFIX_LENGTH).collect();
            metadata.insert("name".to_owned(), json!(format!("{kept}{suffix}")));
        }
    }

    /// Checks that the namespace exists and is not being deleted. Creates a missing namespace if the settings allow that.
    /// Follows `apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go#Lifecycle.Admit @v1.36.3`.
    fn require_namespace(&mut self, kind: &Kind, namespace: &str, value: &Value) -> Result<(), Status> {
        let Some(found) = self.find(&NAMESPACES, namespace) else {
            if !self.settings.create_namespaces {
                return Err(Status::not_found(&NAMESPACES, namespace));
            }
            let missing = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            return self.create(&NAMESPACES, "", missing, Origin::Client, false).map(drop);
        };
        if found.field("status.phase") == Some("Terminating") {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let text = format!("namespace {namespace} is being terminated");
            return Err(Status::forbidden(kind, meta::text(value, "name"), why).cause(
                "NamespaceTerminating",
                text,
                "metadata.namespace",
            ));
        }
        Ok(())
    }
}

/// Sets the object's namespace to the namespace of the URL. Rejects an object that names another namespace.
/// Follows `apiserver/pkg/registry/rest/meta.go#EnsureObjectNamespaceMatchesRequestNamespace @v1.36.3`.
pub(super) fn set_namespace(kind: &Kind, namespace: &str, value: &mut Value) -> Result<(), Status> {
    let metadata = meta::metadata(value);
    let own = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !kind.namespaced {
        if namespace.is_empty() {
            metadata.remove("namespace");
        }
        return Ok(());
    }
    let namespace = match (namespace, own) {
        ("", "") => "default",
        ("", own) => own,
        (namespace, "") => namespace,
        (namespace, own) if namespace == own => namespace,
        _ => {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    };
    let namespace = json!(namespace);
    metadata.insert("namespace".to_owned(), namespace);
    Ok(())
}
