//! Decoding of YAML and JSON into structs, with upstream's strictness and error texts.
//!
//! A text that begins with `{` is parsed as JSON, any other text as YAML. Both result in [`Value`]s, which a [`Reader`] decodes
//! into types that implement [`Wire`].

mod error;
mod k8s;
mod meta;
mod nesting;
mod nodes;
mod reader;
mod scalar;
mod size;
mod syntax;
mod tag;
mod yaml;

pub(crate) use error::DecodeError;
pub(crate) use meta::check_meta;
pub(super) use meta::{GROUP, GROUP_VERSION, Meta};
pub(crate) use reader::{Bytes, Raw, Reader, Wire, wire_args, wire_struct};

use crate::go::json::{self, Value};

/// Decodes `data` as UTF-16 if it begins with a byte order mark of UTF-16, otherwise as UTF-8.
pub(crate) fn to_text(data: &[u8]) -> Result<String, DecodeError> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        if bytes.len() % 2 == 1 {
            return Err(DecodeError::from("yaml: incomplete UTF-16 character"));
        }
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.map_err(|_| DecodeError::from("yaml: unexpected low surrogate area"))
    };
    match data {
        [0xff, 0xfe, rest @ ..] => return wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return wide(rest, u16::from_be_bytes),
        _ => {}
    }
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    match std::str::from_utf8(data) {
        Ok(text) => Ok(text.to_owned()),
        // Go replaces invalid UTF-8 in JSON, and rejects it in YAML.
        Err(_) if is_json(&String::from_utf8_lossy(data)) => Ok(String::from_utf8_lossy(data).into_owned()),
        Err(error) => {
            let valid = String::from_utf8_lossy(&data[..error.valid_up_to()]);
            // Binary data usually fails at an earlier control character.
            let control = valid.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'));
            Err(match (control, error.error_len()) {
                (true, _) => "yaml: control characters are not allowed".into(),
                (false, None) => "yaml: incomplete UTF-8 octet sequence".into(),
                (false, Some(1)) if !matches!(data[error.valid_up_to()], 0xc2..=0xf4) => {
                    "yaml: invalid leading UTF-8 octet".into()
                }
                (false, Some(_)) => "yaml: invalid trailing UTF-8 octet".into(),
            })
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Parses the YAML documents of a text in order, each with the error of strict parsing, if any.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Result<(Value, Option<DecodeError>), DecodeError>> {
    yaml::parse_all(text).map(|document| document.map(|document| (document.value, document.repeated)))
}

/// Parses a text as YAML even if it looks like JSON. Repeated keys are ignored.
pub(crate) fn parse_yaml(text: &str) -> Result<Value, DecodeError> {
    yaml::parse(text).map(|document| document.value)
}

/// Parses a text as JSON or YAML. Returns the value, and the error about repeated keys in YAML, if any.
pub(super) fn parse(text: &str) -> Result<(Value, Option<DecodeError>), DecodeError> {
    if is_json(text) {
        let value = json::parse(text.as_bytes())
            .map_err(|error| DecodeError(format!("couldn't get version/kind; json parse error: {error}")))?;
        return Ok((value, None));
    }
    yaml::parse(text).map(|document| (document.value, document.repeated))
}
