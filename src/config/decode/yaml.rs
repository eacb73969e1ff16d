//! Converts YAML text to [`Value`]s, as `sigs.k8s.io/yaml` converts it to JSON before decoding.
//!
//! Follows `go.yaml.in/yaml/v2/decode.go` and `sigs.k8s.io/yaml/yaml.go#convertToJSONableObject`, the versions that Kubernetes
//! 1.36.3 depends on. The module `nodes` parses the text. This module merges mappings, finds repeated keys, and converts keys
//! to strings.

use std::collections::{BTreeMap, BTreeSet};

use super::DecodeError;
use super::nodes::{Documents, Node, line_of, read};
use super::scalar::Scalar;
use super::syntax::Lines;
use crate::go::json::Value;
use crate::go::number::general;
use crate::go::quote::quote;

/// The content of a document, and the error of strict parsing, if any.
#[derive(Debug)]
pub(super) struct Document {
    /// Content of the document. Mappings are sorted by key; of repeated keys, the last one is used.
    pub(super) value: Value,
    /// Upstream's text about repeated keys. In strict parsing, a key that overrides a merged key counts as repeated.
    pub(super) repeated: Option<DecodeError>,
}

/// Maximum number of repeated keys in an error, so that the error does not become as long as the document.
const MAX_LISTED: usize = 10;

/// Parses the first document of `text`; an empty text is null.
pub(super) fn parse(text: &str) -> Result<Document, DecodeError> {
    document(text, 0, read(text)?, true)
}

/// Parses all documents of `text` in order. Ends after an error. A key may override a merged key here.
pub(super) fn parse_all(text: &str) -> impl Iterator<Item = Result<Document, DecodeError>> {
    Documents::new(text, Lines::True).enumerate().map(move |(number, node)| document(text, number, node?, false))
}

fn document(text: &str, number: usize, node: Node, strict: bool) -> Result<Document, DecodeError> {
    let mut reader = NodeReader { repeated: Vec::new(), strict };
    let value = reader.meaning(node)?.into_value()?;
    if reader.repeated.is_empty() {
        return Ok(Document { value, repeated: None });
    }
    let faults = reader.repeated.iter().take(MAX_LISTED).map(|(value, key)| {
        let line = line_of(text, number, *value);
        format!("\n  line {line}: key {} already set in map", key.in_go())
    });
    let mut faults: String = faults.collect();
    if let Some(more @ 1..) = reader.repeated.len().checked_sub(MAX_LISTED) {
        faults = format!("{faults}\n  and {more} more");
    }
    Ok(Document { value, repeated: Some(DecodeError(format!("yaml: unmarshal errors:{faults}"))) })
}

/// A key of a mapping; repeated keys are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// A float as its bits.
    Float(u64),
    String(String),
}

/// The value of a node after merges, before keys are converted to strings.
#[derive(Clone, Debug)]
enum Meaning {
    Scalar(Scalar),
    Sequence(Vec<Meaning>),
    Mapping(BTreeMap<Key, Meaning>),
}

/// Converts nodes to their values.
struct NodeReader {
    /// Whether a key that overrides a merged key counts as repeated.
    strict: bool,
    /// The entries that repeat a key: the number of the value's node, and the key.
    repeated: Vec<(usize, Key)>,
}

impl NodeReader {
    fn meaning(&mut self, node: Node) -> Result<Meaning, DecodeError> {
        Ok(match node {
            Node::Scalar(scalar) => Meaning::Scalar(scalar),
            Node::Merge => Meaning::Scalar(Scalar::String("<<".to_owned())),
            Node::Sequence(items) => {
                let items = items.into_iter().map(|item| self.meaning(item));
                Meaning::Sequence(items.collect::<Result<_, _>>()?)
            }
            Node::Mapping(entries) => {
                let mut map = BTreeMap::new();
                self.fill(entries, &mut map)?;
                Meaning::Mapping(map)
            }
        })
    }

    /// Adds the entries of a mapping to `map`.
    fn fill(&mut self, entries: Vec<(Node, usize, Node)>, map: &mut BTreeMap<Key, Meaning>) -> Result<(), DecodeError> {
        // If `map` also contains merged keys, the mapping's own keys are tracked separately.
        let is_mixed = !map.is_empty() || entries.iter().any(|(key, _, _)| matches!(key, Node::Merge));
        let mut own: BTreeSet<Key> = BTreeSet::new();
        for (key, number, value) in entries {
            if matches!(key, Node::Merge) {
                self.merge(value, map)?;
                continue;
            }
            let key = into_key(self.meaning(key)?)?;
            let meaning = self.meaning(value)?;
            let is_repeated = if is_mixed && !self.strict { own.contains(&key) } else { map.contains_key(&key) };
            if is_repeated {
                self.repeated.push((number, key.clone()));
            }
            if is_mixed {
                own.insert(key.clone());
            }
            map.insert(key, meaning);
        }
        Ok(())
    }

    /// Adds the entries of `value`, which is a mapping or a sequence of mappings. In a sequence, earlier mappings win.
    fn merge(&mut self, value: Node, map: &mut BTreeMap<Key, Meaning>) -> Result<(), DecodeError> {
        let items = match value {
            Node::Sequence(items) => items,
            one => vec![one],
        };
        for item in items.into_iter().rev() {
            let Node::Mapping(entries) = item else {
                return Err("yaml: map merge requires map or sequence of maps as the value".into());
            };
            self.fill(entries, map)?;
        }
        Ok(())
    }
}

fn into_key(meaning: Meaning) -> Result<Key, DecodeError> {
    match meaning {
        Meaning::Scalar(Scalar::Null) => Ok(Key::Null),
        Meaning::Scalar(Scalar::Bool(value)) => Ok(Key::Bool(value)),
        Meaning::Scalar(Scalar::Int(value)) => Ok(Key::Int(value)),
        Meaning::Scalar(Scalar::Uint(value)) => Ok(Key::Uint(value)),
        Meaning::Scalar(Scalar::Float(value)) => Ok(Key::Float(value.to_bits())),
        Meaning::Scalar(Scalar::String(text)) => Ok(Key::String(text)),
        other => Err(DecodeError(format!("yaml: invalid map key: {}", other.in_go()))),
    }
}

impl Key {
    /// Formats the key like Go's `%#v`.
    fn in_go(&self) -> String {
        match self {
            Self::Null => "interface {}(nil)".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => format!("{value:#x}"),
            Self::Float(bits) => f64::from_bits(*bits).to_string(),
            Self::String(text) => quote(text),
        }
    }

    /// Converts the key to a key of a JSON object.
    fn into_json_key(self, value: &Meaning) -> Result<String, DecodeError> {
        let unsupported = |kind: &str, key: &str| {
            let value = match value {
                Meaning::Scalar(Scalar::Null) => "<nil>".to_owned(),
                value => value.in_go(),
            };
            Err(DecodeError(format!("unsupported map key of type: {kind}, key: {key}, value: {value}")))
        };
        match self {
            Self::Null => unsupported("%!s(<nil>)", "<nil>"),
            Self::Uint(value) => unsupported("uint64", &format!("{value:#x}")),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Int(value) => Ok(value.to_string()),
            #[expect(clippy::cast_possible_truncation, reason = "as Go prints it, with 32 bits")]
            Self::Float(bits) => Ok(match f64::from_bits(bits) as f32 {
                value if value.is_nan() => ".nan".to_owned(),
                f32::INFINITY => ".inf".to_owned(),
                f32::NEG_INFINITY => "-.inf".to_owned(),
                value => general(value),
            }),
            Self::String(text) => Ok(text),
        }
    }
}

impl Meaning {
    /// Formats the value like Go's `%#v`.
    fn in_go(&self) -> String {
        match self {
            Self::Scalar(Scalar::Null) => "interface {}(nil)".to_owned(),
            Self::Scalar(Scalar::Bool(value)) => value.to_string(),
            Self::Scalar(Scalar::Int(value)) => value.to_string(),
            Self::Scalar(Scalar::Uint(value)) => format!("{value:#x}"),
            Self::Scalar(Scalar::Float(value)) => value.to_string(),
            Self::Scalar(Scalar::String(text)) => quote(text),
            Self::Sequence(items) => {
                format!("[]interface {{}}{{{}}}", items.iter().map(Self::in_go).collect::<Vec<_>>().join(", "))
            }
            Self::Mapping(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{}:{}", key.in_go(), value.in_go())).collect();
                format!("map[interface {{}}]interface {{}}{{{}}}", entries.join(", "))
            }
        }
    }

    fn into_value(self) -> Result<Value, DecodeError> {
        match self {
            Self::Scalar(Scalar::Null) => Ok(Value::Null),
            Self::Scalar(Scalar::Bool(value)) => Ok(Value::Bool(value)),
            Self::Scalar(Scalar::String(text)) => Ok(Value::String(text)),
            Self::Scalar(number) => number.number_literal().unwrap_or(Ok(String::new())).map(Value::Number),
            Self::Sequence(items) => {
                items.into_iter().map(Self::into_value).collect::<Result<_, _>>().map(Value::Array)
            }
            Self::Mapping(entries) => {
                let mut sorted = BTreeMap::new();
                for (key, meaning) in entries {
                    sorted.insert(key.into_json_key(&meaning)?, meaning.into_value()?);
                }
                Ok(Value::Object(sorted.into_iter().collect()))
            }
        }
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
