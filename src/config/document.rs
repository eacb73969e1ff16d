//! YAML documents of API objects as JSON values: read as upstream's tools read them, YAML 1.1 scalars included.

use super::decode;

/// Why a text is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(String);

/// Reads the YAML documents of a text, one after another; an empty one is null, and after an error there are no more. A
/// repeated key is an error, since one of the two is not meant.
pub fn parse_documents(text: &str) -> impl Iterator<Item = Result<serde_json::Value, DocumentError>> {
    decode::documents(text).map(|document| match document {
        Ok((value, None)) => Ok(value.to_json()),
        Ok((_, Some(error))) | Err(error) => Err(DocumentError(error.0)),
    })
}

/// The text of a file, which may be UTF-8 or, with a byte order mark, UTF-16.
pub fn document_text(data: &[u8]) -> Result<String, DocumentError> {
    decode::to_text(data).map_err(|error| DocumentError(error.0))
}
