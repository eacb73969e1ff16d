//! Errors in the endpoints' settings.

use std::path::Path;

use crate::go::errno;

/// An error that keeps the endpoints from being served. The text is upstream's if upstream has this error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(pub(super) String);

impl ServeError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Reads a whole file. The error has Go's text.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| errno::file_error(path, &error))
}
