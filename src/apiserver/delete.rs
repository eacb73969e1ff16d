//! Deletion of objects: grace periods, finalizers, preconditions, and collections.
//!
//! Follows `apiserver/pkg/registry/generic/registry/store.go#Store.Delete` and
//! `apiserver/pkg/registry/rest/delete.go#BeforeDelete @v1.36.3`.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kinds::{JOBS, Kind, NAMESPACES, PODS, PRIORITY_CLASSES, REPLICATION_CONTROLLERS};
use super::meta;
use super::object::Object;
use super::selectors::Selection;
use super::store::State;
use crate::apimachinery::{FieldError, Status};

/// Options of a delete request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Grace period in seconds, or `None` for the object's own grace period.
    pub grace_period_seconds: Option<i64>,
    /// Precondition: delete only the object with this UID.
    pub uid: Option<String>,
    /// Precondition: delete only this version of the object.
    pub resource_version: Option<String>,
    /// Propagation policy: `Background`, `Foreground` or `Orphan`. If it is absent, the object's finalizers decide. Without a
    /// finalizer that decides, jobs and replication controllers use `Orphan`, and other kinds `Background`.
    pub propagation_policy: Option<String>,
    /// Whether the request is a dry run, which stores nothing.
    pub dry_run: bool,
}

/// Result of a delete request.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The object as stored after the delete, or its last state if it was removed.
    pub object: Arc<Object>,
    /// Whether the object was removed.
    pub gone: bool,
}

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl DeleteOptions {
    /// Parses the options of a delete from the body, or from an object made of the query parameters.
    /// Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateDeleteOptions @v1.36.3`.
    pub(super) fn parse(value: &Value) -> Result<Self, Status> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (mut policy, orphan) = (text(&value["propagationPolicy"]), value["orphanDependents"].as_bool());
        let mut errors = Vec::new();
        if let Some(policy) = &policy {
            if orphan.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", &json!(policy), detail));
            }
            if !matches!(&**policy, "Background" | "Foreground" | "Orphan") {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", &json!(policy), &known));
            }
        }
        if meta::list(&value["dryRun"]).any(|run| run != "All") {
            errors.push(FieldError::not_supported("dryRun", &value["dryRun"], &["All"]));
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &errors));
        }
        if let Some(orphan) = orphan {
            policy = Some(if orphan { "Orphan" } else { "Background" }.to_owned());
        }
        Ok(Self {
            grace_period_seconds: value["gracePeriodSeconds"].as_i64(),
            uid: text(&value["preconditions"]["uid"]),
            resource_version: text(&value["preconditions"]["resourceVersion"]),
            propagation_policy: policy,
            dry_run: !meta::is_empty(&value["dryRun"]),
        })
    }
}

/// Effect of the grace period on an object.
enum GraceOutcome {
    /// There is no grace period. Unless a finalizer keeps the object, it is removed at once, without another write.
    None,
    /// The object is already marked as deleted, and this request does not shorten its grace period.
    Pending,
    /// The object is marked as deleted with a grace period of this many seconds. With 0 seconds, it is also removed at once,
    /// unless a finalizer keeps it.
    Marked(i64),
}

impl State {
    /// Deletes an object, or only marks it as deleted if a grace period or a finalizer keeps it.
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
        if kind.slot == PRIORITY_CLASSES.slot && matches!(name, "system-node-critical" | "system-cluster-critical") {
            return Err(Status::forbidden(kind, name, "this is a system priority class and cannot be deleted"));
        }
        check_preconditions(kind, &object, options)?;
        if kind.slot == NAMESPACES.slot {
            return Ok(self.delete_namespace(&object, options));
        }
        if kind.slot == PODS.slot && !options.dry_run {
            self.pod_deletions += 1;
        }
        let mut value = object.value();
        let grace = self.mark(kind, &mut value, options);
        if matches!(grace, GraceOutcome::Pending) {
            return Ok(Deleted { object, gone: false });
        }
        set_propagation(kind, &mut value, options);
        let kept_by_finalizer = meta::finalizers(&value).next().is_some();
        let gone = match grace {
            GraceOutcome::None if kept_by_finalizer => {
                mark_without_grace(self.now, &mut value);
                false
            }
            // The object is removed without another write, even if the propagation policy has removed finalizers.
            GraceOutcome::None if !options.dry_run => return Ok(Deleted { object: self.remove(&object), gone: true }),
            GraceOutcome::None => true,
            GraceOutcome::Marked(seconds) => seconds == 0 && !kept_by_finalizer,
            GraceOutcome::Pending => false,
        };
        if options.dry_run {
            let marked = Object::encode(object.kind, object.key.clone(), object.version, &value, Some(&object));
            return Ok(Deleted { object: Arc::new(marked), gone });
        }
        let marked = self.replace(&object, &value);
        if gone {
            return Ok(Deleted { object: self.remove(&marked), gone: true });
        }
        Ok(Deleted { object: marked, gone: false })
    }

    /// Marks a namespace as deleted. If it is marked already, removes it once it has no finalizers.
    /// Follows `pkg/registry/core/namespace/storage/storage.go#REST.Delete @v1.36.3`.
    fn delete_namespace(&mut self, object: &Arc<Object>, options: &DeleteOptions) -> Deleted {
        let mut value = object.value();
        if meta::is_deleting(&value) {
            let kept = !meta::is_empty(&value["spec"]["finalizers"]) || meta::finalizers(&value).next().is_some();
            if kept || options.dry_run {
                return Deleted { object: object.clone(), gone: !kept };
            }
            return Deleted { object: self.remove(object), gone: true };
        }
        let now = meta::time_text(self.now);
        meta::metadata(&mut value).insert("deletionTimestamp".to_owned(), json!(now));
        meta::child(&mut value, "status").insert("phase".to_owned(), json!("Terminating"));
        let marked = if options.dry_run {
            Arc::new(Object::encode(object.kind, object.key.clone(), object.version, &value, Some(object)))
        } else {
            self.replace(object, &value)
        };
        Deleted { object: marked, gone: false }
    }

    /// Deletes every object of a selection. Returns the objects as they were before.
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

    /// Writes the marks of a graceful deletion into `value`. Only pods are deleted gracefully.
    fn mark(&self, kind: &Kind, value: &mut Value, options: &DeleteOptions) -> GraceOutcome {
        let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
        if kind.slot != PODS.slot {
            return GraceOutcome::None;
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
        GraceOutcome::Marked(seconds)
    }

    /// Handles a delete of a pod that is already marked as deleted. If the pod's grace period is 0, it is removed unless a
    /// finalizer keeps it. Otherwise only a shorter grace period has an effect.
    fn shorten(&self, value: &mut Value, asked: Option<i64>) -> GraceOutcome {
        let current = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if current == 0 {
            return GraceOutcome::None;
        }
        let Some(mut seconds) = asked.filter(|asked| *asked < current) else { return GraceOutcome::Pending };
        let marked: Timestamp = meta::text(value, "deletionTimestamp").parse().unwrap_or(self.now);
        let mut at = after(marked, seconds - current);
        if at < self.now {
            at = self.now;
            seconds = seconds.min(1);
        }
        let metadata = meta::metadata(value);
        metadata.insert("deletionTimestamp".to_owned(), json!(meta::time_text(at)));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
        GraceOutcome::Marked(seconds)
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

/// Marks an object as deleted with a grace period of 0.
/// Follows `apiserver/pkg/registry/generic/registry/store.go#markAsDeleting @v1.36.3`.
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

/// Adds or removes the finalizers that tell the garbage collector what to do with the object's dependents.
/// Follows `apiserver/pkg/registry/generic/registry/store.go#deletionFinalizersForGarbageCollection @v1.36.3`.
fn set_propagation(kind: &Kind, value: &mut Value, options: &DeleteOptions) {
    let is_decided = meta::finalizers(value).any(|name| matches!(name, FOREGROUND | ORPHAN));
    // Upstream orphans the pods of jobs and replication controllers by default.
    let orphans = kind.slot == JOBS.slot || kind.slot == REPLICATION_CONTROLLERS.slot;
    let policy = options.propagation_policy.as_deref().or((orphans && !is_decided).then_some("Orphan"));
    let Some(policy) = policy else { return };
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

pub(super) fn check_preconditions(kind: &Kind, object: &Object, options: &DeleteOptions) -> Result<(), Status> {
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
