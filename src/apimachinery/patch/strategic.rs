//! Strategic merge patch: a merge patch that merges lists of objects by their merge keys.
//!
//! Follows `apimachinery/pkg/util/strategicpatch/patch.go#mergeMap @v1.36.3`.

use serde_json::{Map, Value};

use super::{ListMerge, PatchMeta};
use crate::apimachinery::Status;
use crate::go::print;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Applies `patch` to `target`, an object of the type that `meta` describes.
pub fn apply(meta: &dyn PatchMeta, target: &mut Value, patch: &Value) -> Result<(), Status> {
    let Some(patch) = patch.as_object() else {
        return Err(Status::bad_request("error decoding patch: a strategic merge patch must be an object"));
    };
    Change { meta }.object(as_object(target), patch, &mut String::new())
}

/// A patch of an object of one type.
struct Change<'a> {
    meta: &'a dyn PatchMeta,
}

impl Change<'_> {
    /// Merges a patch into an object. `trail` is its path, without list indexes.
    fn object(
        &self,
        target: &mut Map<String, Value>,
        patch: &Map<String, Value>,
        trail: &mut String,
    ) -> Result<(), Status> {
        match patch.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            Some("replace") => {
                *target = plain(patch);
                return Ok(());
            }
            Some("delete") => {
                target.clear();
                return Ok(());
            }
            Some("merge") | None => {}
            Some(other) => return Err(bad_directive(other)),
        }
        if let Some(retained) = patch.get(RETAIN_KEYS).and_then(Value::as_array) {
            target.retain(|key, _| retained.iter().any(|kept| kept.as_str() == Some(key)));
        }
        for (key, value) in patch {
            if let Some(list) = key.strip_prefix(DELETE_VALUES)
                && let Some(Value::Array(items)) = target.get_mut(list)
            {
                let gone = value.as_array().map_or(&[][..], Vec::as_slice);
                items.retain(|item| !gone.contains(item));
            }
        }
        for (key, value) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
            let length = trail.len();
            if !trail.is_empty() {
                trail.push('.');
            }
            trail.push_str(key);
            self.member(target, key, value, patch.get(&format!("{ORDER}{key}")), trail)?;
            trail.truncate(length);
        }
        for (key, order) in patch {
            let Some(list) = key.strip_prefix(ORDER) else { continue };
            if patch.contains_key(list) {
                continue;
            }
            let list_path = if trail.is_empty() { list.to_owned() } else { format!("{trail}.{list}") };
            if let (Some(Value::Array(items)), Some(order)) = (target.get_mut(list), order.as_array()) {
                sort(items, &[], order, self.meta.list(&list_path));
            }
        }
        Ok(())
    }

    fn member(
        &self,
        target: &mut Map<String, Value>,
        key: &str,
        patch: &Value,
        order: Option<&Value>,
        trail: &mut String,
    ) -> Result<(), Status> {
        // A value that is missing or has another type is replaced, not merged.
        let is_merged = match patch {
            Value::Object(_) => target.get(key).is_some_and(Value::is_object),
            Value::Array(_) => target.get(key).is_some_and(Value::is_array),
            _ => true,
        };
        if !is_merged {
            match taken(patch) {
                Some(value) => drop(target.insert(key.to_owned(), value)),
                None => drop(target.remove(key)),
            }
            return Ok(());
        }
        match patch {
            Value::Null => {
                target.remove(key);
            }
            Value::Object(patch) => {
                let slot = target.entry(key).or_insert(Value::Null);
                if self.meta.replaces_object(trail) {
                    *slot = Value::Null;
                }
                self.object(as_object(slot), patch, trail)?;
            }
            Value::Array(patch) => {
                let merge = self.meta.list(trail);
                let slot = target.entry(key).or_insert(Value::Null);
                let mut items = slot.as_array_mut().map(std::mem::take).unwrap_or_default();
                self.list(&mut items, patch, order, merge, trail)?;
                *slot = Value::Array(items);
            }
            other => {
                target.insert(key.to_owned(), other.clone());
            }
        }
        Ok(())
    }

    fn list(
        &self,
        items: &mut Vec<Value>,
        patch: &[Value],
        order: Option<&Value>,
        merge: ListMerge,
        trail: &mut String,
    ) -> Result<(), Status> {
        let before = items.clone();
        match merge {
            ListMerge::Replace => {
                *items = patch.to_vec();
                return Ok(());
            }
            ListMerge::Values => {
                for value in patch {
                    if !items.contains(value) {
                        items.push(value.clone());
                    }
                }
            }
            ListMerge::Key(key) => {
                delete_elements(items, patch, key)?;
                if replaces(patch) {
                    items.clear();
                }
                let mut merged = patch.iter().filter(|element| element.get(DIRECTIVE).is_none());
                merged.try_for_each(|element| self.element(items, element, key, trail))?;
            }
        }
        let by_patch: Vec<Value>;
        let order = if let Some(order) = order.and_then(Value::as_array) {
            order
        } else {
            by_patch = patch.iter().filter(|element| element.get(DIRECTIVE).is_none()).cloned().collect();
            &by_patch
        };
        sort(items, &before, order, merge);
        Ok(())
    }

    fn element(&self, items: &mut Vec<Value>, element: &Value, key: &str, trail: &mut String) -> Result<(), Status> {
        let name = name_of(element, key)?;
        let at = items.iter().position(|item| item.get(key) == Some(name)).unwrap_or_else(|| {
            items.push(Value::Object(Map::new()));
            items.len() - 1
        });
        match element.as_object() {
            Some(patch) => self.object(as_object(&mut items[at]), patch, trail),
            None => Ok(()),
        }
    }
}

/// Removes the elements for which the patch has delete directives.
/// Follows `apimachinery/pkg/util/strategicpatch/patch.go#mergeSliceWithSpecialElements @v1.36.3`.
fn delete_elements(items: &mut Vec<Value>, patch: &[Value], key: &str) -> Result<(), Status> {
    for element in patch {
        match element.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            Some("delete") => {
                let name = name_of(element, key)?;
                items.retain(|item| item.get(key) != Some(name));
            }
            Some("merge") => return Err(Status::unknown("merging lists cannot yet be specified in the patch")),
            Some("replace") | None => {}
            Some(other) => return Err(bad_directive(other)),
        }
    }
    Ok(())
}

/// Returns the value of an element's merge key.
fn name_of<'a>(element: &'a Value, key: &str) -> Result<&'a Value, Status> {
    element.get(key).ok_or_else(|| {
        Status::unknown(format!("map: {} does not contain declared merge key: {key}", print::plain(element)))
    })
}

/// Whether a list in a patch replaces the whole list.
fn replaces(patch: &[Value]) -> bool {
    patch.iter().any(|element| element[DIRECTIVE] == "replace")
}

/// Sorts `items` by the order that a patch gives for some or all of them. All other items keep their positions relative to the
/// ordered items, as in `before` or, if that is empty, as in `items`. Follows
/// `apimachinery/pkg/util/strategicpatch/patch.go#normalizeElementOrder @v1.36.3`: the ordered items are sorted first. Then
/// each other item is put before the first ordered item that came after it.
fn sort(items: &mut Vec<Value>, before: &[Value], order: &[Value], merge: ListMerge) {
    let name = |item: &Value| match merge {
        ListMerge::Key(key) => item.get(key).cloned().unwrap_or_default(),
        ListMerge::Values | ListMerge::Replace => item.clone(),
    };
    let order: Vec<Value> = order.iter().map(name).collect();
    let place = |item: &Value| {
        let name = name(item);
        order.iter().position(|ordered| *ordered == name)
    };
    let origin: Vec<Value> =
        if before.is_empty() { items.iter().map(name).collect() } else { before.iter().map(name).collect() };
    let stood = |item: &Value| {
        let name = name(item);
        origin.iter().position(|known| *known == name)
    };
    let (mut ordered, others): (Vec<Value>, Vec<Value>) = items.drain(..).partition(|item| place(item).is_some());
    ordered.sort_by_key(|item| place(item));
    let (mut ordered, mut others) = (ordered.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(left), Some(right)) = (ordered.peek(), others.peek()) {
        // Two items that were both on the server keep their order. Otherwise the client's item goes first.
        let server_first = matches!((stood(left), stood(right)), (Some(left), Some(right)) if right < left);
        items.extend(if server_first { others.next() } else { ordered.next() });
    }
    items.extend(ordered);
    items.extend(others);
}

/// Returns the value that a patch sets where the object has no value yet. Directives, nulls, and objects with a `$patch`
/// directive are left out. Follows `apimachinery/pkg/util/strategicpatch/patch.go#removeDirectives @v1.36.3`.
fn taken(patch: &Value) -> Option<Value> {
    match patch {
        Value::Null => None,
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => Some(
            members
                .iter()
                .filter(|(key, _)| !key.starts_with('$'))
                .filter_map(|(key, value)| Some((key.clone(), taken(value)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.iter().filter_map(taken).collect()),
        other => Some(other.clone()),
    }
}

/// Returns a patch's members without directives.
fn plain(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

fn bad_directive(directive: &str) -> Status {
    Status::unknown(format!("unknown patch type found: {directive}"))
}
