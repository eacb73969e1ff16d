//! JSON merge patch, RFC 7386.

use serde_json::{Map, Value};

/// Lays `patch` over `target`: objects are merged, `null` removes, everything else replaces.
pub(super) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            apply(map.entry(key.as_str()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(target: Value, patch: &Value, expected: &Value) {
        let mut target = target;
        apply(&mut target, patch);
        assert_eq!(&target, expected);
    }

    #[test]
    fn merges_removes_and_replaces() {
        check(json!({"a": "b"}), &json!({"a": "c"}), &json!({"a": "c"}));
        check(json!({"a": "b", "c": 1}), &json!({"a": null}), &json!({"c": 1}));
        check(json!({"a": ["b"]}), &json!({"a": "c"}), &json!({"a": "c"}));
        check(json!({"a": {"b": "c"}}), &json!({"a": {"b": "d", "c": null}}), &json!({"a": {"b": "d"}}));
        check(json!({"a": [{"b": "c"}]}), &json!({"a": [1]}), &json!({"a": [1]}));
        check(json!({}), &json!({"a": {"bb": {"ccc": null}}}), &json!({"a": {"bb": {}}}));
        check(json!({"e": null}), &json!({"a": 1}), &json!({"e": null, "a": 1}));
    }
}
