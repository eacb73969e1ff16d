//! JSON values whose keys are all different.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value; one with a repeated key cannot be read, since one of the two is not meant.
pub(super) struct Unique(pub(super) Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Unique;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
                Ok(Unique(Number::from_f64(value).map_or(Value::Null, Value::Number)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
                Ok(Unique(value.into()))
            }

            fn visit_unit<E>(self) -> Result<Unique, E> {
                Ok(Unique(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
                let mut list = Vec::new();
                while let Some(Unique(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(Unique(Value::Array(list)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unique, A::Error> {
                let mut map = Map::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
                    }
                    let Unique(value) = entries.next_value()?;
                    map.insert(key, value);
                }
                Ok(Unique(Value::Object(map)))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}
