//! Who owns which field: `managedFields`, kept at every write of a server that is [`exact`](super::Options::exact).
//!
//! Follows `apimachinery/pkg/util/managedfields/internal @v1.36.3` and `sigs.k8s.io/structured-merge-diff/v6/merge/update.go`.

mod apply;
mod set;
mod walk;

use std::collections::BTreeMap;

use http::header;
use http::request::Parts;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::kinds::Kind;
use super::route::Query;
use super::store::State;
use super::update::Part;
use super::{defaulting, events, meta, schema};
pub(super) use apply::Apply;
use set::{Fields, Path, Step};
use walk::{Difference, Walk};

/// Who writes.
#[derive(Clone, Debug)]
pub(super) struct Author {
    manager: String,
    /// A subresource that is no part of the object, such as `scale`. Who writes by that has no time.
    /// `apimachinery/pkg/util/managedfields/scalehandler.go#ScaleHandler.ToParent @v1.36.3`.
    pub(super) through: &'static str,
}

/// Who makes the objects that every cluster has.
const SERVER: &str = "kube-apiserver";

impl Author {
    /// The manager that the query names, or the program that the `User-Agent` does.
    /// Follows `apiserver/pkg/endpoints/handlers/create.go#managerOrUserAgent @v1.36.3`.
    pub(super) fn of(parts: &Parts, query: &Query) -> Self {
        let named = query.text("fieldManager");
        if !named.is_empty() {
            return Self { manager: named.to_owned(), through: "" };
        }
        let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let program = agent.split('/').next().unwrap_or_default();
        Self { manager: if program.is_empty() { "unknown" } else { program }.to_owned(), through: "" }
    }
}

/// A manager as an object names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Manager {
    name: String,
    applies: bool,
    /// Only of those who update: one who applies is the same in every version.
    version: String,
    subresource: String,
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    fields: Fields,
    version: String,
    time: Option<Timestamp>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managed(BTreeMap<Manager, Owned>);

impl Managed {
    /// Reads an object's managers; none if there are none, or what is there makes no sense.
    pub(super) fn of(value: &Value) -> Self {
        let entries = meta::list(&value["metadata"]["managedFields"]);
        Self(entries.map(Self::entry).collect::<Option<_>>().unwrap_or_default())
    }

    fn entry(entry: &Value) -> Option<(Manager, Owned)> {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let applies = match &*text("operation") {
            "Apply" => true,
            "Update" => false,
            _ => return None,
        };
        let version = text("apiVersion");
        if version.is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let manager = Manager {
            name: text("manager"),
            applies,
            version: if applies { String::new() } else { version.clone() },
            subresource: text("subresource"),
        };
        let fields = if entry["fieldsV1"].is_null() { Fields::default() } else { Fields::parse(&entry["fieldsV1"])? };
        Some((manager, Owned { fields, version, time: text("time").parse().ok() }))
    }

    /// The managers as an object has them. Follows
    /// `apimachinery/pkg/util/managedfields/internal/managedfields.go#sortEncodedManagedFields`.
    fn to_value(&self) -> Value {
        let mut entries: Vec<(&Manager, &Owned)> = self.0.iter().collect();
        entries
            .sort_by_key(|(manager, owned)| (!manager.applies, owned.time.map_or(0, Timestamp::as_second), *manager));
        let entry = |(manager, owned): (&Manager, &Owned)| {
            let mut entry = json!({
                "manager": manager.name, "operation": if manager.applies { "Apply" } else { "Update" },
                "apiVersion": owned.version, "fieldsType": "FieldsV1", "fieldsV1": owned.fields.to_value(),
            });
            if let Some(time) = owned.time {
                entry["time"] = json!(meta::time_text(time));
            }
            if !manager.subresource.is_empty() {
                entry["subresource"] = json!(manager.subresource);
            }
            entry
        };
        entries.into_iter().map(entry).collect()
    }

    /// Takes from all managers but one what has changed, and from all what is gone.
    fn yield_to(&mut self, keeper: &Manager, difference: &Difference) {
        for (manager, owned) in &mut self.0 {
            let mut fields = std::mem::take(&mut owned.fields).without(&difference.removed);
            if manager != keeper {
                fields = fields.without(&difference.added).without(&difference.modified);
            }
            owned.fields = fields;
        }
        self.0.retain(|_, owned| !owned.fields.is_empty());
    }
}

/// Metadata that nobody owns. `apimachinery/pkg/util/managedfields/internal/stripmeta.go#NewStripMetaManager`.
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

/// Whether a write of `part` can own a field: what a strategy resets belongs to nobody.
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
    /// The managers after a write of `value`, which is the object as the client means it, defaults included; `old` is the
    /// version before. `None` where nobody is kept.
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
            // Nobody is kept of an object that had nobody.
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

    /// The managers of a new object, which has no defaults yet.
    pub(super) fn managers_of_new(&self, kind: &Kind, value: &Value) -> Option<Managed> {
        if !self.settings.exact {
            return None;
        }
        let mut meant = value.clone();
        // As for an update, since what only a create adds, such as a job's selector, belongs to nobody.
        defaulting::apply(kind, &mut meant, Some(&Value::Null));
        self.managers(kind, Part::Main, &meant, None)
    }

    /// How an object differs from its version before, or from an empty one, in what a write can own.
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

/// Writes the managers into an object.
pub(super) fn set(metadata: &mut Map<String, Value>, managed: Option<&Managed>) {
    match managed.filter(|managed| !managed.0.is_empty()) {
        Some(managed) => drop(metadata.insert("managedFields".to_owned(), managed.to_value())),
        None => drop(metadata.remove("managedFields")),
    }
}
