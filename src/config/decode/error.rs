//! The error of a document that cannot be read.

use std::fmt;

use crate::go::json::SyntaxError;

/// The error of a document that cannot be read, with upstream's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodeError(pub(crate) String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for DecodeError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for DecodeError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<SyntaxError> for DecodeError {
    fn from(error: SyntaxError) -> Self {
        Self(error.0)
    }
}
