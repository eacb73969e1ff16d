//! Protobuf's wire format, and the envelope of API objects in this format.
//!
//! Follows `apimachinery/pkg/runtime/serializer/protobuf/protobuf.go @v1.36.3`.

/// Content type of API objects in protobuf.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The first bytes of every envelope.
const MAGIC: &[u8] = b"k8s\0";

/// An encoded API object with its type. Follows `apimachinery/pkg/runtime/types.go#Unknown @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The `apiVersion` of the object.
    pub version: String,
    /// The `kind` of the object.
    pub kind: String,
    /// The encoded object itself.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Parses an envelope from bytes. The error describes the malformed bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self, String> {
        let unknown = bytes.strip_prefix(MAGIC).ok_or("the body has no protobuf prefix")?;
        let mut envelope = Self::default();
        for_each_field(unknown, |number, field| {
            match (number, field) {
                (1, Field::Bytes(types)) => for_each_field(types, |number, field| {
                    match (number, field) {
                        (1, Field::Bytes(bytes)) => envelope.version = text(bytes)?,
                        (2, Field::Bytes(bytes)) => envelope.kind = text(bytes)?,
                        _ => {}
                    }
                    Ok(())
                })?,
                (2, Field::Bytes(bytes)) => envelope.raw = bytes,
                _ => {}
            }
            Ok(())
        })?;
        Ok(envelope)
    }

    /// Returns the encoded envelope. As in upstream, empty fields are encoded too.
    pub fn write(&self) -> Vec<u8> {
        let types = Message::default().bytes(1, &self.version).bytes(2, &self.kind);
        let unknown = Message::default().message(1, types).bytes(2, self.raw).bytes(3, "").bytes(4, "");
        [MAGIC, &unknown.finish()].concat()
    }
}

/// Value of a field in the wire format, for the types that the API uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// An integer, a boolean or an enum value.
    Number(u64),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// Calls `visit` with the number and the value of each field of a message.
pub fn for_each_field<'a>(
    mut bytes: &'a [u8],
    mut visit: impl FnMut(u64, Field<'a>) -> Result<(), String>,
) -> Result<(), String> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|error| error.to_string())?;
                let (found, rest) = bytes.split_at_checked(length).ok_or("the body ends inside a field")?;
                bytes = rest;
                Field::Bytes(found)
            }
            other => return Err(format!("unsupported wire type {other}")),
        };
        visit(key >> 3, field)?;
    }
    Ok(())
}

/// Reads a varint from the start of `bytes`, and advances `bytes`.
pub fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("the body ends inside a number")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("varint is too long".to_owned())
}

/// Decodes the string value of a field.
pub fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())
}

/// A message under construction, written field by field.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

/// Wire types, the encodings of a field's value.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

impl Message {
    /// Adds a string or bytes field.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.key(field, DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Adds a message as a field of this one.
    #[must_use]
    pub fn message(self, field: u32, value: Self) -> Self {
        self.bytes(field, value.0)
    }

    /// Adds an integer field.
    #[must_use]
    pub fn number(mut self, field: u32, value: u64) -> Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// Adds a 64-bit float field.
    #[must_use]
    pub fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Returns the encoded message.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Appends the message to `out`, preceded by its length.
    pub fn delimited(self, out: &mut Vec<u8>) {
        let mut length = Self::default();
        length.varint(self.0.len() as u64);
        out.extend(length.0);
        out.extend(self.0);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_laid_out_as_the_format_says() {
        let check = |message: Message, expected: &[u8]| assert_eq!(message.finish(), expected);
        check(Message::default().number(1, 150), &[0x08, 0x96, 0x01]);
        check(Message::default().bytes(2, "testing"), &[0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        check(Message::default().message(3, Message::default().number(1, 150)), &[0x1a, 3, 0x08, 0x96, 0x01]);
        check(Message::default().double(1, 1.0), &[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        let mut out = Vec::new();
        Message::default().number(1, 1).delimited(&mut out);
        assert_eq!(out, [2, 0x08, 1]);
    }

    #[test]
    fn envelopes_are_read_as_they_are_written() {
        let envelope = Envelope { version: "v1".to_owned(), kind: "Pod".to_owned(), raw: &[0x0a, 0] };
        let bytes = envelope.write();
        assert!(bytes.starts_with(b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x0a\x00"));
        assert_eq!(Envelope::read(&bytes), Ok(envelope));
        assert_eq!(Envelope::read(b"{}"), Err("the body has no protobuf prefix".to_owned()));
    }
}
