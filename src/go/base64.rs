//! Base64 with padding, as Go's `encoding/base64.StdEncoding` reads and writes it.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Standard base64, except that the unused bits at the end may have any value.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Error for a text that is not base64, with the offset of the first wrong byte. The text is that of Go's
/// `base64.CorruptInputError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {0}")]
pub struct CorruptInput(usize);

/// Decodes a text in base64. Line breaks are skipped everywhere.
pub fn decode(text: impl AsRef<[u8]>) -> Result<Vec<u8>, CorruptInput> {
    let text = text.as_ref();
    let symbols: Vec<u8> = text.iter().copied().filter(|byte| !is_line_break(*byte)).collect();
    LENIENT.decode(symbols).map_err(|_| CorruptInput(corrupt_at(text)))
}

/// Encodes `bytes` in base64.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Returns the offset that Go reports for a malformed text. The crate counts differently.
/// Follows `encoding/base64/base64.go#Encoding.decodeQuantum @go1.26`.
fn corrupt_at(text: &[u8]) -> usize {
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut bytes = text.iter().copied().enumerate().filter(|(_, byte)| !is_line_break(*byte));
    // Number of symbols read in the current group of four.
    let mut read = 0;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            byte if is_symbol(byte) => read = (read + 1) % 4,
            b'=' if read >= 2 => {
                if read == 2 {
                    match bytes.next() {
                        None => return text.len(),
                        Some((_, b'=')) => {}
                        // Go reports the byte before this one.
                        Some((next, _)) => return next - 1,
                    }
                }
                // Padding ends the text, so the next byte is wrong.
                return bytes.next().map_or(text.len(), |(next, _)| next);
            }
            _ => return at,
        }
    }
    text.len() - read
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    fn check(text: &str, expected: Result<&str, &str>) {
        let got = decode(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if let Ok(text) = &got {
            assert_eq!(decode(encode(text)).as_deref(), Ok(text.as_bytes()));
        }
        assert_eq!(got.map_err(|e| e.to_string()), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn base64_is_decoded_as_leniently_as_in_go() {
        check("", Ok(""));
        check("aGVsbG8=", Ok("hello"));
        check("aGVs\nbG8h\r\n", Ok("hello!"));
        check("aA==", Ok("h"));
        check("a\nA=\n=\n", Ok("h"));
        check("aB==", Ok("h"));
    }

    #[test]
    fn errors_have_gos_byte_offset() {
        check("a!==", Err("illegal base64 data at input byte 1"));
        check("aGVsbG8", Err("illegal base64 data at input byte 4"));
        check("aGVs\nb", Err("illegal base64 data at input byte 5"));
        check("aA=x", Err("illegal base64 data at input byte 2"));
        check("aA=\nx", Err("illegal base64 data at input byte 3"));
        check("aA=", Err("illegal base64 data at input byte 3"));
        check("aA==aGVs", Err("illegal base64 data at input byte 4"));
        check("aGVsbG8==", Err("illegal base64 data at input byte 8"));
        check("a===", Err("illegal base64 data at input byte 1"));
        check("!!", Err("illegal base64 data at input byte 0"));
    }
}
