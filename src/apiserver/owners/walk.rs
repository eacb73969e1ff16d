//! Walks over objects by granularity of ownership: list fields, compare, merge, and remove.
//!
//! Follows `sigs.k8s.io/structured-merge-diff/v6/typed/tofieldset.go`,
//! `sigs.k8s.io/structured-merge-diff/v6/typed/compare.go`, `sigs.k8s.io/structured-merge-diff/v6/typed/merge.go`,
//! `sigs.k8s.io/structured-merge-diff/v6/typed/remove.go`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::set::{Fields, Path, Step};
use crate::apiserver::kinds::Kind;
use crate::apiserver::schema::{Ownership, SchemaNode};

/// Difference between two versions of an object.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) added: Fields,
    pub(super) removed: Fields,
    pub(super) modified: Fields,
}

/// Current position of a walk over an object.
pub(super) struct Walk {
    path: Path,
    place: SchemaNode,
}

/// Returns the step to a list's element, if ownership identifies the elements.
pub(super) fn step_to(how: Ownership, element: &Value) -> Option<Step> {
    match how {
        Ownership::Values => Some(Step::Value(element.to_string())),
        Ownership::Keys(keys) => {
            let member = |key: &&str| element.get(*key).map(|value| ((*key).to_owned(), value.clone()));
            let mut found: Map<String, Value> = keys.iter().filter_map(member).collect();
            // `protocol` is the only key with a default in the API.
            if keys.contains(&"protocol") {
                found.entry("protocol").or_insert_with(|| "TCP".into());
            }
            (!found.is_empty()).then(|| Step::Key(Value::Object(found).to_string()))
        }
        Ownership::Atomic | Ownership::Plain => None,
    }
}

impl Walk {
    pub(super) fn new(kind: &Kind) -> Self {
        Self { path: Vec::new(), place: SchemaNode::root(kind) }
    }

    fn how(&self) -> Ownership {
        self.place.how
    }

    fn inside<T>(&mut self, step: Step, visit: impl FnOnce(&mut Self) -> T) -> T {
        let place = match &step {
            Step::Field(name) => self.place.member(name),
            Step::Key(_) | Step::Value(_) => self.place.element(),
        };
        let outer = std::mem::replace(&mut self.place, place);
        self.path.push(step);
        let result = visit(self);
        self.path.pop();
        self.place = outer;
        result
    }

    /// Returns the elements of a list with the steps to them.
    fn elements<'v>(&self, value: Option<&'v Value>) -> Vec<(Step, &'v Value)> {
        let how = self.how();
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| Some((step_to(how, item)?, item))).collect()
    }

    /// Whether the values here are compared element by element, not as a whole.
    fn is_granular(&self, values: [Option<&Value>; 2]) -> bool {
        let filled = |is: fn(&Value) -> bool| values.into_iter().flatten().any(is);
        let fits = |is: fn(&Value) -> bool| values.into_iter().flatten().all(|value| value.is_null() || is(value));
        match self.how() {
            Ownership::Atomic => false,
            Ownership::Plain => {
                fits(Value::is_object) && filled(|value| value.as_object().is_some_and(|map| !map.is_empty()))
            }
            Ownership::Keys(_) | Ownership::Values => {
                fits(Value::is_array) && filled(|value| value.as_array().is_some_and(|items| !items.is_empty()))
            }
        }
    }

    /// Collects the fields of a value.
    pub(super) fn fields(&mut self, value: &Value, found: &mut Fields) {
        match (self.how(), value) {
            (Ownership::Plain, Value::Object(map)) => {
                for (key, member) in map {
                    self.inside(Step::Field(key.clone()), |walk| {
                        walk.fields(member, found);
                        let is_empty = member.as_object().is_some_and(Map::is_empty);
                        if is_empty || member.is_null() {
                            found.insert(&walk.path);
                        }
                    });
                }
            }
            (Ownership::Keys(_) | Ownership::Values, Value::Array(_)) => {
                for (step, element) in self.elements(Some(value)) {
                    self.inside(step, |walk| {
                        if walk.how() == Ownership::Plain && element.is_object() {
                            walk.fields(element, found);
                        }
                        found.insert(&walk.path);
                    });
                }
            }
            _ => found.insert(&self.path),
        }
    }

    /// Collects the changes from `old` to `new`.
    pub(super) fn compare(&mut self, old: Option<&Value>, new: Option<&Value>, found: &mut Difference) {
        if !self.path.is_empty() {
            match (old, new) {
                (None, Some(_)) => found.added.insert(&self.path),
                (Some(_), None) => found.removed.insert(&self.path),
                _ => {}
            }
        }
        if !self.is_granular([old, new]) {
            if let (Some(old), Some(new)) = (old, new)
                && old != new
            {
                found.modified.insert(&self.path);
            }
            return;
        }
        if self.how() == Ownership::Plain {
            self.compare_members(old, new, found);
            return;
        }
        let (before, after) = (self.elements(old), self.elements(new));
        let steps: BTreeSet<&Step> = before.iter().chain(&after).map(|(step, _)| step).collect();
        let find = |list: &[(Step, &'_ Value)], step: &Step| list.iter().position(|(found, _)| found == step);
        for step in steps {
            let old = find(&before, step).map(|at| before[at].1);
            let new = find(&after, step).map(|at| after[at].1);
            self.inside(step.clone(), |walk| walk.compare(old, new, found));
        }
    }

    fn compare_members(&mut self, old: Option<&Value>, new: Option<&Value>, found: &mut Difference) {
        let map = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        let (old, new) = (map(old), map(new));
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            self.inside(Step::Field(key.clone()), |walk| walk.compare(old.get(key), new.get(key), found));
        }
    }

    /// Merges the applied value into the existing value.
    pub(super) fn merge(&mut self, into: &mut Value, applied: &Value) {
        if !self.is_granular([Some(into), Some(applied)]) || into.is_null() {
            into.clone_from(applied);
            return;
        }
        if self.how() == Ownership::Plain {
            self.merge_members(into, applied);
            return;
        }
        let (before, after) = (self.elements(Some(into)), self.elements(Some(applied)));
        let merged: Vec<Value> = order(&before, &after)
            .into_iter()
            .map(|(step, old, new)| match (old, new) {
                (Some(old), Some(new)) => {
                    let mut value = old.clone();
                    self.inside(step.clone(), |walk| walk.merge(&mut value, new));
                    value
                }
                (old, new) => new.or(old).cloned().unwrap_or_default(),
            })
            .collect();
        *into = Value::Array(merged);
    }

    fn merge_members(&mut self, into: &mut Value, applied: &Value) {
        let Some(map) = into.as_object_mut() else { return };
        for (key, member) in applied.as_object().into_iter().flatten() {
            self.inside(Step::Field(key.clone()), |walk| {
                walk.merge(map.entry(key.clone()).or_insert(Value::Null), member);
            });
        }
    }

    /// Removes the field at a path.
    pub(super) fn remove(&mut self, value: &mut Value, path: &[Step]) {
        let Some((step, rest)) = path.split_first() else { return };
        match (step, value) {
            (Step::Field(name), Value::Object(map)) => {
                if rest.is_empty() {
                    map.remove(name);
                } else if let Some(member) = map.get_mut(name) {
                    self.inside(step.clone(), |walk| walk.remove(member, rest));
                }
            }
            (step, Value::Array(items)) => {
                let how = self.how();
                let Some(at) = items.iter().position(|item| step_to(how, item).as_ref() == Some(step)) else { return };
                if rest.is_empty() {
                    items.remove(at);
                } else {
                    self.inside(step.clone(), |walk| walk.remove(&mut items[at], rest));
                }
            }
            _ => {}
        }
    }
}

/// Returns the elements of both lists in merged order, each with its old and its new value. Elements of `after` keep their order.
/// An element that is only in `before` stays before the shared element that followed it there.
/// Follows `sigs.k8s.io/structured-merge-diff/v6/typed/merge.go#mergingWalker.visitListItems`.
fn order<'s, 'v>(
    before: &'s [(Step, &'v Value)],
    after: &'s [(Step, &'v Value)],
) -> Vec<(&'s Step, Option<&'v Value>, Option<&'v Value>)> {
    let find =
        |list: &[(Step, &'v Value)], step: &Step| list.iter().find(|(found, _)| found == step).map(|(_, value)| *value);
    let mut merged = Vec::with_capacity(before.len() + after.len());
    let mut done: BTreeSet<&Step> = BTreeSet::new();
    let mut old = before.iter().peekable();
    for (step, new) in after {
        // Elements that are only in the old list stay before the shared element that followed them.
        if find(before, step).is_some() && !done.contains(step) {
            while let Some((other, value)) = old.peek() {
                if other == step {
                    break;
                }
                if find(after, other).is_none() {
                    merged.push((other, Some(*value), None));
                } else if !done.contains(other) {
                    break;
                }
                old.next();
            }
        }
        merged.push((step, find(before, step), Some(*new)));
        done.insert(step);
        while old.peek().is_some_and(|(other, _)| done.contains(other)) {
            old.next();
        }
    }
    for (step, value) in old {
        if find(after, step).is_none() {
            merged.push((step, Some(*value), None));
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::kinds::PODS;
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "takes what json! makes")]
    fn pod(containers: Value) -> Value {
        json!({"spec": {"containers": containers}})
    }

    #[test]
    fn applied_lists_are_merged_by_key() {
        let mut live =
            pod(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c", "image": "1"}]));
        let applied = pod(json!([{"name": "c", "image": "2"}, {"name": "d"}]));
        Walk::new(&PODS).merge(&mut live, &applied);
        let expected = pod(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"},
            {"name": "c", "image": "2"}, {"name": "d"}]));
        assert_eq!(live, expected);
    }

    #[test]
    fn comparison_reports_added_elements_with_their_fields() {
        let mut found = Difference::default();
        let (old, new) = (pod(json!([])), pod(json!([{"name": "a", "ports": [{"containerPort": 1}]}])));
        Walk::new(&PODS).compare(Some(&old), Some(&new), &mut found);
        let port = "k:{\"containerPort\":1,\"protocol\":\"TCP\"}";
        let expected = json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {},
            "f:ports": {".": {}, port: {".": {}, "f:containerPort": {}}}}}}});
        assert_eq!(found.added.to_value(), expected);
        assert!(found.removed.is_empty() && found.modified.is_empty());
    }

    #[test]
    fn list_element_is_removed_by_its_path() {
        let mut value = pod(json!([{"name": "a"}, {"name": "b"}]));
        let mut fields = Fields::default();
        Walk::new(&PODS).fields(&pod(json!([{"name": "b"}])), &mut fields);
        for path in fields.iter() {
            Walk::new(&PODS).remove(&mut value, path);
        }
        assert_eq!(value, pod(json!([{"name": "a"}])));
    }
}
