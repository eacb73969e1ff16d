//! Reads a client's JSON as Go's decoder does: drops unknown and zero members, and reports the first member of a wrong type in
//! Go's words.
//!
//! Follows `sigs.k8s.io/json/internal/golang/encoding/json/decode.go`.

use serde_json::{Map, Value};

use super::{Member, Object, Omitted, Type, amount};
use crate::apiserver::meta;
use crate::go::base64;

/// Findings of reading an object: unknown members, and the first member of a wrong type.
#[derive(Debug, Default)]
pub(in crate::apiserver) struct Findings {
    /// Paths of members that the API does not know.
    pub(in crate::apiserver) unknown: Vec<String>,
    /// Error for the first wrong type. Go reads to the end of the text before it reports the error.
    wrong: Option<String>,
    /// Whether errors include the path even where Go's text omits it.
    names_paths: bool,
}

/// One step of the path from the root to a value, for messages.
#[derive(Clone, Copy)]
struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
    /// Go name of the type that declares the innermost member.
    owner: &'static str,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Index(usize),
    /// An entry of a map, by its key.
    Entry(&'a str),
}

/// Reads an object of `kind`. The error is Go's text, which does not contain the path of an invalid quantity or time. With
/// `names_paths`, the error begins with this path.
pub(in crate::apiserver) fn read(
    kind: &'static Object,
    value: &mut Value,
    names_paths: bool,
) -> Result<Findings, String> {
    let mut findings = Findings { names_paths, ..Findings::default() };
    let Some(members) = value.as_object_mut() else {
        return Err(format!("json: cannot unmarshal {} into Go value of type {}", sort_of(value), kind.go));
    };
    object(kind, members, None, &mut findings)?;
    match findings.wrong.take() {
        Some(wrong) => Err(wrong),
        None => Ok(findings),
    }
}

fn object(
    kind: &'static Object,
    members: &mut Map<String, Value>,
    trail: Option<&Trail<'_>>,
    findings: &mut Findings,
) -> Result<(), String> {
    let owner = kind.go.rsplit_once('.').map_or(kind.go, |(_, name)| name);
    let mut dropped: Vec<String> = Vec::new();
    for (name, value) in members.iter_mut() {
        let here = Trail { parent: trail, step: Step::Member(name), owner };
        let Some(member) = kind.member(name) else {
            findings.unknown.push(here.path());
            dropped.push(name.clone());
            continue;
        };
        self::value(&member.kind, &member.go, value, &here, findings)?;
        if means_nothing(member, value) {
            dropped.push(name.clone());
        }
    }
    for name in dropped {
        members.remove(&name);
    }
    Ok(())
}

/// Whether a member with this value is treated as absent.
fn means_nothing(member: &Member, value: &Value) -> bool {
    match (&member.kind, value) {
        (_, Value::Null) => true,
        (Type::Optional(_) | Type::Object(_) | Type::IntOrText | Type::Raw | Type::Quantity, _) => false,
        (Type::Time | Type::MicroTime, _) => meta::is_empty(value),
        _ => meta::is_empty(value) && member.omitted != Omitted::Never,
    }
}

/// Reads a value whose type has the name `go` in Go.
fn value(kind: &Type, go: &str, value: &mut Value, trail: &Trail<'_>, findings: &mut Findings) -> Result<(), String> {
    match kind {
        Type::Optional(inner) => return self::value(inner, go, value, trail, findings),
        Type::Quantity => {
            *value = amount::quantity(value).map_err(|why| trail.explain(why, findings))?;
            return Ok(());
        }
        Type::Raw => return Ok(()),
        _ if value.is_null() => return Ok(()),
        _ => {}
    }
    match (kind, &mut *value) {
        (Type::Flag, Value::Bool(_)) | (Type::Text | Type::IntOrText, Value::String(_)) => {}
        (Type::Int64, Value::Number(number)) if number.is_i64() => {}
        (Type::Int32 | Type::IntOrText, Value::Number(number))
            if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => {}
        (Type::IntOrText, other) => trail.wrong(&number_or_sort(other), "int32", findings),
        (Type::Int32 | Type::Int64, Value::Number(number)) => trail.wrong(&format!("number {number}"), go, findings),
        (Type::Bytes, Value::String(text)) => {
            if let Err(error) = base64::decode(text) {
                findings.wrong.get_or_insert_with(|| error.to_string());
            }
        }
        (Type::Time | Type::MicroTime, Value::String(text)) => {
            let time = amount::time(text, matches!(kind, Type::MicroTime));
            *value = time.map_err(|why| trail.explain(why, findings))?;
        }
        (Type::Time | Type::MicroTime, other) => trail.wrong(sort_of(other), "string", findings),
        (Type::List(inner), Value::Array(items)) => {
            let go = go.strip_prefix("[]").unwrap_or(go);
            for (at, item) in items.iter_mut().enumerate() {
                let here = Trail { parent: Some(trail), step: Step::Index(at), owner: trail.owner };
                self::value(inner, go, item, &here, findings)?;
                if item.is_null() {
                    *item = super::write::nothing(inner);
                }
            }
        }
        (Type::Map(inner), Value::Object(entries)) => {
            let go = if matches!(**inner, Type::Quantity) { go } else { go.strip_prefix("map[string]").unwrap_or(go) };
            for (key, entry) in entries.iter_mut() {
                let here = Trail { parent: Some(trail), step: Step::Entry(key), owner: trail.owner };
                self::value(inner, go, entry, &here, findings)?;
                if entry.is_null() {
                    *entry = super::write::nothing(inner);
                }
            }
        }
        (Type::Object(_), Value::Object(members)) => {
            let object = kind.object().expect("a type with members");
            self::object(object, members, Some(trail), findings)?;
        }
        (_, other) => trail.wrong(sort_of(other), go, findings),
    }
    Ok(())
}

impl Trail<'_> {
    /// Returns the path with list positions and map keys, as messages about unknown members show it.
    fn path(&self) -> String {
        let before = self.parent.map(Trail::path).unwrap_or_default();
        match self.step {
            Step::Index(at) => format!("{before}[{at}]"),
            Step::Member(name) | Step::Entry(name) if before.is_empty() => name.to_owned(),
            Step::Member(name) | Step::Entry(name) => format!("{before}.{name}"),
        }
    }

    /// Returns the path without list positions and map keys, as messages about types show it.
    fn members(&self) -> String {
        let before = self.parent.map(Trail::members).unwrap_or_default();
        match self.step {
            Step::Member(name) if before.is_empty() => name.to_owned(),
            Step::Member(name) => format!("{before}.{name}"),
            Step::Index(_) | Step::Entry(_) => before,
        }
    }

    /// Returns the error text, with the path in front if `names_paths` is set.
    fn explain(&self, why: String, findings: &Findings) -> String {
        if findings.names_paths { format!("{}: {why}", self.path()) } else { why }
    }

    fn wrong(&self, found: &str, expected: &str, findings: &mut Findings) {
        findings.wrong.get_or_insert_with(|| {
            let members = self.members();
            format!("json: cannot unmarshal {found} into Go struct field {}.{members} of type {expected}", self.owner)
        });
    }
}

/// Returns the name of a value's JSON type in messages of Go's decoder.
pub(in crate::apiserver) fn sort_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn number_or_sort(value: &Value) -> String {
    if value.is_number() { format!("number {value}") } else { sort_of(value).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::apiserver::kinds::{self, Kind};

    fn check(kind: &Kind, mut value: Value, expected: Result<&[&str], &str>) {
        let found = read(Object::of(kind), &mut value, false).map(|findings| findings.unknown);
        let found = found.as_ref().map(|paths| paths.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found.as_deref().map_err(|error| error.as_str()), expected, "{value}");
    }

    #[test]
    fn wrong_types_give_gos_errors() {
        let pod = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
        let json = "json: cannot unmarshal";
        check(
            &kinds::PODS,
            pod(json!({"containers": 5})),
            Err(&format!("{json} number into Go struct field PodSpec.spec.containers of type []v1.Container")),
        );
        check(
            &kinds::PODS,
            pod(json!({"containers": [{"env": [{"name": "A", "value": 5}]}]})),
            Err(&format!("{json} number into Go struct field EnvVar.spec.containers.env.value of type string")),
        );
        check(
            &kinds::PODS,
            pod(json!({"priority": 1.5})),
            Err(&format!("{json} number 1.5 into Go struct field PodSpec.spec.priority of type int32")),
        );
        check(&kinds::PODS, pod(json!({"overhead": {"cpu": "1K"}})), Err("unable to parse quantity's suffix"));
    }

    #[test]
    fn unknown_fields_are_reported_and_dropped() {
        let template = json!({"spec": {"containers": [{"name": "c", "resource": {}}], "nodeSelectors": {}}});
        check(
            &kinds::DEPLOYMENTS,
            json!({"spec": {"replica": 2, "template": template}}),
            Ok(&["spec.replica", "spec.template.spec.containers[0].resource", "spec.template.spec.nodeSelectors"]),
        );
    }

    #[test]
    fn empty_values_are_dropped() {
        let mut pod = json!({"metadata": {"labels": {"a": null}}, "spec": {
            "hostNetwork": false, "enableServiceLinks": false, "nodeSelector": {}, "containers": [
                {"name": "c", "resources": {"requests": {"cpu": 0.5}}}], "affinity": null}});
        read(Object::of(&kinds::PODS), &mut pod, false).expect("a pod");
        assert_eq!(
            pod,
            json!({"metadata": {"labels": {"a": ""}}, "spec": {"enableServiceLinks": false,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}})
        );
    }
}
