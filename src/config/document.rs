//! YAML documents of API objects as JSON values: read as upstream's tools read them, YAML 1.1 scalars included.

use super::decode;

/// Why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(String);

/// Reads one YAML document; an empty one is null. A repeated key is an error, since one of the two is not meant.
pub fn parse_document(text: &str) -> Result<serde_json::Value, DocumentError> {
    let (value, repeated) = decode::document(text).map_err(|error| DocumentError(error.0))?;
    match repeated {
        Some(error) => Err(DocumentError(error.0)),
        None => Ok(value.to_json()),
    }
}

/// The text of a file, which may be UTF-8 or, with a byte order mark, UTF-16.
pub fn document_text(data: &[u8]) -> Result<String, DocumentError> {
    decode::to_text(data).map_err(|error| DocumentError(error.0))
}
