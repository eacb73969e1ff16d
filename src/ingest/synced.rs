//! Whether everything that there was at first has been handled.

use std::sync::Arc;

use tokio::sync::watch;

/// Kinds whose first objects have not all been handled. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Pending(Arc<watch::Sender<Vec<String>>>);

impl Pending {
    pub(super) fn new(kinds: impl IntoIterator<Item = String>) -> Self {
        let mut kinds: Vec<String> = kinds.into_iter().collect();
        kinds.sort();
        Self(Arc::new(watch::Sender::new(kinds)))
    }

    /// All first objects of this kind have been handled.
    pub(super) fn done(&self, kind: &str) {
        self.0.send_modify(|kinds| {
            // Of two watches of one kind that are read as different types, one is done.
            if let Some(at) = kinds.iter().position(|pending| pending == kind) {
                kinds.remove(at);
            }
        });
    }

    /// What is not done yet, sorted.
    pub(super) fn kinds(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    /// Waits until everything is done.
    pub(super) async fn none(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail before it is over.
        let _ = receiver.wait_for(Vec::is_empty).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn synced_when_every_kind_is() {
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
