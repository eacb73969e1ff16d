//! YAML text to [`Value`]s, by way of nodes: what `sigs.k8s.io/yaml` turns into JSON before anything is decoded.
//!
//! The parser is a port of libyaml, as `go-yaml`'s is, so syntax errors have the same texts and lines. Follows
//! `go.yaml.in/yaml/v2/decode.go` and `sigs.k8s.io/yaml/yaml.go#convertToJSONableObject`, the versions that `@v1.36.3`
//! depends on.

use std::collections::BTreeMap;

use libyaml_safer::{Encoding, Error, ErrorKind, Event, EventData, Parser};

use super::super::text::quote;
use super::json::MAX_DEPTH;
use super::scalar::{Scalar, TAG_PREFIX, resolve};
use super::value::{DecodeError, Value};

/// What a document says, and what strict reading holds against it.
#[derive(Debug)]
pub(super) struct Document {
    /// The first document of the text; keys of mappings are sorted, and of repeated ones the last counts.
    pub(super) value: Value,
    /// Upstream's text about repeated keys.
    pub(super) repeated: Option<DecodeError>,
}

/// Reads the first document of `text`; an empty text is null.
pub(super) fn parse(text: &str) -> Result<Document, DecodeError> {
    let mut input = text.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut input);
    parser.set_encoding(Encoding::Utf8);
    let mut composer = Composer { parser, nodes: Vec::new(), anchors: BTreeMap::new() };
    let Some(root) = composer.document()? else {
        return Ok(Document { value: Value::Null, repeated: None });
    };
    let mut reader = NodeReader { nodes: &composer.nodes, ..NodeReader::default() };
    let value = reader.read(root, 0)?.into_value()?;
    let repeated = (!reader.repeated.is_empty())
        .then(|| DecodeError(format!("yaml: unmarshal errors:\n  {}", reader.repeated.join("\n  "))));
    Ok(Document { value, repeated })
}

/// Index of a node.
type NodeId = usize;

struct Node {
    /// Line of its first character, counted from 1.
    line: u64,
    content: Content,
}

enum Content {
    /// Text, its tag, and whether it is plain (neither quoted nor tagged).
    Scalar(String, Option<String>, bool),
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    /// The anchor's name and node.
    Alias(String, NodeId),
}

/// Builds nodes from the parser's events.
struct Composer<'a, 'b> {
    parser: Parser<&'b mut &'a [u8]>,
    nodes: Vec<Node>,
    anchors: BTreeMap<String, NodeId>,
}

impl Composer<'_, '_> {
    fn next(&mut self) -> Result<Event, DecodeError> {
        self.parser.parse().map_err(|error| syntax_error(&error))
    }

    fn document(&mut self) -> Result<Option<NodeId>, DecodeError> {
        loop {
            match self.next()?.data {
                EventData::StreamEnd => return Ok(None),
                EventData::DocumentStart { .. } => break,
                _ => {}
            }
        }
        let first = self.next()?;
        let root = self.node(first, 0)?;
        // Reads on to the document's end, so that what follows its root is checked as part of it.
        self.next()?;
        Ok(Some(root))
    }

    fn node(&mut self, event: Event, depth: usize) -> Result<NodeId, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(DecodeError(format!("yaml: exceeded max depth of {MAX_DEPTH}")));
        }
        let id = self.nodes.len();
        let line = event.start_mark.line + 1;
        let empty = Content::Sequence(Vec::new());
        self.nodes.push(Node { line, content: empty });
        let content = match event.data {
            EventData::Alias { anchor } => match self.anchors.get(&anchor) {
                Some(target) => Content::Alias(anchor, *target),
                None => return Err(DecodeError(format!("yaml: unknown anchor '{anchor}' referenced"))),
            },
            EventData::Scalar { anchor, tag, value, plain_implicit, .. } => {
                self.remember(anchor, id);
                Content::Scalar(value, tag, plain_implicit)
            }
            EventData::SequenceStart { anchor, .. } => {
                self.remember(anchor, id);
                let mut items = Vec::new();
                loop {
                    let event = self.next()?;
                    if matches!(event.data, EventData::SequenceEnd) {
                        break Content::Sequence(items);
                    }
                    items.push(self.node(event, depth + 1)?);
                }
            }
            EventData::MappingStart { anchor, .. } => {
                self.remember(anchor, id);
                let mut entries = Vec::new();
                loop {
                    let event = self.next()?;
                    if matches!(event.data, EventData::MappingEnd) {
                        break Content::Mapping(entries);
                    }
                    let key = self.node(event, depth + 1)?;
                    let event = self.next()?;
                    entries.push((key, self.node(event, depth + 1)?));
                }
            }
            _ => return Err("yaml: attempted to go past the end of stream; corrupted value?".into()),
        };
        self.nodes[id].content = content;
        Ok(id)
    }

    fn remember(&mut self, anchor: Option<String>, id: NodeId) {
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
    }
}

/// The error as `go-yaml` prints it. Follows `decode.go#fail`.
fn syntax_error(error: &Error) -> DecodeError {
    let problem = error.problem();
    let line = |mark: Option<libyaml_safer::Mark>| mark.map_or(0, |mark| mark.line);
    let at_problem = line(error.problem_mark());
    let line = match at_problem {
        0 => line(error.context_mark()),
        // A scanner's line is that before the one it is on.
        at if error.kind() == ErrorKind::Scanner => at + 1,
        at => at,
    };
    match line {
        0 => DecodeError(format!("yaml: {problem}")),
        line => DecodeError(format!("yaml: line {line}: {problem}")),
    }
}

/// A key of a mapping: what makes two of them the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// As its bits.
    Float(u64),
    String(String),
}

/// A node's meaning before keys become strings.
#[derive(Clone, Debug)]
enum Meaning {
    Scalar(Scalar),
    Sequence(Vec<Meaning>),
    Mapping(BTreeMap<Key, Meaning>),
}

/// Gives nodes their meaning.
#[derive(Default)]
struct NodeReader<'a> {
    nodes: &'a [Node],
    /// Aliases being read, to find one inside itself.
    open: Vec<NodeId>,
    repeated: Vec<String>,
    /// Nodes read, and those of them read through an alias: their ratio is bounded.
    read: u32,
    read_through_alias: u32,
}

impl NodeReader<'_> {
    fn read(&mut self, id: NodeId, depth: usize) -> Result<Meaning, DecodeError> {
        self.count()?;
        if depth > MAX_DEPTH {
            return Err(DecodeError(format!("yaml: exceeded max depth of {MAX_DEPTH}")));
        }
        let nodes = self.nodes;
        match &nodes[id].content {
            Content::Alias(anchor, target) => self.alias(id, anchor, |reader| reader.read(*target, depth + 1)),
            Content::Scalar(text, tag, plain) => scalar(text, tag.as_deref(), *plain).map(Meaning::Scalar),
            Content::Sequence(items) => {
                let items = items.iter().map(|item| self.read(*item, depth + 1));
                items.collect::<Result<_, _>>().map(Meaning::Sequence)
            }
            Content::Mapping(_) => {
                let mut map = BTreeMap::new();
                self.fill(id, &mut map, depth)?;
                Ok(Meaning::Mapping(map))
            }
        }
    }

    /// Follows `decode.go#unmarshal`: what aliases multiply must stay in proportion.
    fn count(&mut self) -> Result<(), DecodeError> {
        self.read += 1;
        if !self.open.is_empty() {
            self.read_through_alias += 1;
        }
        let allowed = match self.read {
            0..=400_000 => 0.99,
            4_000_000.. => 0.10,
            read => 0.99 - 0.89 * (f64::from(read - 400_000) / 3_600_000.0),
        };
        let ratio = f64::from(self.read_through_alias) / f64::from(self.read);
        if self.read_through_alias > 100 && self.read > 1000 && ratio > allowed {
            return Err("yaml: document contains excessive aliasing".into());
        }
        Ok(())
    }

    fn alias<T>(
        &mut self,
        id: NodeId,
        anchor: &str,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.open.contains(&id) {
            return Err(DecodeError(format!("yaml: anchor '{anchor}' value contains itself")));
        }
        self.open.push(id);
        let out = read(self);
        self.open.pop();
        out
    }

    /// Adds the entries of mapping `id`, or of the one it is an alias of, to `map`.
    fn fill(&mut self, id: NodeId, map: &mut BTreeMap<Key, Meaning>, depth: usize) -> Result<(), DecodeError> {
        let nodes = self.nodes;
        let entries = match &nodes[id].content {
            Content::Mapping(entries) => entries,
            Content::Alias(anchor, target) => {
                return self.alias(id, anchor, |reader| reader.fill(*target, map, depth + 1));
            }
            _ => return Err("yaml: map merge requires map or sequence of maps as the value".into()),
        };
        for (key, value) in entries {
            if self.is_merge(*key) {
                self.merge(*value, map, depth)?;
                continue;
            }
            let key = into_key(self.read(*key, depth + 1)?)?;
            let meaning = self.read(*value, depth + 1)?;
            if map.contains_key(&key) {
                let line = nodes[*value].line;
                self.repeated.push(format!("line {line}: key {} already set in map", key.in_go()));
            }
            map.insert(key, meaning);
        }
        Ok(())
    }

    fn is_merge(&self, key: NodeId) -> bool {
        let merge_tag =
            |tag: &Option<String>| tag.as_deref().is_some_and(|tag| tag.strip_prefix(TAG_PREFIX) == Some("merge"));
        matches!(&self.nodes[key].content, Content::Scalar(text, tag, plain) if text == "<<" && (*plain || merge_tag(tag)))
    }

    fn merge(&mut self, value: NodeId, map: &mut BTreeMap<Key, Meaning>, depth: usize) -> Result<(), DecodeError> {
        let nodes = self.nodes;
        match &nodes[value].content {
            // Earlier items go before later ones.
            Content::Sequence(items) => items.iter().rev().try_for_each(|item| self.fill(*item, map, depth + 1)),
            _ => self.fill(value, map, depth + 1),
        }
    }
}

/// Follows `decode.go#scalar`.
fn scalar(text: &str, tag: Option<&str>, plain: bool) -> Result<Scalar, DecodeError> {
    match tag {
        None | Some("") if plain => resolve(None, text),
        None | Some("") => Ok(Scalar::String(text.to_owned())),
        Some(tag) => match tag.strip_prefix(TAG_PREFIX) {
            Some("binary") => match super::super::base64::decode(text) {
                Ok(bytes) => Ok(Scalar::String(String::from_utf8_lossy(&bytes).into_owned())),
                Err(_) => Err("yaml: !!binary value contains invalid base64 data".into()),
            },
            Some(tag @ ("str" | "bool" | "int" | "float" | "null" | "timestamp")) => resolve(Some(tag), text),
            _ => Ok(Scalar::String(text.to_owned())),
        },
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
        Meaning::Sequence(_) => Err("yaml: invalid map key: a sequence".into()),
        Meaning::Mapping(_) => Err("yaml: invalid map key: a mapping".into()),
    }
}

impl Key {
    /// As Go's `%#v` prints it.
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

    /// The key of the JSON object.
    fn into_json_key(self) -> Result<String, DecodeError> {
        let unsupported =
            |kind: &str, key: &str| Err(DecodeError(format!("unsupported map key of type: {kind}, key: {key}")));
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
                value => value.to_string(),
            }),
            Self::String(text) => Ok(text),
        }
    }
}

impl Meaning {
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
                    sorted.insert(key.into_json_key()?, meaning.into_value()?);
                }
                Ok(Value::Object(sorted.into_iter().collect()))
            }
        }
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
