//! Errors of what says how an API server is accessed.

/// Why nothing says how an API server can be accessed: a kubeconfig that cannot be used, or settings that contradict each
/// other. The text is upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

impl AccessError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
