//! Schema of the API's objects: their members, the types of the members, and their encoding.
//!
//! `types.txt` lists upstream's own types. `tests/controlplane/cmd/schema` prints it, and describes its format.
//! [`read`] converts what a client sent to the result of Go's decoder, and [`complete`] to the output of Go's encoder.
//! [`from_protobuf`] converts protobuf to JSON. A [`SchemaNode`] describes the ownership of fields.

mod amount;
mod own;
mod protobuf;
mod read;
mod write;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(super) use own::{Ownership, SchemaNode};
pub(super) use protobuf::decode as from_protobuf;
pub(super) use read::{read, sort_of};
pub(super) use write::complete;

use super::kinds::Kind;
use crate::apimachinery::patch::ListMerge;

/// The types of all objects, parsed from `types.txt`.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(include_str!("types.txt")));

struct Schema {
    objects: Vec<Object>,
    names: BTreeMap<&'static str, usize>,
}

/// A structure type of the API.
#[derive(Debug)]
pub(super) struct Object {
    /// Name of the type in Go, such as `v1.PodSpec`.
    go: &'static str,
    /// Whether one owner owns the structure as a whole.
    is_atomic: bool,
    /// The members, sorted by name.
    members: Vec<Member>,
}

/// A member of a structure type.
#[derive(Debug)]
pub(super) struct Member {
    name: &'static str,
    pub(super) kind: Type,
    /// Name of the member's type in Go.
    go: String,
    omitted: Omitted,
    pub(super) merge: ListMerge,
    /// Whether a strategic merge patch replaces the member as a whole.
    pub(super) is_replaced: bool,
    owned: Owned,
    /// Field numbers in protobuf: first those of enclosing messages that JSON does not show, last the member's own number.
    numbers: Vec<u64>,
}

/// Condition under which the encoder omits a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omitted {
    Never,
    /// The member is omitted if it is empty. Structures never count as empty.
    Empty,
    /// The member is omitted if it has Go's zero value.
    Zero,
}

/// Ownership of a list's elements or of a map's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    /// The default of the type: lists and plain values are owned as a whole, structures and maps per member.
    Usually,
    /// A list owned per element. These members are the key of an element.
    Keys(Vec<&'static str>),
    /// A list of plain values, owned per value.
    Values,
    /// A map or structure that is owned as a whole.
    Whole,
}

/// The type of a value.
#[derive(Debug)]
pub(super) enum Type {
    Flag,
    Text,
    Int32,
    Int64,
    /// Bytes as text in base64.
    Bytes,
    /// Any JSON value, not decoded.
    Raw,
    Time,
    MicroTime,
    Quantity,
    IntOrText,
    /// A pointer in Go: the member may be absent although its type has a zero value.
    Optional(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Object(usize),
}

impl Schema {
    fn parse(text: &'static str) -> Self {
        let names: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        let names: BTreeMap<&str, usize> = names.into_iter().map(|line| line.trim_end_matches(" a")).zip(0..).collect();
        let mut objects: Vec<Object> = Vec::new();
        for line in text.lines() {
            match line.strip_prefix(' ') {
                None => {
                    let name = line.strip_suffix(" a");
                    let go = after_slash(name.unwrap_or(line));
                    objects.push(Object { go, is_atomic: name.is_some(), members: Vec::new() });
                }
                Some(member) => objects.last_mut().expect("a type").members.push(Member::parse(member, &names)),
            }
        }
        for object in &mut objects {
            object.members.sort_by_key(|member| member.name);
        }
        Self { objects, names }
    }
}

impl Object {
    /// Returns the type of a kind's objects.
    pub(super) fn of(kind: &Kind) -> &'static Self {
        let group = kind.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        Self::named(&format!("{group}/{}.{}", kind.version, kind.kind))
    }

    /// Returns the type with this name, such as `core/v1.Binding`. Panics if there is none.
    pub(super) fn named(name: &str) -> &'static Self {
        Self::find(name).unwrap_or_else(|| panic!("the schema has no {name}"))
    }

    /// Returns the type with this name, if there is one.
    fn find(name: &str) -> Option<&'static Self> {
        SCHEMA.names.get(name).map(|at| &SCHEMA.objects[*at])
    }

    /// Returns the member with this name.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        let at = self.members.binary_search_by_key(&name, |member| member.name).ok()?;
        Some(&self.members[at])
    }

    /// Returns the member at a path. The path has no list positions and map keys.
    pub(super) fn at(&'static self, path: &str) -> Option<&'static Member> {
        let mut steps = path.split('.');
        let mut member = self.member(steps.next()?)?;
        for step in steps {
            member = member.kind.object()?.member(step)?;
        }
        Some(member)
    }
}

impl Member {
    fn parse(line: &'static str, names: &BTreeMap<&'static str, usize>) -> Self {
        let mut words = line.split(' ');
        let (name, text) = (words.next().expect("a name"), words.next().expect("a type"));
        let (kind, go) = Type::parse(text, names);
        let mut member = Self {
            name,
            kind,
            go,
            omitted: Omitted::Never,
            merge: ListMerge::Replace,
            is_replaced: false,
            owned: Owned::Usually,
            numbers: Vec::new(),
        };
        for mark in words {
            match mark {
                "o" if member.omitted == Omitted::Never => member.omitted = Omitted::Empty,
                "z" => member.omitted = Omitted::Zero,
                "m" => member.merge = ListMerge::Values,
                "x" => member.is_replaced = true,
                "s" => member.owned = Owned::Values,
                "a" => member.owned = Owned::Whole,
                _ => {
                    if let Some(key) = mark.strip_prefix("m=") {
                        member.merge = ListMerge::Key(key);
                    } else if let Some(keys) = mark.strip_prefix("k=") {
                        member.owned = Owned::Keys(keys.split(',').collect());
                    } else if let Some(numbers) = mark.strip_prefix('#') {
                        member.numbers = numbers.split('.').map(|number| number.parse().expect("a number")).collect();
                    }
                }
            }
        }
        member
    }
}

impl Type {
    /// Parses a type, and returns it with its name in Go.
    fn parse(text: &'static str, names: &BTreeMap<&'static str, usize>) -> (Self, String) {
        if let Some(inner) = text.strip_prefix('*') {
            let (inner, go) = Self::parse(inner, names);
            return (Self::Optional(Box::new(inner)), go);
        }
        if let Some(inner) = text.strip_prefix("[]") {
            let (inner, go) = Self::parse(inner, names);
            return (Self::List(Box::new(inner)), format!("[]{go}"));
        }
        let (text, name) = text.split_once(':').unwrap_or((text, ""));
        if let Some(inner) = text.strip_prefix("map[string]") {
            let (inner, go) = Self::parse(inner, names);
            let go = if name.is_empty() { format!("map[string]{go}") } else { name.to_owned() };
            return (Self::Map(Box::new(inner)), go);
        }
        let kind = match text {
            "bool" => Self::Flag,
            "string" => Self::Text,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "bytes" => return (Self::Bytes, "[]uint8".to_owned()),
            "raw" => Self::Raw,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "quantity" => return (Self::Quantity, "resource.Quantity".to_owned()),
            "intorstring" => return (Self::IntOrText, "intstr.IntOrString".to_owned()),
            name => Self::Object(*names.get(name).unwrap_or_else(|| panic!("the schema has no {name}"))),
        };
        let go = if name.is_empty() { after_slash(text) } else { name };
        (kind, go.to_owned())
    }

    /// Returns the structure type of the value, or of its elements.
    pub(super) fn object(&self) -> Option<&'static Object> {
        match self {
            Self::Object(at) => Some(&SCHEMA.objects[*at]),
            Self::Optional(inner) | Self::List(inner) | Self::Map(inner) => inner.object(),
            _ => None,
        }
    }
}

fn after_slash(name: &'static str) -> &'static str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use super::*;

    #[test]
    fn every_kind_has_a_schema_and_every_field_a_number() {
        for kind in kinds::served() {
            assert!(Object::of(kind).member("metadata").is_some(), "{kind:?}");
        }
        for object in &SCHEMA.objects {
            for member in object.members.iter().filter(|member| !matches!(member.name, "kind" | "apiVersion")) {
                assert!(!member.numbers.is_empty(), "{}.{}", object.go, member.name);
            }
        }
    }
}
