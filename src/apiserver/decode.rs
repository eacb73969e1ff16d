//! Decoding of request bodies: the checks that Go's decoder makes before any rule of the API applies.

use std::fmt::{self, Write as _};

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};

use super::kinds::{self, EVENTS, Kind, PODS, unregistered};
use super::schema::{self, Object};
use crate::apimachinery::{Status, protobuf};
use crate::go::json::{Source, syntax_error};
use crate::k8s::Pod;

/// Treatment of unknown and duplicate members.
/// Follows `apimachinery/pkg/apis/meta/v1/types.go#FieldValidationIgnore @v1.36.3` and the two constants after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FieldValidation {
    #[default]
    Ignore,
    Warn,
    Strict,
}

/// Findings about a request's body that are not errors: unknown and duplicate members.
#[derive(Debug, Default)]
pub(super) struct BodyFindings {
    /// Whether the object comes from a request. The errors of direct calls also name the paths of members.
    pub(super) is_request: bool,
    pub(super) validation: FieldValidation,
    /// Paths of members that occur more than once.
    pub(super) duplicates: Vec<String>,
    /// Texts of the reply's `Warning` headers.
    pub(super) warnings: Vec<String>,
}

/// Parses a body that should hold an object of `kind_name`. The content type may be JSON, YAML or protobuf.
pub(super) fn body(
    kind_name: &str,
    content_type: &str,
    body: &[u8],
    oddities: &mut BodyFindings,
) -> Result<Value, Status> {
    let unreadable = |format: &str, error: String| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind_name}): couldn't get version/kind; \
             {format} parse error: {error} ({})",
            excerpt(body)
        ))
    };
    match content_type {
        "" | "application/json" | "*/*" => {
            let mut text = serde_json::Deserializer::from_slice(body);
            let seed = Seed { path: String::new(), duplicates: &mut oddities.duplicates };
            let value = seed.deserialize(&mut text).and_then(|value| text.end().map(|()| value));
            let value = value.map_err(|error| {
                unreadable("json", syntax_error(body, Source::Unmarshal).unwrap_or_else(|| error.to_string()))
            })?;
            match without_kind(&value) {
                Some(why) => Err(unreadable("json", why)),
                None if value.is_null() => Ok(json!({})),
                None => Ok(value),
            }
        }
        "application/yaml" => serde_yaml::from_slice(body).map_err(|error| unreadable("yaml", error.to_string())),
        protobuf::MEDIA_TYPE => schema::from_protobuf(body).map_err(|error| {
            Status::bad_request(format!("the object provided is unrecognized (must be of type {kind_name}): {error}"))
        }),
        _ => Err(Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// Parses the body of a delete. Its error messages do not name the expected type.
pub(super) fn delete_options(content_type: &str, body: &[u8]) -> Result<Value, Status> {
    const KIND: &str = "DeleteOptions";
    let mut value = self::body(KIND, content_type, body, &mut BodyFindings::default()).map_err(|mut status| {
        if let Some((_, why)) = status.message.split_once("(must be of type DeleteOptions): ") {
            status.message = why.rsplit_once(" (").map_or(why, |(why, _)| why).to_owned();
        }
        status
    })?;
    let version = value["apiVersion"].as_str().unwrap_or("v1");
    if let Some(other) = value["kind"].as_str().filter(|kind| !kind.is_empty() && *kind != KIND) {
        return Err(Status::bad_request(unregistered(version, other)));
    }
    schema::read(Object::named("meta/v1.DeleteOptions"), &mut value, false).map_err(Status::bad_request)?;
    Ok(value)
}

/// Returns the start of a body for messages about unreadable bodies. The start is in hexadecimal unless it begins with `{`.
/// Follows `apiserver/pkg/endpoints/handlers/rest.go#summarizeData @v1.36.3`.
fn excerpt(body: &[u8]) -> String {
    const LIMIT: usize = 30;
    let start = &body[..body.len().min(LIMIT)];
    let mut shown = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes every write");
            text
        }),
    };
    if body.len() > LIMIT {
        shown.push_str(" ...");
    }
    shown
}

/// Returns Go's error if the value is not an object, or if its `apiVersion` or `kind` is not a string.
fn without_kind(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(members) => ["apiVersion", "kind"].into_iter().find_map(|key| {
            let other = members.get(key).filter(|value| !value.is_string() && !value.is_null())?;
            let found = schema::sort_of(other);
            Some(format!("json: cannot unmarshal {found} into Go struct field .{key} of type string"))
        }),
        other => Some(format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            schema::sort_of(other)
        )),
    }
}

impl BodyFindings {
    /// Decodes an object of `kind`. A value without `apiVersion` or `kind` is taken as an object of `kind`.
    pub(super) fn typed(&mut self, kind: &Kind, value: Value) -> Result<Value, Status> {
        let (value, unknown) = read(kind, value, !self.is_request)?;
        self.add(unknown).map_err(|why| mistyped(kind, &why))?;
        Ok(value)
    }

    /// Decodes a `Binding`, which is not a stored kind.
    pub(super) fn typed_binding(&mut self, value: Value) -> Result<Value, Status> {
        self.typed_as("core", "v1", "Binding", value)
    }

    /// Decodes a `Scale`, which is not a stored kind.
    pub(super) fn typed_scale(&mut self, value: Value) -> Result<Value, Status> {
        self.typed_as("autoscaling", "autoscaling/v1", "Scale", value)
    }

    /// Decodes an `Eviction`, which is not a stored kind.
    pub(super) fn typed_eviction(&mut self, value: Value) -> Result<Value, Status> {
        self.typed_as("policy", "policy/v1", "Eviction", value)
    }

    fn typed_as(&mut self, group: &str, expected: &str, kind: &str, mut value: Value) -> Result<Value, Status> {
        let refuse = |name: &str, version: &str, why: &str| {
            Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {kind}: {why}"))
        };
        let or = |key: &str, otherwise: &str| match value[key].as_str().unwrap_or_default() {
            "" => otherwise.to_owned(),
            text => text.to_owned(),
        };
        let (api_version, name) = (or("apiVersion", expected), or("kind", kind));
        let is_older = (&*api_version, &*name) == ("policy/v1beta1", "Eviction");
        if !is_older && (&*api_version, &*name) != (expected, kind) {
            let version = api_version.rsplit_once('/').map_or(&*api_version, |(_, version)| version);
            let why = if is_known(&api_version, &name) {
                format!("converting ({version}.{name}) to ({group}.{kind}): unknown conversion")
            } else {
                unregistered(&api_version, &name)
            };
            return Err(refuse(&name, version, &why));
        }
        let findings = schema::read(Object::named(&format!("{group}/v1.{kind}")), &mut value, false);
        let unknown = findings.map_err(|why| refuse(kind, "v1", &why))?.unknown;
        self.add(unknown).map_err(|why| refuse(kind, "v1", &why))?;
        Ok(value)
    }

    /// Records unknown and duplicate members. Returns an error for them if validation is strict.
    pub(super) fn add(&mut self, unknown: Vec<String>) -> Result<(), String> {
        let duplicates = std::mem::take(&mut self.duplicates);
        let found = duplicates
            .into_iter()
            .map(|path| format!("duplicate field {path:?}"))
            .chain(unknown.into_iter().map(|path| format!("unknown field {path:?}")));
        match self.validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.warnings.extend(found),
            FieldValidation::Strict => {
                let found: Vec<String> = found.collect();
                if !found.is_empty() {
                    return Err(format!("strict decoding error: {}", found.join(", ")));
                }
            }
        }
        Ok(())
    }
}

/// Decodes an object of `kind`, and returns it with the paths of unknown members. A value without `apiVersion` or `kind` is
/// taken as an object of `kind`. With `names_paths`, every error names the path of the invalid member.
pub(super) fn read(kind: &Kind, mut value: Value, names_paths: bool) -> Result<(Value, Vec<String>), Status> {
    let expected = kind.api_version();
    if value.is_object() {
        let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
        let version = or(value["apiVersion"].as_str().unwrap_or_default(), &expected);
        let name = or(value["kind"].as_str().unwrap_or_default(), kind.kind);
        check_kind(kind, &version, &name)?;
    }
    let findings = schema::read(Object::of(kind), &mut value, names_paths).map_err(|why| mistyped(kind, &why))?;
    value["apiVersion"] = json!(expected);
    value["kind"] = json!(kind.kind);
    Ok((value, findings.unknown))
}

/// Checks that an object has this API version and kind. The error says whether the object has an older version, another known
/// kind, or an unknown kind.
fn check_kind(kind: &Kind, api_version: &str, name: &str) -> Result<(), Status> {
    let expected = kind.api_version();
    if api_version == expected && name == kind.kind {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let known = kinds::by_name(api_version, name);
    let is_older = group == kind.group && !group.is_empty() && name == kind.kind && version.contains("beta");
    if is_older || known.is_some_and(|known| known.slot == kind.slot) {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    let why = if is_known(api_version, name) {
        let package = kind.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        let package = if kind.slot == EVENTS.slot { "core" } else { package };
        format!("converting ({version}.{name}) to ({package}.{}): unknown conversion", kind.kind)
    } else {
        unregistered(api_version, name)
    };
    Err(Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {}: {why}", kind.kind)))
}

/// Whether the API has a kind with this version and name, stored or not.
fn is_known(api_version: &str, name: &str) -> bool {
    kinds::by_name(api_version, name).is_some()
        || name.strip_suffix("List").is_some_and(|item| kinds::by_name(api_version, item).is_some())
        || matches!((api_version, name), ("v1", "Binding") | ("policy/v1", "Eviction") | ("autoscaling/v1", "Scale"))
}

/// Decodes a pod as the scheduler does, to reject a pod that the scheduler could not decode.
pub(super) fn pod(value: &Value) -> Result<Pod, Status> {
    Pod::deserialize(value).map_err(|error| mistyped(&PODS, &error.to_string()))
}

pub(super) fn mistyped(kind: &Kind, why: &str) -> Status {
    Status::bad_request(format!("{0} in version {1:?} cannot be handled as a {0}: {why}", kind.kind, kind.version))
}

/// Decodes any JSON and records the paths of duplicate members. Of several members with the same name, the last one wins.
struct Seed<'a> {
    path: String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            match items.next_element_seed(Seed { path, duplicates: &mut *self.duplicates })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            if map.contains_key(&key) {
                self.duplicates.push(path.clone());
            }
            let value = members.next_value_seed(Seed { path, duplicates: &mut *self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
