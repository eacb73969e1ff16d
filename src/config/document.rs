//! YAML documents of API objects as JSON values, parsed like upstream's tools, including YAML 1.1 scalars.

use super::decode;

/// The error of a text that is not a valid document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(String);

/// Parses the YAML documents of a text in order. An empty document is null. The iterator ends after an error. A repeated key
/// is an error, because one of the two values would be lost.
pub fn parse_documents(text: &str) -> impl Iterator<Item = Result<serde_json::Value, DocumentError>> {
    decode::documents(text).map(|document| match document {
        Ok((value, None)) => Ok(value.to_json()),
        Ok((_, Some(error))) | Err(error) => Err(DocumentError(error.0)),
    })
}

/// Decodes the content of a file as UTF-16 if it begins with a byte order mark of UTF-16, otherwise as UTF-8.
pub fn document_text(data: &[u8]) -> Result<String, DocumentError> {
    decode::to_text(data).map_err(|error| DocumentError(error.0))
}
