//! Estimates the number of values in a document without parsing it.
//!
//! libyaml keeps all events until a document ends, at more than a hundred bytes each, so a file of `a: b` lines takes thirty
//! times its size in memory. The estimate may be too high, because a comma in a text counts like one in a list.

/// Maximum number of separators in one document, which take a gigabyte of memory. `simulate` parses larger cluster dumps in
/// parts.
const MOST: usize = 5_000_000;

/// Whether a document of `text` may have more than [`MOST`] separators.
pub(super) fn is_too_large(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Each separator has at least one byte.
    if bytes.len() <= MOST {
        return false;
    }
    let mut separators = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b',' | b'[' | b'{' => separators += 1,
            b':' | b'-' | b'?' if bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace) => {
                let begins_document = bytes[..at].ends_with(b"\n--");
                separators = if begins_document { 0 } else { separators + 1 };
            }
            _ => continue,
        }
        if separators > MOST {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: &str, expected: bool) {
        assert_eq!(is_too_large(&unit.repeat(MOST + 1)), expected, "{unit:?}");
    }

    #[test]
    fn only_separators_before_values_count() {
        check("a: b\n", true);
        check("- ", true);
        check("0,", true);
        check("[", true);
        check("a:b-c", false);
        check("\n---\na: b\n", false);
    }
}
