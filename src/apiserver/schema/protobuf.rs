//! Decoding of objects in protobuf, which Go's typed clients send unless they are configured for JSON.
//!
//! Nothing is encoded in protobuf, because every client that sends protobuf also accepts replies in JSON. Follows
//! `apimachinery/pkg/runtime/serializer/protobuf/doc.go @v1.36.3`.

use serde_json::{Map, Value, json};

use super::{Object, Type};
use crate::apimachinery::protobuf::{Envelope, Field, for_each_field, text, varint};
use crate::apiserver::kinds::unregistered;

/// Deepest allowed nesting of messages. The API's own messages are nested far less deeply.
const DEPTH: usize = 64;

const OTHER_TYPE: &str = "a field is of another type than the API's";

/// Decodes a request body. The error says what is wrong with it.
pub(in crate::apiserver) fn decode(body: &[u8]) -> Result<Value, String> {
    let Envelope { version, kind, raw } = Envelope::read(body)?;
    let (group, number) = version.rsplit_once('/').unwrap_or(("core", &version));
    let group = group.split('.').next().unwrap_or_default();
    let name = match &*kind {
        // Every group has this kind, and it is always the same type.
        "DeleteOptions" => "meta/v1.DeleteOptions".to_owned(),
        kind => format!("{group}/{number}.{kind}"),
    };
    let object = Object::find(&name).ok_or_else(|| unregistered(&version, &kind))?;
    let mut value = object.decode(raw, DEPTH)?;
    value["apiVersion"] = json!(version);
    value["kind"] = json!(kind);
    Ok(value)
}

/// Returns a varint as Go's signed integer.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

impl Object {
    fn decode(&self, bytes: &[u8], depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        self.decode_into(&mut map, &[], bytes, depth)?;
        Ok(Value::Object(map))
    }

    /// Decodes a message into `map`. `within` is the path of field numbers from the object to the message. It is empty for the
    /// object itself, and leads to an inner message that JSON does not show otherwise.
    fn decode_into(
        &self,
        map: &mut Map<String, Value>,
        within: &[u64],
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), String> {
        let depth = depth.checked_sub(1).ok_or("the body is nested too deeply")?;
        for_each_field(bytes, |number, field| {
            let numbers = [within, &[number]].concat();
            let mut inside = self.members.iter().filter(|member| member.numbers.starts_with(&numbers));
            match (inside.next(), field) {
                (None, _) => Ok(()),
                (Some(member), field) if member.numbers == numbers => member.kind.add(map, member.name, field, depth),
                (Some(_), Field::Bytes(message)) => self.decode_into(map, &numbers, message, depth),
                (Some(_), Field::Number(_)) => Err(OTHER_TYPE.to_owned()),
            }
        })
    }
}

impl Type {
    /// Adds a member's value to an object. A value of a list is appended to the list.
    fn add(&self, map: &mut Map<String, Value>, name: &str, field: Field<'_>, depth: usize) -> Result<(), String> {
        match (self, field) {
            (Self::Optional(inner), field) => inner.add(map, name, field, depth),
            (Self::List(inner), field) => {
                let list = map.entry(name).or_insert_with(|| json!([])).as_array_mut().ok_or(OTHER_TYPE)?;
                match (&**inner, field) {
                    (Self::Int32 | Self::Int64 | Self::Flag, Field::Bytes(mut packed)) => {
                        while !packed.is_empty() {
                            list.push(inner.decode(Field::Number(varint(&mut packed)?), depth)?);
                        }
                    }
                    (_, field) => list.push(inner.decode(field, depth)?),
                }
                Ok(())
            }
            (Self::Map(inner), Field::Bytes(entry)) => {
                let (key, value) = inner.entry(entry, depth)?;
                let entries = map.entry(name).or_insert_with(|| json!({})).as_object_mut().ok_or(OTHER_TYPE)?;
                entries.insert(key, value);
                Ok(())
            }
            (_, field) => {
                map.insert(name.to_owned(), self.decode(field, depth)?);
                Ok(())
            }
        }
    }

    /// Decodes an entry of a map. A missing key or value becomes Go's zero value.
    fn entry(&self, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
        let (mut key, mut value) = (String::new(), super::write::nothing(self));
        for_each_field(bytes, |number, field| {
            match (number, field) {
                (1, Field::Bytes(bytes)) => key = text(bytes)?,
                (2, field) => value = self.decode(field, depth)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok((key, value))
    }

    fn decode(&self, field: Field<'_>, depth: usize) -> Result<Value, String> {
        match (self, field) {
            (Self::Optional(inner), field) => inner.decode(field, depth),
            (Self::Int32 | Self::Int64, Field::Number(number)) => Ok(json!(signed(number))),
            (Self::Flag, Field::Number(number)) => Ok(json!(number != 0)),
            (Self::Text, Field::Bytes(bytes)) => Ok(json!(text(bytes)?)),
            (Self::Bytes, Field::Bytes(bytes)) => {
                serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).map_err(|error| error.to_string())
            }
            (Self::Quantity, Field::Bytes(bytes)) => Ok(json!(Parts::of(bytes)?.first_text)),
            (Self::Time, Field::Bytes(bytes)) => Parts::of(bytes)?.time(0),
            (Self::MicroTime, Field::Bytes(bytes)) => Parts::of(bytes)?.time(6),
            (Self::IntOrText, Field::Bytes(bytes)) => Ok(Parts::of(bytes)?.int_or_text()),
            (Self::Raw, Field::Bytes(bytes)) => {
                let raw = Parts::of(bytes)?.first_text;
                if raw.is_empty() {
                    Ok(Value::Null)
                } else {
                    serde_json::from_str(&raw).map_err(|error| error.to_string())
                }
            }
            (Self::Object(_), Field::Bytes(bytes)) => self.object().ok_or(OTHER_TYPE)?.decode(bytes, depth),
            _ => Err(OTHER_TYPE.to_owned()),
        }
    }
}

/// Fields of the small messages that JSON shows as a single value, such as times and quantities.
#[derive(Default)]
struct Parts {
    first: i64,
    second: i64,
    first_text: String,
    third_text: String,
}

impl Parts {
    fn of(bytes: &[u8]) -> Result<Self, String> {
        let mut parts = Self::default();
        for_each_field(bytes, |number, field| {
            match (number, field) {
                (1, Field::Number(number)) => parts.first = signed(number),
                (2, Field::Number(number)) => parts.second = signed(number),
                (1, Field::Bytes(bytes)) => parts.first_text = text(bytes)?,
                (3, Field::Bytes(bytes)) => parts.third_text = text(bytes)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(parts)
    }

    /// Formats seconds and nanoseconds as a time with `digits` fractional digits. Zero seconds and nanoseconds become `Null`.
    fn time(&self, digits: usize) -> Result<Value, String> {
        if (self.first, self.second) == (0, 0) {
            return Ok(Value::Null);
        }
        let nanoseconds =
            if digits == 0 { 0 } else { i32::try_from(self.second).map_err(|error| error.to_string())? };
        let time = jiff::Timestamp::new(self.first, nanoseconds).map_err(|error| error.to_string())?;
        Ok(json!(format!("{time:.digits$}")))
    }

    /// Returns the number if the type field is 0, and the text otherwise.
    fn int_or_text(self) -> Value {
        if self.first == 0 { json!(self.second) } else { json!(self.third_text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::kinds::NAMESPACES;
    use crate::apiserver::schema;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend(content);
        bytes
    }

    fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        Envelope { version: version.to_owned(), kind: kind.to_owned(), raw }.write()
    }

    #[test]
    fn namespace_from_kubectl_is_decoded() {
        let metadata = [field(1, b"team"), field(2, b""), field(8, b"")].concat();
        let raw = [field(1, &metadata), field(2, b""), field(3, &field(1, b""))].concat();
        let expected =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}, "spec": {}, "status": {}});
        let mut value = decode(&body("v1", "Namespace", &raw)).unwrap();
        // Go writes every number and text that is not a pointer, whether or not it was set.
        schema::read(Object::of(&NAMESPACES), &mut value, false).unwrap();
        assert_eq!(value, expected);
    }

    #[test]
    fn inlined_messages_are_flattened() {
        let source = field(2, &field(2, &field(1, b"Memory")));
        let volume = [field(1, b"v"), source].concat();
        let pod = decode(&body("v1", "Pod", &field(2, &field(1, &volume)))).unwrap();
        assert_eq!(pod["spec"]["volumes"], json!([{"name": "v", "emptyDir": {"medium": "Memory"}}]));
    }

    #[test]
    fn times_and_quantities_become_strings() {
        let time = [&[0x08, 0xa5, 0xbb, 0xb5, 0xf0, 0x05, 0x10][..], &[0xf0, 0x2e]].concat();
        let lease = decode(&body("coordination.k8s.io/v1", "Lease", &field(2, &field(3, &time)))).unwrap();
        assert_eq!(lease["spec"]["acquireTime"], "2020-01-02T03:04:05.000006Z");
        let entry = [field(1, b"cpu"), field(2, &field(1, b"250m"))].concat();
        let node = decode(&body("v1", "Node", &field(3, &field(1, &entry)))).unwrap();
        assert_eq!(node["status"]["capacity"], json!({"cpu": "250m"}));
    }

    #[test]
    fn truncated_or_unknown_messages_are_errors() {
        assert!(decode(b"{}").is_err());
        assert!(decode(&body("v1", "Widget", b"")).unwrap_err().contains("no kind"));
        let whole = body("v1", "Namespace", &field(1, &field(1, b"x")));
        for end in 4..whole.len() {
            // The result does not matter, as long as decoding ends without a panic.
            let _ = decode(&whole[..end]);
        }
    }
}
