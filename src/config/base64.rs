//! Base64 with padding, as Go's `encoding/base64.StdEncoding` reads it: line breaks are skipped.

/// Why a text is no base64; the text of Go's `base64.CorruptInputError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub(super) struct Base64Error(usize);

/// The bytes that `text` encodes.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, Base64Error> {
    let symbols: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::with_capacity(symbols.len() / 4 * 3);
    let mut quanta = symbols.chunks(4).peekable();
    while let Some(quantum) = quanta.next() {
        let last = quanta.peek().is_none();
        let mut bits: u32 = 0;
        let mut count = 0;
        for (at, byte) in quantum {
            match sextet(*byte) {
                Some(value) => bits |= value << (18 - 6 * count),
                None if *byte == b'=' && count >= 2 => break,
                None => return Err(Base64Error(*at)),
            }
            count += 1;
        }
        let end = text.len();
        if quantum.len() < 4 {
            let at = if count == quantum.len() { quantum[0].0 } else { end };
            return Err(Base64Error(at));
        }
        if let Some((at, _)) = quantum[count..].iter().find(|(_, byte)| *byte != b'=') {
            // Go reports the byte before, the padding that it belongs to.
            return Err(Base64Error(at - 1));
        }
        if count < 4 && !last {
            return Err(Base64Error(quantum[3].0 + 1));
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..count]);
    }
    Ok(out)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::decode;

    fn check(text: &str, expected: Result<&str, &str>) {
        let got = decode(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if let Ok(text) = &got {
            assert_eq!(decode(&STANDARD.encode(text)).as_deref(), Ok(text.as_bytes()));
        }
        assert_eq!(got.map_err(|e| e.to_string()), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn decodes() {
        check("", Ok(""));
        check("aGVsbG8=", Ok("hello"));
        check("aGVs\nbG8h\r\n", Ok("hello!"));
        check("aA==", Ok("h"));
    }

    #[test]
    fn refuses() {
        check("a!==", Err("illegal base64 data at input byte 1"));
        check("aGVsbG8", Err("illegal base64 data at input byte 4"));
        check("aA=x", Err("illegal base64 data at input byte 2"));
        check("aA==aGVs", Err("illegal base64 data at input byte 4"));
    }
}
