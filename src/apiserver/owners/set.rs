//! Sets of fields that a manager owns, and their encoding in `managedFields`.
//!
//! Follows `structured-merge-diff/v6/fieldpath` and `FieldsV1`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// A step of a path, from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A member of a structure or map.
    Field(String),
    /// The list element with these key members, as JSON.
    Key(String),
    /// The list element with this value, as JSON.
    Value(String),
}

/// Path from the root of an object to a field.
pub(super) type Path = Vec<Step>;

/// A set of fields. A field in the set does not imply the fields inside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeSet<Path>);

impl Fields {
    pub(super) fn insert(&mut self, path: &[Step]) {
        self.0.insert(path.to_vec());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Path> {
        self.0.iter()
    }

    /// Whether the set contains the field at this path or a field inside it.
    pub(super) fn reaches(&self, path: &Path) -> bool {
        self.0.range(path.clone()..).next().is_some_and(|found| found.starts_with(path))
    }

    pub(super) fn union(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    pub(super) fn without(mut self, other: &Self) -> Self {
        self.0.retain(|path| !other.0.contains(path));
        self
    }

    pub(super) fn retain(&mut self, wanted: impl Fn(&Path) -> bool) {
        self.0.retain(wanted);
    }

    pub(super) fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// Encodes the set as `fieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut root = Map::new();
        for path in &self.0 {
            let mut at = &mut root;
            for (depth, step) in path.iter().enumerate() {
                let slot = at.entry(step.text()).or_insert_with(|| json!({}));
                let Some(inner) = slot.as_object_mut() else { break };
                // Only a field that has other fields inside it needs the mark `.`.
                let marks = depth + 1 == path.len() && self.has_inner(path);
                if marks {
                    inner.insert(".".to_owned(), json!({}));
                }
                at = inner;
            }
        }
        Value::Object(root)
    }

    fn has_inner(&self, path: &Path) -> bool {
        self.0.range(path.clone()..).nth(1).is_some_and(|next| next.starts_with(path))
    }

    /// Parses the value of `fieldsV1`. Returns `None` if it is invalid.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        let mut found = Self::default();
        found.read(value.as_object()?, &mut Vec::new())?;
        Some(found)
    }

    fn read(&mut self, map: &Map<String, Value>, path: &mut Path) -> Option<()> {
        for (text, inner) in map {
            if text == "." {
                self.insert(path);
                continue;
            }
            path.push(Step::parse(text)?);
            let inner = inner.as_object()?;
            if inner.is_empty() {
                self.insert(path);
            }
            self.read(inner, path)?;
            path.pop();
        }
        Some(())
    }
}

impl Step {
    fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(key) => format!("k:{key}"),
            Self::Value(value) => format!("v:{value}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (sort, rest) = text.split_once(':')?;
        match sort {
            "f" => Some(Self::Field(rest.to_owned())),
            // The key is parsed and written again, so that different texts of the same key are equal.
            "k" => Some(Self::Key(serde_json::from_str::<Value>(rest).ok()?.to_string())),
            "v" => Some(Self::Value(serde_json::from_str::<Value>(rest).ok()?.to_string())),
            _ => None,
        }
    }
}

/// Formats a path for messages: `.spec.containers[name="c"].image`. Follows
/// `sigs.k8s.io/structured-merge-diff/v6/fieldpath/path.go#Path.String` and
/// `sigs.k8s.io/structured-merge-diff/v6/fieldpath/element.go#PathElement.String`.
pub(super) fn text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        let written = match step {
            Step::Field(name) => write!(text, ".{name}"),
            Step::Value(value) => write!(text, "[={value}]"),
            Step::Key(key) => {
                let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
                let pairs: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(text, "[{}]", pairs.join(","))
            }
        };
        written.expect("a String takes every write");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_sets_round_trip() {
        let value = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}, "f:replicas": {}}});
        let fields = Fields::parse(&value).unwrap();
        assert_eq!(fields.to_value(), value);
        let texts: Vec<String> = fields.iter().map(|path| text(path)).collect();
        assert_eq!(
            texts,
            [
                ".metadata.labels",
                ".metadata.labels.app",
                ".spec.containers[name=\"c\"]",
                ".spec.containers[name=\"c\"].image",
                ".spec.replicas"
            ]
        );
        let spec = vec![Step::Field("spec".to_owned())];
        assert!(fields.reaches(&spec));
        assert_eq!(Fields::parse(&json!({"x:y": {}})), None);
    }
}
