//! Objects in protobuf, as Go's typed clients send them unless they are told to speak JSON.
//!
//! Only bodies are read: every such client also takes a reply in JSON. Follows
//! `apimachinery/pkg/runtime/serializer/protobuf/doc.go @v1.36.3`.

use serde_json::{Map, Value, json};

use super::{Field, Holds, Repeats, Type};

/// The content type.
pub(in crate::apiserver) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Structures may stand in each other this deep; the API's own are far from it.
const DEPTH: usize = 64;

/// A value of the wire format.
enum Token<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads a body. The error says what is wrong with it.
pub(in crate::apiserver) fn decode(body: &[u8]) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or("the body has no protobuf prefix")?;
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for_each(envelope, |number, token| {
        match (number, token) {
            (1, Token::Bytes(types)) => for_each(types, |number, token| {
                match (number, token) {
                    (1, Token::Bytes(bytes)) => version = text(bytes)?,
                    (2, Token::Bytes(bytes)) => kind = text(bytes)?,
                    _ => {}
                }
                Ok(())
            })?,
            (2, Token::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let group = version.rsplit_once('/').map_or("core", |(group, _)| group.split('.').next().unwrap_or_default());
    let name = match &*kind {
        // Each group has its own name for the same thing.
        "DeleteOptions" => "meta.DeleteOptions".to_owned(),
        kind => format!("{group}.{kind}"),
    };
    let shape = Type::named(&name).ok_or_else(|| format!("no kind {kind:?} is registered for version {version:?}"))?;
    let mut value = shape.read(raw, DEPTH)?;
    // Go writes every number and text that is no pointer, whether or not it was set.
    super::without_empty(&name, &mut value);
    value["apiVersion"] = json!(version);
    value["kind"] = json!(kind);
    Ok(value)
}

/// Calls `visit` with each field of a message.
fn for_each<'a>(
    mut bytes: &'a [u8],
    mut visit: impl FnMut(u64, Token<'a>) -> Result<(), String>,
) -> Result<(), String> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let token = match key & 7 {
            0 => Token::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|error| error.to_string())?;
                let (found, rest) = bytes.split_at_checked(length).ok_or("the body ends inside a field")?;
                bytes = rest;
                Token::Bytes(found)
            }
            other => return Err(format!("wire type {other} is not one of the API's")),
        };
        visit(key >> 3, token)?;
    }
    Ok(())
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("the body ends inside a number")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number has too many bytes".to_owned())
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

/// A number as Go's signed integers have it.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

impl Type {
    fn read(&self, bytes: &[u8], depth: usize) -> Result<Value, String> {
        if depth == 0 {
            return Err("the body is nested too deeply".to_owned());
        }
        let mut map = Map::new();
        for_each(bytes, |number, token| {
            let Some(field) = self.fields.iter().find(|field| field.number == number) else { return Ok(()) };
            field.read(&mut map, token, depth - 1)
        })?;
        Ok(Value::Object(map))
    }
}

impl Field {
    fn read(&self, map: &mut Map<String, Value>, token: Token<'_>, depth: usize) -> Result<(), String> {
        if self.inline {
            let Value::Object(members) = self.holds.read(token, depth)? else { return Ok(()) };
            map.extend(members);
            return Ok(());
        }
        match (self.repeats, token) {
            (Repeats::Once, token) => drop(map.insert(self.name.to_owned(), self.holds.read(token, depth)?)),
            (Repeats::List, Token::Bytes(mut packed)) if matches!(self.holds, Holds::Integer | Holds::Flag) => {
                while !packed.is_empty() {
                    let number = Token::Number(varint(&mut packed)?);
                    push(map, self.name, self.holds.read(number, depth)?);
                }
            }
            (Repeats::List, token) => push(map, self.name, self.holds.read(token, depth)?),
            (Repeats::Map, Token::Bytes(entry)) => {
                let (mut key, mut value) = (String::new(), Value::Null);
                for_each(entry, |number, token| {
                    match (number, token) {
                        (1, Token::Bytes(bytes)) => key = text(bytes)?,
                        (2, token) => value = self.holds.read(token, depth)?,
                        _ => {}
                    }
                    Ok(())
                })?;
                let entries = map.entry(self.name).or_insert_with(|| json!({}));
                if let Some(entries) = entries.as_object_mut() {
                    // An empty text is not written.
                    let value = if value.is_null() && self.holds == Holds::Text { json!("") } else { value };
                    entries.insert(key, value);
                }
            }
            (Repeats::Map, Token::Number(_)) => return Err(format!("{} is no map", self.name)),
        }
        Ok(())
    }
}

fn push(map: &mut Map<String, Value>, name: &str, value: Value) {
    if let Some(items) = map.entry(name).or_insert_with(|| json!([])).as_array_mut() {
        items.push(value);
    }
}

impl Holds {
    fn read(self, token: Token<'_>, depth: usize) -> Result<Value, String> {
        match (self, token) {
            (Self::Integer, Token::Number(number)) => Ok(json!(signed(number))),
            (Self::Flag, Token::Number(number)) => Ok(json!(number != 0)),
            (Self::Text, Token::Bytes(bytes)) => Ok(json!(text(bytes)?)),
            (Self::Bytes, Token::Bytes(bytes)) => {
                serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).map_err(|error| error.to_string())
            }
            (Self::Quantity, Token::Bytes(bytes)) => Ok(json!(Parts::of(bytes)?.first_text)),
            (Self::Time, Token::Bytes(bytes)) => Parts::of(bytes)?.time(0),
            (Self::MicroTime, Token::Bytes(bytes)) => Parts::of(bytes)?.time(6),
            (Self::IntOrString, Token::Bytes(bytes)) => Ok(Parts::of(bytes)?.int_or_string()),
            (Self::Raw, Token::Bytes(bytes)) => {
                let raw = Parts::of(bytes)?.first_text;
                if raw.is_empty() {
                    Ok(Value::Null)
                } else {
                    serde_json::from_str(&raw).map_err(|error| error.to_string())
                }
            }
            (Self::Structure(name), Token::Bytes(bytes)) => {
                Type::named(name).ok_or_else(|| format!("no type {name}"))?.read(bytes, depth)
            }
            _ => Err("a field is of another type than the API's".to_owned()),
        }
    }
}

/// The fields of the small messages that the API writes as one value.
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
        for_each(bytes, |number, token| {
            match (number, token) {
                (1, Token::Number(number)) => parts.first = signed(number),
                (2, Token::Number(number)) => parts.second = signed(number),
                (1, Token::Bytes(bytes)) => parts.first_text = text(bytes)?,
                (3, Token::Bytes(bytes)) => parts.third_text = text(bytes)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(parts)
    }

    /// Seconds and nanoseconds with `digits` of a fraction; none are none at all.
    fn time(&self, digits: usize) -> Result<Value, String> {
        if (self.first, self.second) == (0, 0) {
            return Ok(Value::Null);
        }
        let nanoseconds =
            if digits == 0 { 0 } else { i32::try_from(self.second).map_err(|error| error.to_string())? };
        let time = jiff::Timestamp::new(self.first, nanoseconds).map_err(|error| error.to_string())?;
        Ok(json!(format!("{time:.digits$}")))
    }

    /// A number where the first part says so, else a text.
    fn int_or_string(self) -> Value {
        if self.first == 0 { json!(self.second) } else { json!(self.third_text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        bytes.extend(content);
        bytes
    }

    fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &types), field(2, raw)].concat()
    }

    #[test]
    fn a_namespace_is_read_as_kubectl_sends_it() {
        let metadata = [field(1, b"team"), field(2, b""), field(8, b"")].concat();
        let raw = [field(1, &metadata), field(2, b""), field(3, &field(1, b""))].concat();
        let expected =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}, "spec": {}, "status": {}});
        assert_eq!(decode(&body("v1", "Namespace", &raw)), Ok(expected));
    }

    #[test]
    fn times_and_amounts_are_texts() {
        let time = [&[0x08, 0xa5, 0xbb, 0xb5, 0xf0, 0x05, 0x10][..], &[0xf0, 0x2e]].concat();
        let lease = decode(&body("coordination.k8s.io/v1", "Lease", &field(2, &field(3, &time)))).unwrap();
        assert_eq!(lease["spec"]["acquireTime"], "2020-01-02T03:04:05.000006Z");
        let entry = [field(1, b"cpu"), field(2, &field(1, b"250m"))].concat();
        let node = decode(&body("v1", "Node", &field(3, &field(1, &entry)))).unwrap();
        assert_eq!(node["status"]["capacity"], json!({"cpu": "250m"}));
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_refused() {
        assert!(decode(b"{}").is_err());
        assert!(decode(&body("v1", "Widget", b"")).unwrap_err().contains("no kind"));
        let whole = body("v1", "Namespace", &field(1, &field(1, b"x")));
        for end in 4..whole.len() {
            // Whatever it comes to, it ends.
            let _ = decode(&whole[..end]);
        }
    }
}
