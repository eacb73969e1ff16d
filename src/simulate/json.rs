//! JSON values without repeated keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value without repeated keys. A repeated key is an error, since it is unclear which of its values is meant.
pub(super) struct UniqueKeys(pub(super) Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = UniqueKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_bool<E>(self, value: bool) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys(Number::from_f64(value).map_or(Value::Null, Value::Number)))
            }

            fn visit_str<E>(self, value: &str) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys(value.into()))
            }

            fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
                let mut list = Vec::new();
                while let Some(UniqueKeys(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(UniqueKeys(Value::Array(list)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueKeys, A::Error> {
                let mut map = Map::new();
                while let Some(key) = entries.next_key::<String>()? {
                    if map.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
                    }
                    let UniqueKeys(value) = entries.next_value()?;
                    map.insert(key, value);
                }
                Ok(UniqueKeys(Value::Object(map)))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}
