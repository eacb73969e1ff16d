//! Estimates the nesting depth of `[]` and `{}` in a text without parsing it.
//!
//! libyaml's scanner visits every open bracket for each token, so a hundred thousand nested brackets take it minutes. Such
//! depths are not allowed in a document (see [`super::nodes`]), but the parser detects them only after scanning. The estimate
//! may be too high, because brackets in the text of a block scalar are counted, too. So the caller must parse the text that
//! [`up_to_deep`] returns, to see whether it is really nested too deep.

/// Depth of brackets that the scanner handles fast enough. Documents are rejected at a much smaller depth.
const DEEP: usize = 1000;

/// The text up to the bracket that exceeds [`DEEP`]; `None` if there is no such bracket.
pub(super) fn up_to_deep(text: &str) -> Option<&str> {
    let mut scanner = Scanner { depth: 0, is_start: true };
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at = scanner.step(bytes, at);
        if scanner.depth > DEEP {
            // The last byte read is a bracket, so `at` is a character boundary.
            return text.get(..at);
        }
    }
    None
}

struct Scanner {
    depth: usize,
    /// Whether a token may begin here. If not, a quote is part of a word.
    is_start: bool,
}

impl Scanner {
    /// Scans the token at `at` and returns the position after it.
    fn step(&mut self, bytes: &[u8], at: usize) -> usize {
        let byte = bytes[at];
        match byte {
            b'[' | b'{' => {
                self.depth += 1;
                self.is_start = true;
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_start = false;
            }
            // Outside brackets, all other bytes are skipped.
            _ if self.depth == 0 => {}
            b',' => self.is_start = true,
            b':' | b'?'
                if bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace() || b"[]{},'\"".contains(next)) =>
            {
                self.is_start = true;
            }
            b'"' | b'\'' if self.is_start => {
                self.is_start = false;
                return quoted(bytes, at);
            }
            // Skips a tag or an anchor; the node itself follows.
            b'!' | b'&' if self.is_start => {
                let end = |byte: &u8| byte.is_ascii_whitespace() || b"[]{},".contains(byte);
                return bytes[at..].iter().position(end).map_or(bytes.len(), |length| at + length);
            }
            b'#' if bytes[at - 1].is_ascii_whitespace() => {
                return bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length);
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.is_start = false,
        }
        at + 1
    }
}

/// The position after the quoted text that begins at `at`.
fn quoted(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' if bytes[at] == b'"' => end += 1,
            b'\'' if bytes[at] == b'\'' && bytes.get(end + 1) == Some(&b'\'') => end += 1,
            byte if byte == bytes[at] => return end + 1,
            _ => {}
        }
        end += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: &str, expected: bool) {
        let text = format!("a: {}", unit.repeat(DEEP + 1));
        assert_eq!(up_to_deep(&text).is_some(), expected, "{unit}");
    }

    #[test]
    fn only_opening_brackets_of_collections_count() {
        check("[", true);
        check("{a: ", true);
        check("{\"]\": ", true);
        check("['}', ", true);
        check("[!!str \"]\", ", true);
        check("[it's, ", true);
        check("[ # ]\n", true);
        check("[]", false);
        check("[\"[\"]\n", false);
        check("['[', a]\n", false);
        check("[a, {b: [c]}]\n", false);
        check("['it''s [']\n", false);
        check("[\"\\\"[\"]\n", false);
    }

    #[test]
    fn text_is_cut_after_the_bracket_beyond_the_limit() {
        let text = "[".repeat(DEEP + 5);
        assert_eq!(up_to_deep(&text).map(str::len), Some(DEEP + 1));
    }
}
