//! Ownership of fields: `managedFields`, maintained by every write of a server that is [`exact`](super::Options::exact).
//!
//! Follows `apimachinery/pkg/util/managedfields/internal @v1.36.3` and `sigs.k8s.io/structured-merge-diff/v6/merge/update.go`.

mod apply;
mod author;
mod managed;
mod set;
mod walk;

use serde_json::{Value, json};

use super::kinds::Kind;
use super::part::Part;
use super::store::State;
use super::{defaulting, events, schema};
pub(super) use apply::Apply;
pub(super) use author::Author;
pub(super) use managed::{Managed, set};
use managed::{Manager, Owned};
use set::{Fields, Path, Step};
use walk::{Difference, Walk};

/// Field manager of the built-in objects.
const SERVER: &str = "kube-apiserver";

/// Metadata fields that no manager owns. `apimachinery/pkg/util/managedfields/internal/stripmeta.go#NewStripMetaManager`.
const UNOWNED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

fn is_field(step: Option<&Step>, names: &[&str]) -> bool {
    matches!(step, Some(Step::Field(name)) if names.contains(&name.as_str()))
}

/// Whether a write of `part` can own a field. Fields that the kind's strategy resets have no owner.
fn can_own(kind: &Kind, part: Part, path: &Path) -> bool {
    let (first, second) = (path.first(), path.get(1));
    if is_field(first, &["apiVersion", "kind"]) || is_field(first, &["metadata"]) && path.len() == 1 {
        return false;
    }
    if is_field(first, &["metadata"]) && is_field(second, &UNOWNED) {
        return false;
    }
    match part {
        Part::Main | Part::Finalizers => !(kind.has_status && is_field(first, &["status"])),
        Part::Status => is_field(first, &["status", "metadata"]),
    }
}

impl State {
    /// Returns the managers after a write of `value`, which is the client's object with defaults. `old` is the object before an
    /// update, and `None` for a new object. Returns `None` if the server does not track ownership.
    pub(super) fn managers(&self, kind: &Kind, part: Part, value: &Value, old: Option<&Value>) -> Option<Managed> {
        if !self.settings.exact {
            return None;
        }
        if let Some(applied) = &self.applied {
            return Some(applied.clone());
        }
        let mut managed = Managed::of(value);
        if managed.0.is_empty()
            && let Some(old) = old
        {
            managed = Managed::of(old);
            // An update does not add managers to an object without managers.
            if managed.0.is_empty() {
                return Some(managed);
            }
        }
        let difference = Self::difference(kind, part, value, old);
        let (name, through) =
            self.author.as_ref().map_or((SERVER, ""), |author| (author.manager.as_str(), author.through));
        let subresource = if part == Part::Status { "status" } else { through };
        let version = kind.api_version();
        let manager = Manager {
            name: name.to_owned(),
            applies: false,
            version: version.clone(),
            subresource: subresource.to_owned(),
        };
        managed.yield_to(&manager, &difference);
        let taken = difference.added.union(&difference.modified);
        if !taken.is_empty() {
            let owned =
                managed.0.entry(manager).or_insert_with(|| Owned { fields: Fields::default(), version, time: None });
            owned.fields = std::mem::take(&mut owned.fields).union(&taken);
            owned.time = Some(self.now).filter(|_| through.is_empty());
        }
        Some(managed)
    }

    /// Returns the managers of a new object, whose defaults are not set yet.
    pub(super) fn managers_of_new(&self, kind: &Kind, value: &Value) -> Option<Managed> {
        if !self.settings.exact {
            return None;
        }
        let mut meant = value.clone();
        // Defaults are set as for an update: values that only a create sets, such as a job's selector, have no owner.
        defaulting::apply(kind, &mut meant, Some(&Value::Null), &self.settings.gates);
        self.managers(kind, Part::Main, &meant, None)
    }

    /// Returns the changes from `old`, or from an empty object, to `value`, in the fields that the write can own.
    fn difference(kind: &Kind, part: Part, value: &Value, old: Option<&Value>) -> Difference {
        let shown = |value: &Value| {
            let mut shown = value.clone();
            schema::complete(schema::Object::of(kind.storage()), &mut shown);
            events::to_view(kind, &mut shown);
            if let Some(map) = shown["metadata"].as_object_mut() {
                map.remove("managedFields");
            }
            shown
        };
        let new = shown(value);
        let before = old.map_or_else(|| shown(&json!({"metadata": {}})), shown);
        let mut found = Difference::default();
        Walk::new(kind).compare(Some(&before), Some(&new), &mut found);
        for fields in [&mut found.added, &mut found.removed, &mut found.modified] {
            fields.retain(|path| can_own(kind, part, path));
        }
        found
    }
}
