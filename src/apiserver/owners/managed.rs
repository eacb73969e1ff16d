//! The managers of an object, and the fields that each of them owns.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::Fields;
use super::walk::Difference;
use crate::apiserver::meta;

/// A field manager, as `managedFields` identifies it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Manager {
    pub(super) name: String,
    /// Whether the manager writes by server-side apply.
    pub(super) applies: bool,
    /// API version of an update. Empty for an apply, where one manager covers all versions.
    pub(super) version: String,
    pub(super) subresource: String,
}

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: Fields,
    pub(super) version: String,
    pub(super) time: Option<Timestamp>,
}

/// All field managers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::apiserver) struct Managed(pub(super) BTreeMap<Manager, Owned>);

impl Managed {
    /// Reads the managers of an object. There are none if `managedFields` is absent or cannot be read.
    pub(in crate::apiserver) fn of(value: &Value) -> Self {
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

    /// Returns the value of `managedFields`. Follows
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

    /// Removes the changed fields from all managers except `keeper`, and the removed fields from all managers.
    pub(super) fn yield_to(&mut self, keeper: &Manager, difference: &Difference) {
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

/// Writes the managers into an object.
pub(in crate::apiserver) fn set(metadata: &mut Map<String, Value>, managed: Option<&Managed>) {
    match managed.filter(|managed| !managed.0.is_empty()) {
        Some(managed) => drop(metadata.insert("managedFields".to_owned(), managed.to_value())),
        None => drop(metadata.remove("managedFields")),
    }
}
