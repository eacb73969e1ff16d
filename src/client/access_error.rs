//! The error of invalid settings for the access to an API server.

/// Error of invalid settings for the access to an API server: a kubeconfig is unusable, or settings contradict each other. The
/// text is upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

impl AccessError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
