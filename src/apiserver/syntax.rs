//! What Go's scanner says of a text that is no JSON. Follows Go's `encoding/json/scanner.go`.

/// Where in the text the scanner is, for its messages.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

const END: &str = "unexpected end of JSON input";

/// What is wrong with a text; `None` if it is JSON.
pub(super) fn error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.spaces();
    scanner
        .value()
        .and_then(|()| {
            scanner.spaces();
            scanner.peek().map_or(Ok(()), |byte| Err(invalid(byte, "after top-level value")))
        })
        .err()
}

fn invalid(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => r#"'"'"#.to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x20..=0x7e => format!("'{}'", char::from(byte)),
        0xa1..=0xff if byte != 0xad => format!("'{}'", char::from(byte)),
        control => format!(r"'\x{control:02x}'"),
    };
    format!("invalid character {shown} {context}")
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The next byte, or the complaint that there is none.
    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or(END)?;
        self.at += 1;
        Ok(byte)
    }

    fn spaces(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<(), String> {
        match self.next()? {
            b'{' => self.object(),
            b'[' => self.list(),
            b'"' => self.text(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            byte @ (b'-' | b'0'..=b'9') => self.number(byte),
            byte => Err(invalid(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self) -> Result<(), String> {
        self.spaces();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.spaces();
            match self.next()? {
                b'"' => self.text()?,
                byte => return Err(invalid(byte, "looking for beginning of object key string")),
            }
            self.spaces();
            match self.next()? {
                b':' => {}
                byte => return Err(invalid(byte, "after object key")),
            }
            self.spaces();
            self.value()?;
            self.spaces();
            match self.next()? {
                b'}' => return Ok(()),
                b',' => {}
                byte => return Err(invalid(byte, "after object key:value pair")),
            }
        }
    }

    fn list(&mut self) -> Result<(), String> {
        self.spaces();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.spaces();
            self.value()?;
            self.spaces();
            match self.next()? {
                b']' => return Ok(()),
                b',' => {}
                byte => return Err(invalid(byte, "after array element")),
            }
        }
    }

    fn text(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(invalid(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(invalid(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    /// The rest of a word whose first letter has been read.
    fn word(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != expected {
                return Err(invalid(byte, &format!("in literal {word} (expecting '{}')", char::from(expected))));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: u8) -> Result<(), String> {
        let mut digit = first;
        if first == b'-' {
            digit = self.next()?;
            if !digit.is_ascii_digit() {
                return Err(invalid(digit, "in numeric literal"));
            }
        }
        if digit != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
        }
        if self.peek().is_some_and(|byte| matches!(byte, b'e' | b'E')) {
            self.at += 1;
            if self.peek().is_some_and(|byte| matches!(byte, b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
        }
        Ok(())
    }

    /// At least one digit.
    fn digit(&mut self, context: &str) -> Result<(), String> {
        let byte = self.next()?;
        if !byte.is_ascii_digit() {
            return Err(invalid(byte, context));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_byte_that_cannot_be_is_named() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            (r#"{"a" 1}"#, "invalid character '1' after object key"),
            (r#"{"a": 1 2}"#, "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("nul!", "invalid character '!' in literal null (expecting 'l')"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("{} {}", "invalid character '{' after top-level value"),
        ] {
            assert_eq!(super::error(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(super::error(br#" {"a": [1, -2.5e3, "\u00e9", true, null]} "#), None);
    }
}
