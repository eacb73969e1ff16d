//! Which objects a list or a watch is about: a namespace, labels and fields.

use super::kinds::Kind;
use super::labels::{self, LabelTerm};
use super::object::Object;
use super::status::Status;

/// Everything by which a list or watch narrows a kind down.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// Only this namespace; empty for all.
    pub(super) namespace: String,
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

#[derive(Clone, Debug)]
struct FieldTerm {
    source: FieldSource,
    equal: bool,
    value: String,
}

#[derive(Clone, Copy, Debug)]
enum FieldSource {
    Name,
    Namespace,
    /// A position in the kind's table.
    Column(usize),
}

impl Selection {
    /// Reads the selectors of a request.
    pub(super) fn parse(kind: &Kind, namespace: &str, labels: &str, fields: &str) -> Result<Self, Status> {
        Ok(Self {
            namespace: namespace.to_owned(),
            labels: labels::parse(labels)?,
            fields: parse_fields(kind, fields)?,
        })
    }

    /// Narrows down to one object.
    pub(super) fn only(&mut self, name: &str) {
        self.fields.push(FieldTerm { source: FieldSource::Name, equal: true, value: name.to_owned() });
    }

    /// Whether labels or fields narrow the kind down.
    pub(super) fn narrows(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        self.in_namespace(object)
            && self.fields.iter().all(|term| term.matches(object))
            && self.labels.iter().all(|term| term.matches(object))
    }

    /// Whether the object's namespace is the one asked for.
    pub(super) fn in_namespace(&self, object: &Object) -> bool {
        self.namespace.is_empty() || object.namespace() == self.namespace
    }
}

impl FieldTerm {
    fn matches(&self, object: &Object) -> bool {
        let value = match self.source {
            FieldSource::Name => object.name(),
            FieldSource::Namespace => object.namespace(),
            FieldSource::Column(column) => &object.fields[column],
        };
        (value == self.value) == self.equal
    }
}

/// Follows `apimachinery/pkg/fields/selector.go#parseSelector @v1.36.3`.
fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldTerm>, Status> {
    let mut terms = Vec::new();
    for part in split_terms(text).into_iter().filter(|part| !part.is_empty()) {
        let Some((label, equal, value)) = split_term(part) else {
            return Err(Status::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'")));
        };
        let value = unescape(value).map_err(Status::bad_request)?;
        terms.push(FieldTerm { source: field_source(kind, label)?, equal, value });
    }
    Ok(terms)
}

fn field_source(kind: &Kind, label: &str) -> Result<FieldSource, Status> {
    match label {
        "metadata.name" => return Ok(FieldSource::Name),
        "metadata.namespace" if kind.namespaced => return Ok(FieldSource::Namespace),
        _ if label.starts_with('#') => {}
        _ => {
            if let Some(column) = kind.field(label) {
                return Ok(FieldSource::Column(column));
            }
        }
    }
    Err(Status::bad_request(if !kind.has_own_fields() {
        format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {label}")
    }))
}

/// Splits at commas that no backslash takes the meaning from.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(part: &str) -> Option<(&str, bool, &str)> {
    for at in part.char_indices().map(|(at, _)| at) {
        let rest = &part[at..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&part[..at], equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(format!("invalid field selector: invalid escape sequence: \\{other}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {char}")),
            other => out.push(other),
        }
    }
    Ok(out)
}
