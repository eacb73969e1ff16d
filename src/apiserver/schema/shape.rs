//! Objects as Go's encoder writes them: without what is empty and may be left out, and with what is empty and may not.

use serde_json::{Map, Value, json};

use super::{Field, Holds, Repeats, Type};
use crate::apiserver::kinds::Kind;
use crate::apiserver::meta;

/// Makes an object what a real server would show of it.
pub(in crate::apiserver) fn as_go_writes(kind: &Kind, value: &mut Value) {
    if let (Some(shape), Some(map)) = (Type::of(kind), value.as_object_mut()) {
        shape.apply(map, true);
    }
}

/// Takes out of an object what is empty and counts as absent.
pub(in crate::apiserver) fn without_empty(name: &str, value: &mut Value) {
    if let (Some(shape), Some(map)) = (Type::named(name), value.as_object_mut()) {
        shape.apply(map, false);
    }
}

impl Type {
    fn apply(&self, map: &mut Map<String, Value>, fills: bool) {
        for field in &self.fields {
            if field.inline {
                if let Some(inner) = field.holds.structure() {
                    inner.apply(map, fills);
                }
                continue;
            }
            let member = map.get_mut(field.name).filter(|member| !member.is_null());
            let Some(member) = member else {
                match field.zero().filter(|_| fills && !field.pointer) {
                    Some(zero) => drop(map.insert(field.name.to_owned(), zero)),
                    None => drop(map.remove(field.name)),
                }
                continue;
            };
            field.apply(member, fills);
            if field.is_left_out(member) {
                map.remove(field.name);
            }
        }
    }
}

impl Field {
    fn apply(&self, member: &mut Value, fills: bool) {
        let Some(inner) = self.holds.structure() else { return };
        match (self.repeats, member) {
            (Repeats::Once, Value::Object(map)) => inner.apply(map, fills),
            (Repeats::List, Value::Array(items)) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|map| inner.apply(map, fills));
            }
            (Repeats::Map, Value::Object(map)) => {
                map.values_mut().filter_map(Value::as_object_mut).for_each(|map| inner.apply(map, fills));
            }
            _ => {}
        }
    }

    /// Whether a value that is there is left out.
    fn is_left_out(&self, member: &Value) -> bool {
        let is_structure = self.repeats == Repeats::Once && matches!(self.holds, Holds::Structure(_));
        match () {
            () if self.pointer => false,
            () if is_structure => self.omit_zero && meta::is_empty(member),
            // These are structures to Go, whose texts are never empty.
            () if matches!(self.holds, Holds::Quantity | Holds::IntOrString) && self.repeats == Repeats::Once => false,
            () => self.omit_empty && meta::is_empty(member),
        }
    }

    /// What is written where there is nothing; `None` if nothing is.
    fn zero(&self) -> Option<Value> {
        if self.omit_zero {
            return None;
        }
        if self.repeats != Repeats::Once {
            return (!self.omit_empty).then_some(Value::Null);
        }
        Some(match self.holds {
            Holds::Structure(_) => {
                let mut zero = Map::new();
                self.holds.structure()?.apply(&mut zero, true);
                Value::Object(zero)
            }
            Holds::Time | Holds::MicroTime | Holds::Raw => Value::Null,
            Holds::Quantity => json!("0"),
            Holds::IntOrString => json!(0),
            _ if self.omit_empty => return None,
            Holds::Text => json!(""),
            Holds::Integer => json!(0),
            Holds::Flag => json!(false),
            Holds::Bytes => Value::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::kinds::{NODES, POD_DISRUPTION_BUDGETS, PODS};
    use super::*;

    fn check(kind: &Kind, mut value: Value, pointer: &str, expected: &Value) {
        as_go_writes(kind, &mut value);
        assert_eq!(value.pointer(pointer), Some(expected), "{value}");
    }

    #[test]
    fn what_is_empty_is_written_as_go_does() {
        let node = json!({"metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        check(&NODES, node.clone(), "/spec", &json!({}));
        check(&NODES, node.clone(), "/status/daemonEndpoints", &json!({"kubeletEndpoint": {"Port": 0}}));
        let condition =
            json!({"type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null});
        check(&NODES, node, "/status/conditions/0", &condition);
        let counts = json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        check(&POD_DISRUPTION_BUDGETS, json!({"metadata": {}}), "/status", &counts);
        let pod = json!({"spec": {"containers": [{"name": "c", "command": [], "securityContext": {"runAsUser": 0}}]}});
        let container = json!({"name": "c", "resources": {}, "securityContext": {"runAsUser": 0}});
        check(&PODS, pod, "/spec/containers/0", &container);
    }
}
