//! Where the authorities of client certificates come from: a file, or the cluster.

use std::sync::{Arc, Mutex, PoisonError};

use super::reload::ReloadedFiles;
use super::x509::Bundle;

/// Authorities, as they are at the time.
pub(super) enum Trust {
    /// A file names them.
    File(Arc<ReloadedFiles<Bundle>>),
    /// The cluster names them, once it has been heard.
    Cluster(LatestValue<Bundle>),
}

impl Trust {
    /// The authorities; none while nobody has named them, and then nobody's certificate counts.
    pub(super) fn bundle(&self) -> Option<Arc<Bundle>> {
        match self {
            Self::File(file) => Some(file.current()),
            Self::Cluster(slot) => slot.get(),
        }
    }
}

/// Latest version of a value that is loaded later and changes. The lock guards the pointer alone.
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
