//! JSON patch, RFC 6902, with the deviations of the library that upstream uses.
//!
//! `github.com/evanphx/json-patch` (v4) differs from the RFC in three ways. It replaces members that do not exist, reads
//! missing values as `null`, and counts negative indexes from the end of a list. This module supports negative indexes in
//! `replace` only. The `json-patch` crate follows the RFC in all three, so it is used only for merge patches. If a test fails
//! or a path does not exist, the whole patch gets status 422.
//! Follows `apiserver/pkg/endpoints/handlers/patch.go#jsonPatcher.applyJSPatch @v1.36.3`.

use serde_json::Value;

use crate::apimachinery::Status;

/// Applies the operations of `patch` one after another.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), Status> {
    let Some(operations) = patch.as_array() else {
        return Err(Status::bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch"));
    };
    operations.iter().try_for_each(|operation| step(target, operation)).ok_or_else(Status::unprocessable)
}

/// Applies one operation of a patch. Returns `None` if it cannot be applied.
fn step(target: &mut Value, operation: &Value) -> Option<()> {
    let path = pointer(&operation["path"])?;
    let value = operation["value"].clone();
    match operation["op"].as_str()? {
        "add" => add(target, &path, value),
        "remove" => remove(target, &path).map(drop),
        "replace" => replace(target, &path, value),
        "move" => {
            let moved = remove(target, &pointer(&operation["from"])?)?;
            add(target, &path, moved)
        }
        "copy" => {
            let copied = find(target, &pointer(&operation["from"])?)?.clone();
            add(target, &path, copied)
        }
        "test" => {
            let expected = operation.get("value").unwrap_or(&Value::Null);
            (find(target, &path).unwrap_or(&Value::Null) == expected).then_some(())
        }
        _ => None,
    }
}

/// Splits a JSON pointer into its steps.
fn pointer(text: &Value) -> Option<Vec<String>> {
    let text = text.as_str()?;
    match text.strip_prefix('/') {
        Some(rest) => Some(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect()),
        None => text.is_empty().then(Vec::new),
    }
}

fn find<'a>(target: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(target, |at, step| match at {
        Value::Object(map) => map.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn find_mut<'a>(target: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(target, |at, step| match at {
        Value::Object(map) => map.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Replaces the value at the path. The member need not exist, as in upstream's library.
fn replace(target: &mut Value, path: &[String], value: Value) -> Option<()> {
    put(target, path, value, |items, last, value| {
        let at = position(last, items.len())?;
        *items.get_mut(at)? = value;
        Some(())
    })
}

fn add(target: &mut Value, path: &[String], value: Value) -> Option<()> {
    put(target, path, value, |items, last, value| {
        let at = if last == "-" { items.len() } else { last.parse().ok().filter(|at| *at <= items.len())? };
        items.insert(at, value);
        Some(())
    })
}

/// Sets the value at the end of the path. Calls `into_list` if the parent is a list.
fn put(
    target: &mut Value,
    path: &[String],
    value: Value,
    into_list: impl FnOnce(&mut Vec<Value>, &str, Value) -> Option<()>,
) -> Option<()> {
    let Some((last, parents)) = path.split_last() else {
        *target = value;
        return Some(());
    };
    match find_mut(target, parents)? {
        Value::Object(map) => {
            map.insert(last.clone(), value);
            Some(())
        }
        Value::Array(items) => into_list(items, last, value),
        _ => None,
    }
}

/// Parses a list index. A negative index counts from the end.
fn position(text: &str, length: usize) -> Option<usize> {
    match text.strip_prefix('-') {
        None => text.parse().ok(),
        Some(back) => length.checked_sub(back.parse().ok()?),
    }
}

fn remove(target: &mut Value, path: &[String]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    match find_mut(target, parents)? {
        Value::Object(map) => map.remove(last),
        Value::Array(items) => {
            let at = last.parse().ok().filter(|at| *at < items.len())?;
            Some(items.remove(at))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(target: Value, patch: &Value, expected: &Value) {
        let mut target = target;
        apply(&mut target, patch).unwrap();
        assert_eq!(&target, expected);
    }

    #[test]
    fn json_patch_operations_are_applied() {
        check(json!({}), &json!([{"op": "add", "path": "/a", "value": 1}]), &json!({"a": 1}));
        check(json!({"l": [1, 3]}), &json!([{"op": "add", "path": "/l/1", "value": 2}]), &json!({"l": [1, 2, 3]}));
        check(json!({"l": [1]}), &json!([{"op": "add", "path": "/l/-", "value": 2}]), &json!({"l": [1, 2]}));
        check(json!({"a/b": 1}), &json!([{"op": "remove", "path": "/a~1b"}]), &json!({}));
        check(json!({"a": 1}), &json!([{"op": "move", "from": "/a", "path": "/b"}]), &json!({"b": 1}));
        check(
            json!({"a": {"x": 1}}),
            &json!([{"op": "copy", "from": "/a", "path": "/b"}, {"op": "replace", "path": "/b/x", "value": 2}]),
            &json!({"a": {"x": 1}, "b": {"x": 2}}),
        );
    }

    #[test]
    fn a_failed_test_fails_the_patch() {
        let status = apply(&mut json!({"a": 1}), &json!([{"op": "test", "path": "/a", "value": 2}])).unwrap_err();
        assert_eq!((status.code, status.reason), (422, "Invalid"));
        assert_eq!(status.message, "the server rejected our request due to an error in our request");
    }
}
