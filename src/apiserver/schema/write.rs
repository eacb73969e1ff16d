//! Completes objects as Go's encoder writes them: omits empty members, and adds members that are always written.

use serde_json::{Map, Value, json};

use super::{Member, Object, Omitted, Type};
use crate::apiserver::meta;

/// Brings an object into the form that Go's encoder writes.
pub(in crate::apiserver) fn complete(kind: &'static Object, value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        object(kind, members);
    }
}

fn object(kind: &'static Object, members: &mut Map<String, Value>) {
    for member in &kind.members {
        if let Some(value) = members.get_mut(member.name) {
            self::value(&member.kind, value);
            if is_omitted(member, value) {
                members.remove(member.name);
            } else if value.is_null() {
                *value = nothing(&member.kind);
            } else if matches!(member.kind, Type::List(_) | Type::Map(_)) && meta::is_empty(value) {
                // Upstream's stored objects have null instead of an empty list or map.
                *value = Value::Null;
            }
        } else if is_printed(member) {
            let mut value = nothing(&member.kind);
            self::value(&member.kind, &mut value);
            members.insert(member.name.to_owned(), value);
        }
    }
}

fn value(kind: &Type, value: &mut Value) {
    match (kind, value) {
        (Type::Optional(inner), value) => self::value(inner, value),
        (Type::List(inner), Value::Array(items)) if inner.object().is_some() => {
            items.iter_mut().for_each(|item| self::value(inner, item));
        }
        (Type::Map(inner), Value::Object(entries)) if inner.object().is_some() => {
            entries.values_mut().for_each(|entry| self::value(inner, entry));
        }
        (Type::Object(_), Value::Object(members)) => {
            object(kind.object().expect("a type with members"), members);
        }
        _ => {}
    }
}

/// Whether the encoder omits a member that has this value.
fn is_omitted(member: &Member, value: &Value) -> bool {
    match member.omitted {
        Omitted::Never => false,
        Omitted::Empty => match &member.kind {
            Type::Optional(_) => value.is_null(),
            Type::Object(_) | Type::IntOrText | Type::Raw | Type::Quantity | Type::Time | Type::MicroTime => false,
            _ => meta::is_empty(value),
        },
        Omitted::Zero => match &member.kind {
            Type::Optional(_) => value.is_null(),
            _ => meta::is_empty(value),
        },
    }
}

/// Whether the encoder prints a member that is absent.
fn is_printed(member: &Member) -> bool {
    match member.omitted {
        Omitted::Never => true,
        // Go never treats a structure as empty.
        Omitted::Empty => {
            matches!(member.kind, Type::Object(_) | Type::Time | Type::MicroTime | Type::Quantity | Type::IntOrText)
        }
        Omitted::Zero => false,
    }
}

/// Returns Go's zero value of a type.
pub(super) fn nothing(kind: &Type) -> Value {
    match kind {
        Type::Flag => json!(false),
        Type::Text => json!(""),
        Type::Int32 | Type::Int64 | Type::IntOrText => json!(0),
        Type::Quantity => json!("0"),
        Type::Object(_) => json!({}),
        Type::Bytes | Type::Raw | Type::Time | Type::MicroTime | Type::Optional(_) | Type::List(_) | Type::Map(_) => {
            Value::Null
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::kinds;

    #[test]
    fn fields_that_go_always_writes_are_added() {
        let mut pod = json!({"spec": {"containers": [{"name": "c", "env": []}]},
            "status": {"conditions": [{"type": "A", "status": "True"}]}});
        complete(Object::of(&kinds::PODS), &mut pod);
        assert_eq!(pod["spec"]["containers"], json!([{"name": "c", "resources": {}}]));
        let condition = json!({"type": "A", "status": "True", "lastProbeTime": null, "lastTransitionTime": null});
        assert_eq!(pod["status"]["conditions"], json!([condition]));
    }
}
