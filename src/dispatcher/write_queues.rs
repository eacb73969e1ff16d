//! Queues that run one write per object at a time, in the order of the calls.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::status::{Draft, StatusUpdate, Written};
use crate::client::ApiError;
use crate::k8s::Pod;

/// Queues of writes, one per object. One lock guards all queues. No code under the lock waits or calls out, and wakers are
/// called after it is released.
#[derive(Default)]
pub(super) struct WriteQueues(Mutex<State>);

#[derive(Default)]
struct State {
    closed: bool,
    tickets: u64,
    /// Number of entries in all queues.
    entries: usize,
    /// Queues by the object's UID. A queue is removed with its last entry.
    objects: BTreeMap<Arc<str>, ObjectQueue>,
}

#[derive(Default)]
struct ObjectQueue {
    /// Queued writes of the object. Only the first entry may be sent.
    entries: VecDeque<Entry>,
    /// Changes written since the queue was last empty.
    written: Written,
}

struct Entry {
    ticket: u64,
    waker: Option<Waker>,
    /// The patch of this entry, if no caller waits for it and it has not been sent.
    draft: Option<Draft>,
}

/// A write in its object's queue. Dropping it removes it from the queue.
pub(super) struct QueuedWrite {
    queues: Arc<WriteQueues>,
    uid: Arc<str>,
    ticket: u64,
}

impl WriteQueues {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is usable, because no step under the lock leaves the queues half-changed if it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of writes that are queued or in flight.
    pub(super) fn pending(&self) -> usize {
        self.lock().entries
    }

    /// Drops all writes that have not been started, and rejects later ones.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut wakers = Vec::new();
        for entry in state.objects.values_mut().flat_map(|object| &mut object.entries) {
            entry.draft = None;
            wakers.extend(entry.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether [`Self::close`] has been called.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Adds a write to the end of an object's queue.
    pub(super) fn join(self: &Arc<Self>, uid: &str) -> QueuedWrite {
        self.enter(&mut self.lock(), uid, None)
    }

    /// Adds a binding to the end of an object's queue. Drops the drafts of patches that have not been sent, because the binding
    /// makes them obsolete.
    pub(super) fn join_binding(self: &Arc<Self>, uid: &str) -> QueuedWrite {
        let mut state = self.lock();
        if let Some(object) = state.objects.get_mut(uid) {
            object.entries.iter_mut().for_each(|entry| entry.draft = None);
        }
        self.enter(&mut state, uid, None)
    }

    /// Adds a patch that no caller waits for. Returns `None` if the patch was merged into the last one in the queue, or dropped
    /// because the queues are closed.
    pub(super) fn join_draft(self: &Arc<Self>, pod: &Arc<Pod>, update: StatusUpdate) -> Option<QueuedWrite> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let last = state.objects.get_mut(pod.uid()).and_then(|object| object.entries.back_mut());
        if let Some(draft) = last.and_then(|entry| entry.draft.as_mut()) {
            draft.absorb(Arc::clone(pod), update);
            return None;
        }
        let draft = Draft::new(Arc::clone(pod), update);
        Some(self.enter(&mut state, pod.uid(), Some(draft)))
    }

    fn enter(self: &Arc<Self>, state: &mut State, uid: &str, draft: Option<Draft>) -> QueuedWrite {
        let ticket = state.tickets;
        state.tickets += 1;
        state.entries += 1;
        let uid = state.objects.get_key_value(uid).map_or_else(|| Arc::from(uid), |(uid, _)| Arc::clone(uid));
        let object = state.objects.entry(Arc::clone(&uid)).or_default();
        object.entries.push_back(Entry { ticket, waker: None, draft });
        QueuedWrite { queues: Arc::clone(self), uid, ticket }
    }
}

impl QueuedWrite {
    /// Waits until this write is the first in its queue. Fails once the queues are closed.
    pub(super) async fn ready(&self) -> Result<(), ApiError> {
        poll_fn(|context| {
            let mut state = self.queues.lock();
            if state.closed {
                return Poll::Ready(Err(ApiError::Closed));
            }
            let entries = state.objects.get_mut(&self.uid).map(|object| &mut object.entries);
            match entries
                .and_then(|entries| entries.iter_mut().enumerate().find(|(_, entry)| entry.ticket == self.ticket))
            {
                Some((1.., entry)) => {
                    entry.waker = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// Takes the merged patch of this entry; `None` if a binding or a close has dropped it. Later updates start a new patch.
    pub(super) fn take_draft(&self) -> Option<Draft> {
        let mut state = self.queues.lock();
        let entries = &mut state.objects.get_mut(&self.uid)?.entries;
        entries.iter_mut().find(|entry| entry.ticket == self.ticket)?.draft.take()
    }

    /// Returns the changes written since the queue was last empty.
    pub(super) fn written(&self) -> Written {
        self.queues.lock().objects.get(&self.uid).map(|object| object.written.clone()).unwrap_or_default()
    }

    /// Records the changes written, for later writes of the queue.
    pub(super) fn set_written(&self, written: Written) {
        if let Some(object) = self.queues.lock().objects.get_mut(&self.uid) {
            object.written = written;
        }
    }
}

impl Drop for QueuedWrite {
    fn drop(&mut self) {
        let mut state = self.queues.lock();
        state.entries -= 1;
        let Some(object) = state.objects.get_mut(&self.uid) else { return };
        object.entries.retain(|entry| entry.ticket != self.ticket);
        let next = object.entries.front_mut().and_then(|entry| entry.waker.take());
        if object.entries.is_empty() {
            state.objects.remove(&self.uid);
        }
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn is_ready(write: &QueuedWrite) -> bool {
        write.ready().now_or_never().is_some_and(|result| result.is_ok())
    }

    #[test]
    fn writes_are_ready_in_order_and_dropped_ones_are_skipped() {
        let queues = Arc::new(WriteQueues::default());
        let (first, second, third) = (queues.join("a"), queues.join("a"), queues.join("a"));
        let other = queues.join("b");
        assert_eq!([&first, &second, &third, &other].map(is_ready), [true, false, false, true]);
        assert_eq!(queues.pending(), 4);
        drop(second);
        drop(first);
        assert!(is_ready(&third));
        drop((third, other));
        assert_eq!(queues.pending(), 0);
        assert!(queues.lock().objects.is_empty());
    }

    #[test]
    fn status_drafts_are_merged_and_dropped_by_a_binding() {
        let queues = Arc::new(WriteQueues::default());
        let pod = Arc::new(Pod::default());
        let patch = queues.join_draft(&pod, StatusUpdate::nominate("a")).unwrap();
        assert!(queues.join_draft(&pod, StatusUpdate::nominate("b")).is_none());
        assert_eq!(queues.pending(), 1);
        let binding = queues.join_binding("");
        assert!(is_ready(&patch) && !is_ready(&binding));
        assert!(patch.take_draft().is_none());
        drop(patch);
        assert!(is_ready(&binding));
        let later = queues.join_draft(&pod, StatusUpdate::nominate("c")).unwrap();
        let waited = queues.join("");
        let last = queues.join_draft(&pod, StatusUpdate::nominate("d"));
        assert!(last.is_some(), "it must not overtake what somebody waits for");
        drop(binding);
        assert!(is_ready(&later) && later.take_draft().is_some());
        drop((later, waited));
        assert!(last.is_some_and(|last| is_ready(&last) && last.take_draft().is_some()));
    }

    #[test]
    fn close_drops_waiting_writes() {
        let queues = Arc::new(WriteQueues::default());
        let pod = Arc::new(Pod::default());
        let patch = queues.join_draft(&pod, StatusUpdate::nominate("a")).unwrap();
        let binding = queues.join("");
        queues.close();
        assert!(matches!(binding.ready().now_or_never(), Some(Err(ApiError::Closed))));
        assert!(patch.take_draft().is_none());
        assert!(queues.join_draft(&pod, StatusUpdate::nominate("a")).is_none());
    }
}
