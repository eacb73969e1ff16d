//! Messages in protobuf's wire format, for the few that are answered with: a Status, metrics, profiles.

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// How a field's value is laid out.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

impl Message {
    /// A text, or what it holds.
    pub(super) fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.key(field, DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A message inside this one.
    pub(super) fn message(self, field: u32, value: Self) -> Self {
        self.bytes(field, value.0)
    }

    /// A number.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.key(field, VARINT);
        self.varint(value);
        self
    }

    /// A float.
    pub(super) fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// What was written.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    /// What was written, with its length before it.
    pub(super) fn delimited(self, out: &mut Vec<u8>) {
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
}
