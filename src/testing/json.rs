//! Editing JSON objects by path.

use serde_json::{Map, Value, json};

/// Returns the object at a path. Creates missing objects on the path.
pub(super) fn object<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = value;
    for key in path {
        at = at.as_object_mut().expect("an object on the path").entry(*key).or_insert_with(|| json!({}));
    }
    at.as_object_mut().expect("an object at the end of the path")
}

/// Returns the list at a path and key. Creates the list if it is missing.
pub(super) fn list<'a>(value: &'a mut Value, path: &[&str], key: &str) -> &'a mut Vec<Value> {
    object(value, path).entry(key).or_insert_with(|| json!([])).as_array_mut().expect("a list at the end of the path")
}

/// Sets the field at a dotted path.
pub(super) fn set(object: &mut Value, path: &str, value: Value) {
    let (path, key) = path.rsplit_once('.').unwrap_or(("", path));
    let path: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    self::object(object, &path).insert(key.into(), value);
}

/// Returns a taint, or a toleration without its operator.
pub(super) fn toleration_or_taint(key: &str, value: &str, effect: &str) -> Map<String, Value> {
    let mut entry = Map::new();
    for (field, text) in [("key", key), ("value", value), ("effect", effect)] {
        if !text.is_empty() {
            entry.insert(field.into(), text.into());
        }
    }
    entry
}
