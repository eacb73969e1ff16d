//! Server-side apply: a client sends the fields that it wants to set, and owns these fields from then on.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::can_own;
use super::managed::{Managed, Manager, Owned};
use super::set::{self, Fields, Path};
use super::walk::{Difference, Walk};
use crate::apimachinery::{FieldError, Status};
use crate::apiserver::kinds::Kind;
use crate::apiserver::origin::Origin;
use crate::apiserver::part::Part;
use crate::apiserver::schema::SchemaNode;
use crate::apiserver::store::State;
use crate::apiserver::update::{UpdateBase, Updated};
use crate::apiserver::{decode, events, meta};

/// Annotation in which kubectl's client-side apply keeps the last applied configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A server-side apply request.
pub(in crate::apiserver) struct Apply {
    pub(in crate::apiserver) manager: String,
    pub(in crate::apiserver) force: bool,
    pub(in crate::apiserver) config: Value,
}

impl Apply {
    /// Parses the body of an apply request.
    pub(in crate::apiserver) fn parse(manager: &str, force: bool, body: &[u8]) -> Result<Self, Status> {
        if manager.is_empty() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(Status::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        let config = serde_yaml::from_slice(body)
            .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
        Ok(Self { manager: manager.to_owned(), force, config })
    }

    fn check(&self, kind: &Kind, name: &str) -> Result<(), Status> {
        let expected = kind.api_version();
        let version = self.config["apiVersion"].as_str().unwrap_or_default();
        if version != expected {
            return Err(Status::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {expected}"
            )));
        }
        if !self.config["metadata"]["managedFields"].is_null() {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        match meta::text(&self.config, "name") {
            "" => Ok(()),
            own if own == name => Ok(()),
            own => Err(Status::bad_request(format!(
                "the name of the object ({own}) does not match the name on the URL ({name})"
            ))),
        }
    }
}

impl State {
    /// Applies a configuration to an object. Creates the object if it does not exist.
    pub(in crate::apiserver) fn apply(
        &mut self,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        part: Part,
        apply: &Apply,
        dry_run: bool,
    ) -> Result<Updated, Status> {
        if !self.settings.exact {
            return Err(Status::unsupported_media_type(
                "server-side apply is not supported: this server does not track field managers",
            ));
        }
        apply.check(kind, name)?;
        let unknown = decode::read(kind, apply.config.clone(), false).map(|(_, unknown)| unknown).unwrap_or_default();
        if !unknown.is_empty() {
            return Err(undeclared(kind, &apply.config, (namespace, name), &unknown));
        }
        let mut config = apply.config.clone();
        meta::metadata(&mut config).insert("name".to_owned(), json!(name));
        let manager = Manager {
            name: apply.manager.clone(),
            applies: true,
            version: String::new(),
            subresource: if part == Part::Status { "status" } else { "" }.to_owned(),
        };
        let Ok(old) = self.existing(kind, namespace, name) else {
            if part == Part::Status {
                return Err(Status::not_found(kind, name));
            }
            return self.apply_new(kind, namespace, &manager, config, dry_run);
        };
        let before = UpdateBase::read(old, part, true)?;
        let mut live = before.value().clone();
        events::to_view(kind, &mut live);
        let (mut value, managed) = self.applied_to(kind, part, &manager, &live, &config, apply.force)?;
        value = self.oddities.typed(kind, value)?;
        events::to_storage(kind, &mut value);
        self.applied = Some(managed);
        let updated = self.update(kind, &before, part, value, dry_run);
        self.applied = None;
        Ok(Updated { object: updated?, created: false })
    }

    fn apply_new(
        &mut self,
        kind: &'static Kind,
        namespace: &str,
        manager: &Manager,
        config: Value,
        dry_run: bool,
    ) -> Result<Updated, Status> {
        let owned = self.owned(kind, Part::Main, &config);
        self.applied = Some(Managed(BTreeMap::from([(manager.clone(), owned)])));
        let created = self.create(kind, namespace, config, Origin::Client, dry_run);
        self.applied = None;
        Ok(Updated { object: created?, created: true })
    }

    /// Returns the fields that a manager owns by applying a configuration.
    fn owned(&self, kind: &Kind, part: Part, config: &Value) -> Owned {
        let mut fields = Fields::default();
        Walk::new(kind).fields(config, &mut fields);
        fields.retain(|path| can_own(kind, part, path));
        Owned { fields, version: kind.api_version(), time: Some(self.now) }
    }

    /// Returns the object and its managers after an apply. Follows
    /// `sigs.k8s.io/structured-merge-diff/v6/merge/update.go#Updater.Apply`.
    fn applied_to(
        &self,
        kind: &Kind,
        part: Part,
        manager: &Manager,
        live: &Value,
        config: &Value,
        force: bool,
    ) -> Result<(Value, Managed), Status> {
        let mut managed = Managed::of(live);
        if managed.0.is_empty() {
            managed = Self::before_first_apply(kind, live);
        }
        let mut value = live.clone();
        Walk::new(kind).merge(&mut value, config);
        let last = managed.0.insert(manager.clone(), self.owned(kind, part, config));
        if let Some(last) = &last {
            prune(kind, &mut value, &last.fields, &managed);
        }
        if value == *live
            && let Some(now) = managed.0.get_mut(manager)
        {
            // An apply that changes nothing keeps the manager's time. Follows
            // `apimachinery/pkg/util/managedfields/internal/managedfieldsupdater.go#managedFieldsUpdater.Apply`.
            now.time = last.and_then(|last| last.time);
        }
        let mut difference = Difference::default();
        Walk::new(kind).compare(Some(live), Some(&value), &mut difference);
        for fields in [&mut difference.added, &mut difference.removed, &mut difference.modified] {
            fields.retain(|path| can_own(kind, part, path));
        }
        let changed = difference.added.clone().union(&difference.modified);
        let others = managed.0.iter().filter(|(other, _)| *other != manager);
        let mut conflicts: Vec<(&Manager, &Owned, Fields)> =
            others.map(|(other, owned)| (other, owned, owned.fields.common(&changed))).collect();
        if manager.name == "kubectl" {
            let allowed = last_applied(kind, live);
            conflicts.iter_mut().for_each(|(.., fields)| *fields = std::mem::take(fields).without(&allowed));
        }
        conflicts.retain(|(_, _, fields)| !fields.is_empty());
        if !force && !conflicts.is_empty() {
            return Err(conflict(&conflicts));
        }
        managed.yield_to(manager, &difference);
        if manager.name == "kubectl" && !live["metadata"]["annotations"][LAST_APPLIED].is_null() {
            let annotations = meta::metadata(&mut value).entry("annotations").or_insert_with(|| json!({}));
            annotations[LAST_APPLIED] = json!(format!("{config}\n"));
        }
        Ok((value, managed))
    }

    /// Returns the managers before the first apply to an object without managers: one manager that owns all fields.
    /// Follows `apimachinery/pkg/util/managedfields/internal/skipnonapplied.go#skipNonAppliedManager.Apply`.
    fn before_first_apply(kind: &Kind, live: &Value) -> Managed {
        let found = Self::difference(kind, Part::Main, live, None);
        let version = kind.api_version();
        let manager = Manager {
            name: "before-first-apply".to_owned(),
            applies: false,
            version: version.clone(),
            subresource: String::new(),
        };
        Managed(BTreeMap::from([(manager, Owned { fields: found.added.union(&found.modified), version, time: None })]))
    }
}

/// Removes the fields that the manager applied before and that no manager owns any more.
fn prune(kind: &Kind, value: &mut Value, last: &Fields, managed: &Managed) {
    let is_owned = |path: &Path| managed.0.values().any(|owned| owned.fields.reaches(path));
    for path in last.iter().filter(|path| !is_owned(path)) {
        Walk::new(kind).remove(value, path);
    }
}

/// Returns the fields that kubectl's client-side apply has set and that still have the applied values. Follows
/// `apimachinery/pkg/util/managedfields/internal/lastappliedmanager.go#lastAppliedManager.allowedConflictsFromLastApplied`.
fn last_applied(kind: &Kind, live: &Value) -> Fields {
    let mut fields = Fields::default();
    let text = live["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap_or_default();
    let Ok(config) = serde_json::from_str::<Value>(text) else { return fields };
    if config["apiVersion"] != kind.api_version().as_str() {
        return fields;
    }
    Walk::new(kind).fields(&config, &mut fields);
    let mut difference = Difference::default();
    Walk::new(kind).compare(Some(&config), Some(live), &mut difference);
    fields.without(&difference.modified).without(&difference.added).without(&difference.removed)
}

/// Returns the error for unknown members. An apply rejects them regardless of field validation. Follows
/// `apimachinery/pkg/util/managedfields/internal/structuredmerge.go#structuredMergeManager.Apply` and
/// `sigs.k8s.io/structured-merge-diff/v6/typed/validate.go`.
fn undeclared(kind: &Kind, config: &Value, (namespace, name): (&str, &str), unknown: &[String]) -> Status {
    let texts: Vec<String> =
        unknown.iter().map(|path| format!("{}: field not declared in schema", keyed(kind, config, path))).collect();
    let list = match &*texts {
        [text] => text.clone(),
        texts => format!("errors:\n  {}\n", texts.join("\n  ")),
    };
    let (namespace, name) = if kind.namespaced { (namespace, name) } else { ("", name) };
    let place = format!("{namespace}/{name}; {}, Kind={}", full_version(kind), kind.kind);
    Status::unknown(format!("failed to create typed patch object ({place}): {list}"))
}

fn full_version(kind: &Kind) -> String {
    format!("{}/{}", kind.group, kind.version)
}

/// Rewrites a path such as `spec.containers[0].foo`: replaces the positions of list elements with their keys.
fn keyed(kind: &Kind, config: &Value, path: &str) -> String {
    let (mut text, mut place, mut at) = (String::new(), SchemaNode::root(kind), config);
    for part in path.split('.') {
        let (name, index) = part.split_once('[').unwrap_or((part, ""));
        text.extend([".", name]);
        place = place.member(name);
        at = &at[name];
        if let Some(item) = index.trim_end_matches(']').parse::<usize>().ok().map(|index| &at[index]) {
            at = item;
            match super::walk::step_to(place.how, item) {
                Some(step) => text += &set::text(&[step]),
                None => text.extend(["[", index]),
            }
            place = place.element();
        }
    }
    text
}

/// Returns the error for fields that other managers own.
/// Follows `apimachinery/pkg/util/managedfields/internal/conflict.go#NewConflictError`.
fn conflict(conflicts: &[(&Manager, &Owned, Fields)]) -> Status {
    let shown = |manager: &Manager, owned: &Owned| {
        let through = match &*manager.subresource {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        // The time is not part of a manager's name, so the message never shows it.
        let using = if manager.applies { String::new() } else { format!(" using {}", owned.version) };
        format!("{:?}{through}{using}", manager.name)
    };
    let count: usize = conflicts.iter().map(|(_, _, fields)| fields.iter().count()).sum();
    let message = match conflicts {
        [(manager, owned, fields)] if count == 1 => {
            let path = fields.iter().next().map(|path| set::text(path)).unwrap_or_default();
            format!("Apply failed with 1 conflict: conflict with {}: {path}", shown(manager, owned))
        }
        _ => {
            let mut lines = Vec::new();
            for (manager, owned, fields) in conflicts {
                lines.push(format!("conflicts with {}:", shown(manager, owned)));
                lines.extend(fields.iter().map(|path| format!("- {}", set::text(path))));
            }
            format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
        }
    };
    let mut status = Status::apply_conflict(message);
    for (manager, owned, fields) in conflicts {
        for path in fields.iter() {
            let text = format!("conflict with {}", shown(manager, owned));
            status = status.cause("FieldManagerConflict", text, set::text(path));
        }
    }
    status
}
