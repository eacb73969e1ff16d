//! A stored object: its JSON bytes in one canonical layout, and the few values that are indexed so that reads need no parsing.
//!
//! The layout is `{"apiVersion":…,"kind":…,"metadata":{"resourceVersion":…,<rest, sorted>},<rest, sorted>}`. The resource
//! version therefore has a fixed place and can be replaced without parsing. List items drop `apiVersion` and `kind` by
//! starting the slice later. Two writes of the same content differ only in the version.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// Labels of an object, sorted by key.
pub(super) type Labels = Arc<[(Box<str>, Box<str>)]>;

/// One version of a stored object.
#[derive(Debug)]
pub struct Object {
    pub(super) kind: &'static Kind,
    /// Key in the store: `namespace/name`, or `name` for cluster-scoped objects.
    pub(super) key: Arc<str>,
    pub(super) uid: Arc<str>,
    pub(super) version: u64,
    pub(super) labels: Labels,
    /// Values of the kind's selectable fields, in the order of [`Kind::fields`].
    pub(super) fields: Box<[Box<str>]>,
    pub(super) bytes: Bytes,
    /// Whether a test injected the bytes unchecked, so that their layout cannot be relied on.
    pub(super) raw: bool,
}

impl Object {
    /// Returns the object's kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Returns the object's name.
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&*self.key, |(_, name)| name)
    }

    /// Returns the namespace, or "" for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// Returns the object's UID.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Returns the resource version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// Returns the value of a selectable field (see [`Kind::fields`]).
    pub fn field(&self, label: &str) -> Option<&str> {
        Some(&self.fields[self.kind.field(label)?])
    }

    /// Returns the object's JSON text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Parses the object's JSON text. Returns `Null` for injected bytes that are not JSON.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// Encodes `value` in the canonical layout and indexes it. The UID and the labels are shared with `prior`, an older version
    /// of the object, if they are equal.
    pub(super) fn encode(
        kind: &'static Kind,
        key: Arc<str>,
        version: u64,
        value: &Value,
        prior: Option<&Self>,
    ) -> Self {
        let metadata = &value["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default();
        Self {
            kind,
            key,
            uid: prior.filter(|prior| *prior.uid == *uid).map_or_else(|| uid.into(), |prior| prior.uid.clone()),
            version,
            labels: labels_of(metadata.get("labels"), prior),
            fields: kind.fields.iter().map(|field| field.read(value)).collect(),
            bytes: lay_out(kind, version, value),
            raw: false,
        }
    }

    /// Encodes `value`, with the text of the spec copied from `prior`. Only for kinds whose objects consist of metadata, spec
    /// and status.
    pub(super) fn encode_status(prior: &Self, version: u64, value: &Value) -> Option<Self> {
        let spec = Parts::of(prior)?.spec;
        let mut rest = Vec::with_capacity(prior.bytes.len() + 256);
        rest.extend_from_slice(br#","spec":"#);
        rest.extend_from_slice(spec.get().as_bytes());
        rest.extend_from_slice(br#","status":"#);
        append(&mut rest, &value["status"]);
        let metadata = text_of(value["metadata"].as_object(), |key| key != "resourceVersion");
        let fields = prior.kind.fields.iter().zip(&prior.fields).map(|(field, before)| match field.path {
            ["spec", ..] => before.clone(),
            _ => field.read(value),
        });
        Some(Self {
            kind: prior.kind,
            key: prior.key.clone(),
            uid: prior.uid.clone(),
            version,
            labels: labels_of(value["metadata"].get("labels"), Some(prior)),
            fields: fields.collect(),
            bytes: assemble(prior.kind, version, &metadata, &rest),
            raw: false,
        })
    }

    /// Parses the object without its spec, for status updates.
    pub(super) fn value_without_spec(&self) -> Option<Value> {
        let parts = Parts::of(self)?;
        let metadata: Value = serde_json::from_str(parts.metadata.get()).ok()?;
        let status: Value = parts.status.map_or(Ok(json!({})), |status| serde_json::from_str(status.get())).ok()?;
        Some(json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.kind, "metadata": metadata, "status": status,
        }))
    }

    /// Returns the same content under another resource version.
    pub(super) fn with_version(&self, version: u64) -> Self {
        Self {
            kind: self.kind,
            key: self.key.clone(),
            uid: self.uid.clone(),
            version,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            bytes: self.bytes_with_version(version),
            raw: self.raw,
        }
    }

    /// Returns the JSON text with another resource version.
    pub(super) fn bytes_with_version(&self, version: u64) -> Bytes {
        if self.raw {
            return self.bytes.clone();
        }
        let (head, tail) = self.around_version();
        let mut bytes = BytesMut::with_capacity(self.bytes.len() + 2);
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(version.to_string().as_bytes());
        bytes.extend_from_slice(tail);
        bytes.freeze()
    }

    /// Whether both objects have the same content, apart from the resource version.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        !self.raw && !other.raw && self.around_version() == other.around_version()
    }

    /// Returns the JSON text as a list item, without the opening brace, `apiVersion` and `kind`.
    pub(super) fn item_tail(&self) -> Bytes {
        if self.raw {
            return self.bytes.slice(1.min(self.bytes.len())..);
        }
        self.bytes.slice(head(self.kind).len() - VERSION_OPENS.len()..)
    }

    /// Splits the JSON text into the parts before and after the resource version.
    fn around_version(&self) -> (&[u8], &[u8]) {
        let start = head(self.kind).len();
        let digits = self.bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        (&self.bytes[..start], &self.bytes[start + digits..])
    }
}

/// The parts of an object's bytes that most kinds have.
#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    spec: &'a RawValue,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

impl<'a> Parts<'a> {
    fn of(object: &'a Object) -> Option<Self> {
        serde_json::from_slice(&object.bytes).ok()
    }
}

const VERSION_OPENS: &str = r#""metadata":{"resourceVersion":""#;

/// Returns the text before the resource version. It is the same for all objects of a kind.
fn head(kind: &'static Kind) -> &'static str {
    static HEADS: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
        let text =
            |kind: &&Kind| format!(r#"{{"apiVersion":"{}","kind":"{}",{VERSION_OPENS}"#, kind.api_version(), kind.kind);
        super::kinds::ALL.iter().map(text).collect()
    });
    &HEADS[kind.slot as usize]
}

/// Encodes `value` in the canonical layout.
fn lay_out(kind: &'static Kind, version: u64, value: &Value) -> Bytes {
    let metadata = text_of(value["metadata"].as_object(), |key| key != "resourceVersion");
    let rest = text_of(value.as_object(), |key| !matches!(key, "apiVersion" | "kind" | "metadata"));
    assemble(kind, version, &metadata, &rest)
}

/// Assembles the canonical layout. `metadata` and `rest` are each empty or a sequence of `,"key":value`.
pub(super) fn assemble(kind: &'static Kind, version: u64, metadata: &[u8], rest: &[u8]) -> Bytes {
    let head = head(kind);
    let mut out = Vec::with_capacity(head.len() + metadata.len() + rest.len() + 24);
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(version.to_string().as_bytes());
    out.push(b'"');
    out.extend_from_slice(metadata);
    out.push(b'}');
    out.extend_from_slice(rest);
    out.push(b'}');
    out.into()
}

/// Encodes the entries whose keys are `wanted`, each as `,"key":value`.
pub(super) fn text_of(map: Option<&Map<String, Value>>, wanted: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    for (key, value) in map.into_iter().flatten().filter(|(key, _)| wanted(key)) {
        out.push(b',');
        append(&mut out, key);
        out.push(b':');
        append(&mut out, value);
    }
    out
}

/// Appends the JSON text of `value`.
pub(super) fn append(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("texts and JSON values always serialise into memory");
}

/// Returns an object's labels. They are shared with the older version `prior` if it has the same labels.
pub(super) fn labels_of(labels: Option<&Value>, prior: Option<&Object>) -> Labels {
    match prior {
        Some(prior) if same_labels(&prior.labels, labels) => prior.labels.clone(),
        _ => read_labels(labels),
    }
}

fn read_labels(labels: Option<&Value>) -> Labels {
    let map = labels.and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
        .collect()
}

fn same_labels(known: &Labels, labels: Option<&Value>) -> bool {
    let map = labels.and_then(Value::as_object);
    map.map_or(0, Map::len) == known.len()
        && map.into_iter().flatten().zip(known.iter()).all(|((key, value), (known_key, known_value))| {
            **key == **known_key && value.as_str() == Some(&**known_value)
        })
}

/// Returns the key of an object in the store. Lists are sorted by this key.
pub(super) fn key_of(namespace: &str, name: &str) -> Arc<str> {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{CONFIG_MAPS, PODS};
    use super::*;

    fn object(value: &Value, version: u64) -> Object {
        Object::encode(&PODS, "ns/p".into(), version, value, None)
    }

    #[test]
    fn stored_object_reads_back_as_written() {
        let value = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "resourceVersion": "3", "labels": {"b": "2", "a": "1"},
                "annotations": {"resourceVersion": "9"}},
            "spec": {"nodeName": "n"}, "status": {}});
        let stored = object(&value, 3);
        assert_eq!(stored.value(), value);
        assert_eq!(stored.label("b"), Some("2"));
        assert_eq!(stored.field("spec.host"), Some("n"));
        assert_eq!((stored.namespace(), stored.name()), ("ns", "p"));
        let later = stored.with_version(1234);
        assert_eq!(later.value()["metadata"]["resourceVersion"], "1234");
        assert!(later.same_content(&stored));
        assert!(!object(&json!({"metadata": {"name": "q"}}), 3).same_content(&stored));
    }

    #[test]
    fn list_items_have_no_type() {
        let stored = Object::encode(
            &CONFIG_MAPS,
            "ns/c".into(),
            7,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {}, "metadata": {"name": "c"}}),
            None,
        );
        let item = format!("{{{}", String::from_utf8(stored.item_tail().to_vec()).unwrap());
        assert_eq!(item, r#"{"metadata":{"resourceVersion":"7","name":"c"},"binaryData":{}}"#);
    }
}
