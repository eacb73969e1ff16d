//! Parses YAML text into nodes, with plain scalars resolved by YAML 1.1.
//!
//! `serde_yaml` parses with libyaml, and upstream uses a port of libyaml. But `serde_yaml` resolves scalars by YAML 1.2 and
//! does not tell whether a scalar is plain: its visitors get the same text for `yes` and `"yes"`. This module tells them apart
//! by the characters before the scalar in the file, since `serde_yaml` borrows texts from the file. A text that cannot be
//! borrowed has escapes or line breaks, so it is not a number, boolean or null in either version.
//!
//! libyaml is newer than the port in one respect. Inside `[]` and `{}`, it allows `?` in a word and requires a space after a
//! word's colon. So the error for `{name:, x: 1}` has a text that differs from upstream's, and `{a?b: 1}` is not an error.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::DecodeError;
use super::nesting::up_to_deep;
use super::scalar::{Scalar, resolve};
use super::size::is_too_large;
use super::syntax::{Lines, too_deep, yaml_error};
use super::tag::{Tags, Written};

/// A YAML node, with aliases replaced by their anchors' nodes.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Scalar(Scalar),
    /// The merge key: a plain `<<`.
    Merge,
    Sequence(Vec<Node>),
    /// The entries in order: the key, the number of the value's node (see [`line_of`]), and the value.
    Mapping(Vec<(Node, usize, Node)>),
}

/// Limit on the growth of a document by aliases: its texts may have this many times the bytes of the file, plus [`MAX_EXTRA`].
const MAX_GROWTH: usize = 10;

/// Bytes that the texts of a document may have in addition to the limit by [`MAX_GROWTH`].
const MAX_EXTRA: usize = 1 << 20;

/// Parses the first document of `text`; an empty text is null.
pub(super) fn read(text: &str) -> Result<Node, DecodeError> {
    Documents::new(text, Lines::Upstream).next().unwrap_or(Ok(Node::Scalar(Scalar::Null)))
}

/// Parses the documents of a text in order. Ends after an error.
pub(super) struct Documents<'a> {
    text: &'a str,
    rest: serde_yaml::Deserializer<'a>,
    lines: Lines,
    /// An error to return before any document.
    refused: Option<DecodeError>,
    has_failed: bool,
}

impl<'a> Documents<'a> {
    /// Prepares to parse the documents of `text`.
    pub(super) fn new(text: &'a str, lines: Lines) -> Self {
        let is_deep = |part: &str| Documents::raw(part, lines).any(|node| node.is_err_and(|error| error == too_deep()));
        let refused =
            is_too_large(text).then(|| "yaml: document has too many values: split it, or convert it to JSON".into());
        // A text that is nested too deep is cut at the bracket that exceeds the limit. Parsing fails before the cut, and
        // scanning the rest would take too long.
        let text = up_to_deep(text).filter(|part| refused.is_none() && is_deep(part)).unwrap_or(text);
        Self { refused, ..Self::raw(text, lines) }
    }

    fn raw(text: &'a str, lines: Lines) -> Self {
        Self { text, rest: serde_yaml::Deserializer::from_str(text), lines, refused: None, has_failed: false }
    }
}

impl Iterator for Documents<'_> {
    type Item = Result<Node, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        if let Some(error) = self.refused.take() {
            self.has_failed = true;
            return Some(Err(error));
        }
        let node = Reader::new(self.text, None).deserialize(self.rest.next()?);
        self.has_failed = node.is_err();
        Some(node.map_err(|error| yaml_error(&error, self.text, self.lines)))
    }
}

/// The line, counted from 1, of the node with this number in a document. Only errors have a position, so this parses the text
/// again and lets the parser fail at that node.
pub(super) fn line_of(text: &str, document: usize, number: usize) -> usize {
    let document = serde_yaml::Deserializer::from_str(text).nth(document);
    let error = document.and_then(|document| Reader::new(text, Some(number)).deserialize(document).err());
    error.and_then(|error| error.location()).map_or(0, |location| location.line())
}

/// Parses nodes and counts them.
struct Reader<'a> {
    tags: Tags<'a>,
    /// Length of the file's text in bytes.
    len: usize,
    count: Cell<usize>,
    /// Total bytes of the texts parsed so far, plus one byte for each node.
    bytes: Cell<usize>,
    /// Number of the node at which to fail, to find its line.
    trap: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, trap: Option<usize>) -> Self {
        Self { tags: Tags::new(text), len: text.len(), count: Cell::new(0), bytes: Cell::new(0), trap }
    }

    /// Adds `bytes` to the total. Fails if the total exceeds the limit, which only aliases can cause.
    fn grow<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.bytes.set(self.bytes.get() + bytes);
        let limit = self.len.saturating_mul(MAX_GROWTH).saturating_add(MAX_EXTRA);
        if self.bytes.get() > limit { Err(E::custom("repetition limit exceeded")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for &Reader<'de> {
    type Value = Node;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let number = self.count.get();
        self.count.set(number + 1);
        self.grow(1)?;
        deserializer.deserialize_any(NodeVisitor { reader: self, trapped: self.trap == Some(number) })
    }
}

struct NodeVisitor<'a, 'de> {
    reader: &'a Reader<'de>,
    trapped: bool,
}

impl NodeVisitor<'_, '_> {
    fn scalar<E: serde::de::Error>(self, scalar: Scalar) -> Result<Node, E> {
        if self.trapped { Err(E::custom("found")) } else { Ok(Node::Scalar(scalar)) }
    }
}

impl<'de> Visitor<'de> for NodeVisitor<'_, 'de> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Node, E> {
        self.scalar(Scalar::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Node, E> {
        self.scalar(Scalar::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Node, E> {
        self.scalar(Scalar::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Node, E> {
        self.scalar(Scalar::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Node, E> {
        self.scalar(i64::try_from(value).map_or(Scalar::Uint(value), Scalar::Int))
    }

    #[expect(clippy::cast_precision_loss, reason = "Go reads integers of more than 64 bits as floats")]
    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Node, E> {
        self.scalar(Scalar::Float(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "Go reads integers of more than 64 bits as floats")]
    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Node, E> {
        self.scalar(Scalar::Float(value as f64))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        self.scalar(Scalar::Float(value))
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Node, E> {
        self.reader.grow(text.len())?;
        let Written { is_quoted, tag } = self.reader.tags.before(text);
        let scalar = match tag {
            None if !is_quoted && text == "<<" && !self.trapped => return Ok(Node::Merge),
            None if !is_quoted => resolve(text),
            Some("!!binary") => {
                let bytes = crate::go::base64::decode(text);
                let bytes = bytes.map_err(|_| E::custom("!!binary value contains invalid base64 data"))?;
                Scalar::String(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => Scalar::String(text.to_owned()),
        };
        self.scalar(scalar)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Node, E> {
        self.reader.grow(text.len())?;
        self.scalar(Scalar::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        if self.trapped {
            return Err(A::Error::custom("found"));
        }
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element_seed(self.reader)? {
            nodes.push(node);
        }
        Ok(Node::Sequence(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        if self.trapped {
            return Err(A::Error::custom("found"));
        }
        let mut nodes = Vec::new();
        while let Some(key) = entries.next_key_seed(self.reader)? {
            let number = self.reader.count.get();
            nodes.push((key, number, entries.next_value_seed(self.reader)?));
        }
        Ok(Node::Mapping(nodes))
    }

    /// A node with a custom tag (`!mine`). The tag is ignored, but a scalar with it becomes a string.
    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Node, A::Error> {
        let (_tag, content): (String, A::Variant) = data.variant()?;
        let node = content.newtype_variant_seed(self.reader)?;
        if self.trapped {
            return Err(A::Error::custom("found"));
        }
        Ok(match node {
            Node::Scalar(Scalar::Bool(value)) => Node::Scalar(Scalar::String(value.to_string())),
            Node::Scalar(Scalar::Null) => Node::Scalar(Scalar::String(String::new())),
            Node::Scalar(number) => match number.number_literal() {
                Some(Ok(literal)) => Node::Scalar(Scalar::String(literal)),
                _ => Node::Scalar(number),
            },
            other => other,
        })
    }
}
