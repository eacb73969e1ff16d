//! PEM, parsed as leniently as Go does, so that files accepted by other programs are accepted here.

use rustls::pki_types::CertificateDer;

use crate::go::base64;

/// A block of a PEM text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Label in the block's BEGIN line, such as `CERTIFICATE`.
    pub(crate) kind: String,
    /// Whether the block has headers before its content.
    pub(crate) has_headers: bool,
    /// The block's decoded content.
    pub(crate) content: Vec<u8>,
}

/// Returns the blocks of a text, and ignores everything else. Follows Go's `encoding/pem.Decode`.
pub(crate) fn blocks(text: &[u8]) -> Vec<Block> {
    const BEGIN: &[u8] = b"-----BEGIN ";

    let mut found = Vec::new();
    // `rest` always begins at the start of a line.
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix(BEGIN) {
            let (kind, after) = line(after);
            match kind.strip_suffix(b"-----").and_then(|kind| block(kind, after)) {
                Some((one, after)) => {
                    found.push(one);
                    rest = after;
                }
                None => rest = after,
            }
            continue;
        }
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return found };
        rest = &rest[end + 1..];
    }
}

/// Returns the certificates in a bundle of authorities. Blocks with headers are ignored.
/// Follows `client-go/util/cert/pem.go#ParseCertsPEM @v1.36.3` and Go's `crypto/x509.CertPool.AppendCertsFromPEM`.
pub(crate) fn certificates(text: &[u8]) -> impl Iterator<Item = CertificateDer<'static>> {
    let is_one = |block: &Block| block.kind == "CERTIFICATE" && !block.has_headers;
    blocks(text).into_iter().filter(is_one).map(|block| block.content.into())
}

/// Parses a block after its BEGIN line. Returns the block and the text after it.
fn block<'a>(kind: &[u8], text: &'a [u8]) -> Option<(Block, &'a [u8])> {
    const END: &[u8] = b"-----END ";

    let (mut content, mut has_headers) = (text, false);
    loop {
        let (header, after) = line(content);
        if !header.contains(&b':') {
            break;
        }
        (content, has_headers) = (after, true);
    }
    let end = if !has_headers && content.starts_with(END) {
        0
    } else {
        let at = content.windows(END.len() + 1).position(|part| part[0] == b'\n' && part[1..] == *END)?;
        at + 1
    };
    let (last, after) = line(content[end..].strip_prefix(END)?.strip_prefix(kind)?.strip_prefix(b"-----")?);
    if !last.is_empty() {
        return None;
    }
    let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
    let letters: Vec<u8> = content[..end].iter().copied().filter(|byte| !is_blank(byte)).collect();
    let content = base64::decode(letters).ok()?;
    Some((Block { kind: String::from_utf8_lossy(kind).into_owned(), has_headers, content }, after))
}

/// Splits off the first line, without trailing blanks. Returns the line and the text after it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &text[text.len()..]),
    };
    let mut line = line.strip_suffix(b"\r").unwrap_or(line);
    while let [shorter @ .., b' ' | b'\t'] = line {
        line = shorter;
    }
    (line, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &[u8])]) {
        let found = blocks(text.as_bytes());
        let found: Vec<(&str, &[u8])> = found.iter().map(|block| (&*block.kind, &*block.content)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn blocks_are_found_between_text() {
        check(
            "words\n-----BEGIN A-----\nAAEC\n-----END A-----\nwords\n-----BEGIN B C-----\nAw==\n-----END B C-----",
            &[("A", &[0, 1, 2]), ("B C", &[3])],
        );
        check("words -----BEGIN A-----\nAAEC\n-----END A-----\n", &[]);
        check("-----BEGIN A-----\n-----END A-----\n", &[("A", &[])]);
    }

    #[test]
    fn blanks_and_headers_in_blocks_are_skipped() {
        check("-----BEGIN A----- \t\r\nAA \r\n\tEC \r\n-----END A----- \r\n", &[("A", &[0, 1, 2])]);
        check("-----BEGIN A-----\nFoo: bar\n\nAAEC\n-----END A-----\n", &[("A", &[0, 1, 2])]);
        assert!(blocks(b"-----BEGIN A-----\nFoo: bar\n\nAAEC\n-----END A-----\n")[0].has_headers);
    }

    #[test]
    fn malformed_blocks_are_skipped() {
        let good = "-----BEGIN A-----\nAAEC\n-----END A-----\n";
        for bad in [
            "-----BEGIN B-----\nAAEC\n-----END C-----\n",
            "-----BEGIN B-----\n????\n-----END B-----\n",
            "-----BEGIN B-----\nAAE\n-----END B-----\n",
            "-----BEGIN B\nAAEC\n-----END B-----\n",
            "-----BEGIN B-----\nAAEC\n-----END B----- x\n",
        ] {
            check(bad, &[]);
            check(&format!("{bad}{good}"), &[("A", &[0, 1, 2])]);
        }
    }
}
