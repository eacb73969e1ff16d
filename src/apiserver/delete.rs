//! Deleting objects: grace, finalizers, preconditions, and collections.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go#Store.Delete` and
//! `apiserver/pkg/registry/rest/delete.go#BeforeDelete @v1.36.3`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::field_error::FieldError;
use super::kinds::{Kind, NAMESPACES, PODS};
use super::meta;
use super::object::Object;
use super::selectors::Selection;
use super::status::Status;
use super::store::State;

/// What a delete asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Seconds between the delete and the end of the object; absent for the object's own.
    pub grace_period_seconds: Option<i64>,
    /// Only the object with this UID.
    pub uid: Option<String>,
    /// Only this version of the object.
    pub resource_version: Option<String>,
    /// `Background` (also when absent), `Foreground` or `Orphan`.
    pub propagation_policy: Option<String>,
    /// Whether to store nothing.
    pub dry_run: bool,
}

/// What a delete did.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object as it was left, or as it was when it went.
    pub object: Arc<Object>,
    /// Whether the object is gone.
    pub gone: bool,
}

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl DeleteOptions {
    /// Reads the body of a delete, `Null` for none.
    pub(super) fn parse(body: &Value) -> Result<Self, Status> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let options = Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            propagation_policy: text(&body["propagationPolicy"]),
            dry_run: meta::list(&body["dryRun"]).any(|run| run == "All"),
        };
        let policy = options.propagation_policy.as_deref().unwrap_or("Background");
        if !matches!(policy, "Background" | "Foreground" | "Orphan") {
            let known = ["Foreground", "Background", "Orphan", "nil"];
            let error = FieldError::not_supported("propagationPolicy", &json!(policy), &known);
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &[error]));
        }
        Ok(options)
    }
}

/// What the grace period means for an object.
enum Grace {
    /// It goes at once, without a write before.
    None,
    /// It has been deleted already, and nothing shortens that.
    Pending,
    /// It is marked, and goes after this many seconds.
    Marked(i64),
}

impl State {
    /// Deletes an object, or marks it as deleted if something keeps it.
    pub(super) fn delete(
        &mut self,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let object = self.existing(kind, namespace, name)?;
        if object.raw {
            return Ok(Deleted { object: self.remove(&object), gone: true });
        }
        if kind.slot == NAMESPACES.slot && matches!(name, "default" | "kube-system" | "kube-public") {
            return Err(Status::forbidden(kind, name, "this namespace may not be deleted"));
        }
        check_preconditions(kind, &object, options)?;
        if kind.slot == PODS.slot && !options.dry_run {
            self.pod_deletions += 1;
        }
        let mut value = object.value();
        let grace = self.mark(kind, &mut value, options);
        if matches!(grace, Grace::Pending) {
            return Ok(Deleted { object, gone: false });
        }
        set_propagation(&mut value, options);
        let kept_by_finalizer = meta::finalizers(&value).next().is_some() || namespace_has_finalizers(kind, &value);
        let gone = match grace {
            Grace::None if kept_by_finalizer => {
                mark_without_grace(self.now, &mut value);
                false
            }
            // There is no write before the removal, not even of finalizers that the propagation policy takes away.
            Grace::None if !options.dry_run => return Ok(Deleted { object: self.remove(&object), gone: true }),
            Grace::None => true,
            Grace::Marked(seconds) => seconds == 0 && !kept_by_finalizer,
            Grace::Pending => false,
        };
        if kind.slot == NAMESPACES.slot && !gone {
            meta::child(&mut value, "status").insert("phase".to_owned(), json!("Terminating"));
        }
        if options.dry_run {
            return Ok(Deleted { object, gone });
        }
        let marked = self.replace(&object, &value);
        if gone {
            return Ok(Deleted { object: self.remove(&marked), gone: true });
        }
        Ok(Deleted { object: marked, gone: false })
    }

    /// Deletes every object of a selection; answers with what was deleted.
    pub(super) fn delete_collection(
        &mut self,
        kind: &'static Kind,
        selection: &Selection,
        options: &DeleteOptions,
    ) -> Result<Vec<Arc<Object>>, Status> {
        let selected: Vec<Arc<Object>> =
            self.shelf(kind).objects.values().filter(|object| selection.matches(object)).cloned().collect();
        for object in &selected {
            match self.delete(kind, (object.namespace(), object.name()), options) {
                Err(status) if status.reason != "NotFound" => return Err(status),
                _ => {}
            }
        }
        Ok(selected)
    }

    /// Writes the marks of a graceful deletion into `value`. Only pods have one.
    fn mark(&self, kind: &Kind, value: &mut Value, options: &DeleteOptions) -> Grace {
        let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        if kind.slot != PODS.slot {
            return Grace::None;
        }
        if meta::is_deleting(value) {
            return self.shorten(value, asked);
        }
        let bound = !meta::is_empty(&value["spec"]["nodeName"]);
        let terminal = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let own = value["spec"]["terminationGracePeriodSeconds"].as_i64();
        let seconds = match asked.or(own).unwrap_or(0) {
            _ if !bound || terminal => 0,
            negative if negative < 0 => 1,
            seconds => seconds,
        };
        let at = after(self.now, seconds);
        let metadata = meta::metadata(value);
        metadata.insert("deletionTimestamp".to_owned(), json!(meta::time_text(at)));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
        count_generation(value);
        Grace::Marked(seconds)
    }

    /// A second delete: only a shorter grace period counts.
    fn shorten(&self, value: &mut Value, asked: Option<i64>) -> Grace {
        let current = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if current == 0 {
            return Grace::None;
        }
        let Some(mut seconds) = asked.filter(|asked| *asked < current) else { return Grace::Pending };
        let marked: Timestamp = meta::text(value, "deletionTimestamp").parse().unwrap_or(self.now);
        let mut at = after(marked, seconds - current);
        if at < self.now {
            at = self.now;
            seconds = seconds.min(1);
        }
        let metadata = meta::metadata(value);
        metadata.insert("deletionTimestamp".to_owned(), json!(meta::time_text(at)));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
        Grace::Marked(seconds)
    }
}

fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

fn count_generation(value: &mut Value) {
    if let Some(generation) = value["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        meta::metadata(value).insert("generation".to_owned(), json!(generation + 1));
    }
}

/// Follows `registry/generic/registry/store.go#markAsDeleting @v1.36.3`.
fn mark_without_grace(now: Timestamp, value: &mut Value) {
    if !meta::is_deleting(value) {
        count_generation(value);
    }
    let marked: Option<Timestamp> = meta::text(value, "deletionTimestamp").parse().ok();
    let metadata = meta::metadata(value);
    if marked.is_none_or(|marked| marked > now) {
        metadata.insert("deletionTimestamp".to_owned(), json!(meta::time_text(now)));
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
}

/// Adds or takes away the finalizers that tell a garbage collector what to do.
/// Follows `registry/generic/registry/store.go#deletionFinalizersForGarbageCollection @v1.36.3`.
fn set_propagation(value: &mut Value, options: &DeleteOptions) {
    let Some(policy) = options.propagation_policy.as_deref() else { return };
    let added = match policy {
        "Foreground" => Some(FOREGROUND),
        "Orphan" => Some(ORPHAN),
        _ => None,
    };
    let kept = meta::finalizers(value).filter(|name| !matches!(*name, FOREGROUND | ORPHAN));
    let finalizers: Vec<String> = kept.chain(added).map(str::to_owned).collect();
    let finalizers = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
    meta::set(meta::metadata(value), "finalizers", finalizers);
}

fn namespace_has_finalizers(kind: &Kind, value: &Value) -> bool {
    kind.slot == NAMESPACES.slot && !meta::is_empty(&value["spec"]["finalizers"])
}

fn check_preconditions(kind: &Kind, object: &Object, options: &DeleteOptions) -> Result<(), Status> {
    let version = object.version.to_string();
    let why = if let Some(uid) = options.uid.as_deref().filter(|uid| **uid != *object.uid) {
        format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). \
             The object might have been deleted and then recreated",
            object.uid
        )
    } else if let Some(asked) = options.resource_version.as_deref().filter(|asked| **asked != version) {
        format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). \
             The object might have been modified"
        )
    } else {
        return Ok(());
    };
    Err(Status::conflict_on(kind.group, kind.kind, object.name(), &why))
}
