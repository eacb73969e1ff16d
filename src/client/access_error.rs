//! The error of settings from which no access to an API server can be derived.

/// Why no access to an API server can be derived: a kubeconfig is unusable, or settings contradict each other. The text is
/// upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

impl AccessError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
