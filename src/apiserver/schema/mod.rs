//! The fields of the API's types: what each is called in JSON and on the wire, and what becomes of it when it is empty.
//!
//! `types.txt` has a line for each type: its name (API group and kind), then its fields as `name:number:type:flags`.
//! Types are `string`, `int`, `bool`, `bytes`, `quantity`, `time`, `microtime`, `intorstring`, `raw` or the name of a
//! line; `[]` in front is a list, `{}` a map by text. Flags: `p` may be absent, `e` is left out when empty, `z` also when it
//! is a structure, `i` its members stand among those of the type it is in. The file is what
//! `tests/controlplane/cmd/schema` prints, which asks upstream's own types.

mod shape;
mod wire;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::kinds::Kind;

pub(super) use shape::{as_go_writes, without_empty};
pub(super) use wire::{MEDIA_TYPE, decode};

/// A structure.
#[derive(Debug)]
struct Type {
    fields: Vec<Field>,
}

/// A field of a structure.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a table")]
struct Field {
    name: &'static str,
    number: u64,
    repeats: Repeats,
    holds: Holds,
    pointer: bool,
    omit_empty: bool,
    omit_zero: bool,
    inline: bool,
}

/// How often a field's value occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeats {
    Once,
    List,
    Map,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Text,
    Integer,
    Flag,
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    Raw,
    Structure(&'static str),
}

static TYPES: LazyLock<HashMap<&'static str, Type>> =
    LazyLock::new(|| include_str!("types.txt").lines().map(Type::parse).collect());

impl Type {
    fn named(name: &str) -> Option<&'static Self> {
        TYPES.get(name)
    }

    /// The type of a kind's objects.
    fn of(kind: &Kind) -> Option<&'static Self> {
        let group = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
        Self::named(&format!("{group}.{}", kind.kind))
    }

    fn parse(line: &'static str) -> (&'static str, Self) {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        (name, Self { fields: words.map(Field::parse).collect() })
    }
}

impl Field {
    fn parse(word: &'static str) -> Self {
        let mut parts = word.split(':');
        let mut next = || parts.next().unwrap_or_default();
        let (name, number, sort, flags) = (next(), next(), next(), next());
        let (repeats, sort) = match (sort.strip_prefix("[]"), sort.strip_prefix("{}")) {
            (Some(of), _) => (Repeats::List, of),
            (_, Some(of)) => (Repeats::Map, of),
            _ => (Repeats::Once, sort),
        };
        let has = |flag: char| flags.contains(flag);
        Self {
            name,
            number: number.parse().unwrap_or(0),
            repeats,
            holds: Holds::parse(sort),
            pointer: has('p'),
            omit_empty: has('e'),
            omit_zero: has('z'),
            inline: has('i'),
        }
    }
}

impl Holds {
    fn parse(word: &'static str) -> Self {
        match word {
            "string" => Self::Text,
            "int" => Self::Integer,
            "bool" => Self::Flag,
            "bytes" => Self::Bytes,
            "quantity" => Self::Quantity,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "intorstring" => Self::IntOrString,
            "raw" => Self::Raw,
            name => Self::Structure(name),
        }
    }

    /// The structure that it is.
    fn structure(self) -> Option<&'static Type> {
        match self {
            Self::Structure(name) => Type::named(name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use super::*;

    #[test]
    fn every_kind_has_a_type_and_every_type_is_there() {
        for kind in kinds::served() {
            assert!(Type::of(kind).is_some(), "{kind:?}");
        }
        for line in include_str!("types.txt").lines() {
            let (name, found) = Type::parse(line);
            for field in found.fields {
                assert!(field.number > 0, "{name}.{}", field.name);
                if let Holds::Structure(of) = field.holds {
                    assert!(Type::named(of).is_some(), "{name}.{} is a {of}", field.name);
                }
            }
        }
    }
}
