//! Tracks the kinds whose initial objects have not all been handled.

use std::sync::Arc;

use tokio::sync::watch;

/// Kinds whose initial objects have not all been handled. Clones share the list.
#[derive(Clone, Debug)]
pub(super) struct Pending(Arc<watch::Sender<Vec<String>>>);

impl Pending {
    pub(super) fn new(kinds: impl IntoIterator<Item = String>) -> Self {
        let mut kinds: Vec<String> = kinds.into_iter().collect();
        kinds.sort();
        Self(Arc::new(watch::Sender::new(kinds)))
    }

    /// Marks the initial objects of this kind as handled.
    pub(super) fn done(&self, kind: &str) {
        self.0.send_modify(|kinds| {
            // If a kind is watched twice with different Rust types, only one of its two entries is removed.
            if let Some(at) = kinds.iter().position(|pending| pending == kind) {
                kinds.remove(at);
            }
        });
    }

    /// Returns the kinds that are not finished, sorted.
    pub(super) fn kinds(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Waits until all kinds are finished.
    pub(super) async fn none(&self) {
        let mut receiver = self.0.subscribe();
        // `self` owns the sender, so this cannot fail before the condition is met.
        let _ = receiver.wait_for(Vec::is_empty).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn synced_once_every_kind_is_synced() {
        let pending = Pending::new(["b".to_owned(), "a".to_owned()]);
        let mut waiting = Box::pin(pending.none());
        assert!(waiting.as_mut().now_or_never().is_none());
        pending.done("b");
        pending.done("b");
        assert_eq!(pending.kinds(), ["a"]);
        assert!(waiting.as_mut().now_or_never().is_none());
        pending.done("a");
        assert!(waiting.now_or_never().is_some() && pending.none().now_or_never().is_some());
    }
}
