//! Conversion of events: they are stored in the form of `events.k8s.io/v1`, and `core/v1` is a view of that form.

use bytes::Bytes;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::object::Object;
use super::schema;

/// Fields with different names in the two groups: the stored name, and the name in core.
const NAMES: [(&str, &str); 7] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Returns the object's bytes in the form of `kind`.
pub(super) fn view(kind: &Kind, object: &Object) -> Bytes {
    if !kind.is_view() || object.raw {
        return object.bytes.clone();
    }
    let mut value = object.value();
    to_view(kind, &mut value);
    value.to_string().into()
}

/// Converts an object from the stored form to the form of `kind`.
pub(super) fn to_view(kind: &Kind, value: &mut Value) {
    if kind.is_view() {
        rename(value, |(stored, core)| (stored, core));
        value["apiVersion"] = json!(kind.api_version());
        schema::complete(schema::Object::of(kind), value);
    }
}

/// Converts an object from the form of `kind` to the stored form.
pub(super) fn to_storage(kind: &Kind, value: &mut Value) {
    if kind.is_view() {
        rename(value, |(stored, core)| (core, stored));
        value["apiVersion"] = json!(kind.storage().api_version());
    }
}

fn rename(value: &mut Value, direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(map) = value.as_object_mut() else { return };
    for names in NAMES {
        let (from, to) = direction(names);
        if let Some(field) = map.remove(from) {
            map.insert(to.to_owned(), field);
        }
    }
}
