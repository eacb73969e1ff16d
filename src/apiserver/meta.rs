//! Access to the `metadata` of parsed objects, for reading and writing.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Returns a string of the metadata, or "" if it is absent.
pub(super) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

/// Returns the metadata for writing. Creates it if it is missing or not an object.
pub(super) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    child(object, "metadata")
}

/// Returns the object under `key` for writing. Creates it if it is missing or not an object.
pub(super) fn child<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let slot = &mut object[key];
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("made an object above")
}

/// Sets `key` to `value`, or removes it if the value is `Null`.
pub(super) fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    if value.is_null() {
        map.remove(key);
    } else {
        map.insert(key.to_owned(), value);
    }
}

/// Returns the finalizers of an object.
pub(super) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    list(&object["metadata"]["finalizers"]).filter_map(Value::as_str)
}

/// Whether the deletion of the object has started.
pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Returns the elements of a list. An absent list has no elements.
pub(super) fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

/// Whether Go omits a value from JSON as empty: absent, empty, 0 or false.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Formats a time as `metav1.Time` does: whole seconds, UTC.
pub(super) fn time_text(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
/// Removes duplicate owner references. Follows `apiserver/pkg/endpoints/handlers/rest.go#dedupOwnerReferences @v1.36.3`.
pub(super) fn dedup_owners(value: &mut Value) {
    if let Some(owners) = value.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
        let mut known: Vec<Value> = Vec::with_capacity(owners.len());
        for owner in owners.drain(..) {
            if !known.contains(&owner) {
                known.push(owner);
            }
        }
        *owners = known;
    }
}
