//! YAML text to nodes whose plain scalars are resolved by YAML 1.1.
//!
//! `serde_yaml` parses with libyaml, whose port upstream uses, but resolves scalars by YAML 1.2 and does not say which ones
//! are plain: `yes` and `"yes"` are the same text to its visitors. They are told apart by what stands before them in the
//! file, as `serde_yaml` lends texts out of it; a text that it cannot lend has escapes or line breaks in it, and such a one
//! is no number, boolean or null in either version.
//!
//! libyaml is newer than the port in one point: inside `[]` and `{}` it lets a word hold `?` and wants a space after a word's
//! colon, so `{name:, x: 1}` fails with other words, and `{a?b: 1}` does not fail.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::DecodeError;
use super::nesting::up_to_deep;
use super::scalar::{Scalar, resolve};
use super::size::is_too_large;
use super::syntax::{Lines, too_deep, yaml_error};
use super::tag::{Tags, Written};

/// A node, with aliases replaced by what they stand for.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Scalar(Scalar),
    /// A plain `<<`.
    Merge,
    Sequence(Vec<Node>),
    /// Key, number of the value (see [`line_of`]), and value of each entry.
    Mapping(Vec<(Node, usize, Node)>),
}

/// What the texts of a document may be longer than the text that it is read from, by aliases: this many times, and a bit.
const MAX_GROWTH: usize = 10;

/// The bit.
const MAX_EXTRA: usize = 1 << 20;

/// The root of the first document of `text`; null for an empty text.
pub(super) fn read(text: &str) -> Result<Node, DecodeError> {
    Documents::new(text, Lines::Upstream).next().unwrap_or(Ok(Node::Scalar(Scalar::Null)))
}

/// Reads the roots of a text's documents, one after another; after an error there are no more.
pub(super) struct Documents<'a> {
    text: &'a str,
    rest: serde_yaml::Deserializer<'a>,
    lines: Lines,
    /// An error to begin with.
    refused: Option<DecodeError>,
    has_failed: bool,
}

impl<'a> Documents<'a> {
    /// The documents of `text`.
    pub(super) fn new(text: &'a str, lines: Lines) -> Self {
        let is_deep = |part: &str| Documents::raw(part, lines).any(|node| node.is_err_and(|error| error == too_deep()));
        let refused = is_too_large(text)
            .then(|| "yaml: a document has more values than are read at once: divide it, or write it as JSON".into());
        // What is nested too deep is read up to there, where reading fails; the rest would take too long.
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

/// The line, counted from 1, of the node that was read as the `number`th of a document. Only an error carries a position, so
/// the text is read again up to there.
pub(super) fn line_of(text: &str, document: usize, number: usize) -> usize {
    let document = serde_yaml::Deserializer::from_str(text).nth(document);
    let error = document.and_then(|document| Reader::new(text, Some(number)).deserialize(document).err());
    error.and_then(|error| error.location()).map_or(0, |location| location.line())
}

/// Reads nodes, counting them.
struct Reader<'a> {
    tags: Tags<'a>,
    /// How long the text is.
    len: usize,
    count: Cell<usize>,
    /// Bytes of the texts so far.
    bytes: Cell<usize>,
    /// The number of the node at which to stop with an error.
    trap: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, trap: Option<usize>) -> Self {
        Self { tags: Tags::new(text), len: text.len(), count: Cell::new(0), bytes: Cell::new(0), trap }
    }

    /// Fails once aliases have made more of the text than it says.
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

    /// A node with a tag of its own (`!mine`): the tag means nothing, but a scalar under it stays a text.
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
