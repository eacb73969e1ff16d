//! Sources of the authorities of client certificates: a file or the cluster's `ConfigMap`.

use std::sync::{Arc, Mutex, PoisonError};

use super::reload::ReloadedFiles;
use super::x509::Bundle;

/// Source of a bundle of authorities, which may change.
pub(super) enum Trust {
    /// Read from a file.
    File(Arc<ReloadedFiles<Bundle>>),
    /// Read from the cluster's `ConfigMap`, and empty until it was read.
    Cluster(LatestValue<Bundle>),
}

impl Trust {
    /// Returns the current authorities. With `None`, client certificates are ignored.
    pub(super) fn bundle(&self) -> Option<Arc<Bundle>> {
        match self {
            Self::File(file) => Some(file.current()),
            Self::Cluster(slot) => slot.get(),
        }
    }
}

/// Latest version of a value that is absent until it is loaded, and may then change. The lock guards only the pointer.
pub(super) struct LatestValue<T>(Mutex<Option<Arc<T>>>);

impl<T> LatestValue<T> {
    pub(super) fn empty() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn get(&self) -> Option<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(value));
    }
}
