//! One write at a time for each object, in the order in which they were asked for.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::error::ApiError;
use super::status::{Draft, StatusUpdate, Written};
use crate::k8s::Pod;

/// The lines of all objects with writes. The lock guards them all; nothing under it waits or calls out, and wakers run after it.
#[derive(Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    closed: bool,
    tickets: u64,
    /// Places in all lines.
    places: usize,
    /// By UID; an object leaves with its last place.
    objects: BTreeMap<Arc<str>, Object>,
}

#[derive(Default)]
struct Object {
    /// Whoever is in front may write.
    line: VecDeque<Place>,
    /// What this run of writes has changed so far.
    written: Written,
}

struct Place {
    ticket: u64,
    waker: Option<Waker>,
    /// The patch that this place stands for, if nobody waits for it and it has not been sent.
    draft: Option<Draft>,
}

/// A place in an object's line, given up when it is dropped.
pub(super) struct Turn {
    turns: Arc<Turns>,
    uid: Arc<str>,
    ticket: u64,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No step under the lock leaves the lines half-changed if it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes that wait or run.
    pub(super) fn pending(&self) -> usize {
        self.lock().places
    }

    /// Drops every write that has not begun.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut wakers = Vec::new();
        for place in state.objects.values_mut().flat_map(|object| &mut object.line) {
            place.draft = None;
            wakers.extend(place.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether nothing is begun any more.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// A place at the end of an object's line.
    pub(super) fn join(self: &Arc<Self>, uid: &str) -> Turn {
        self.enter(&mut self.lock(), uid, None)
    }

    /// The same for a binding, which makes patches that have not been sent pointless.
    pub(super) fn join_binding(self: &Arc<Self>, uid: &str) -> Turn {
        let mut state = self.lock();
        if let Some(object) = state.objects.get_mut(uid) {
            object.line.iter_mut().for_each(|place| place.draft = None);
        }
        self.enter(&mut state, uid, None)
    }

    /// Takes a patch in that nobody waits for. `None` if it was merged into one that has the last place in line, or dropped
    /// because the lines are closed.
    pub(super) fn join_draft(self: &Arc<Self>, pod: &Arc<Pod>, update: StatusUpdate) -> Option<Turn> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let last = state.objects.get_mut(pod.uid()).and_then(|object| object.line.back_mut());
        if let Some(draft) = last.and_then(|place| place.draft.as_mut()) {
            draft.absorb(Arc::clone(pod), update);
            return None;
        }
        let draft = Draft::new(Arc::clone(pod), update);
        Some(self.enter(&mut state, pod.uid(), Some(draft)))
    }

    fn enter(self: &Arc<Self>, state: &mut State, uid: &str, draft: Option<Draft>) -> Turn {
        let ticket = state.tickets;
        state.tickets += 1;
        state.places += 1;
        let uid = state.objects.get_key_value(uid).map_or_else(|| Arc::from(uid), |(uid, _)| Arc::clone(uid));
        let object = state.objects.entry(Arc::clone(&uid)).or_default();
        object.line.push_back(Place { ticket, waker: None, draft });
        Turn { turns: Arc::clone(self), uid, ticket }
    }
}

impl Turn {
    /// Waits until this place is the first in its line. Fails once the lines are closed.
    pub(super) async fn ready(&self) -> Result<(), ApiError> {
        poll_fn(|context| {
            let mut state = self.turns.lock();
            if state.closed {
                return Poll::Ready(Err(ApiError::Closed));
            }
            let line = state.objects.get_mut(&self.uid).map(|object| &mut object.line);
            match line.and_then(|line| line.iter_mut().enumerate().find(|(_, place)| place.ticket == self.ticket)) {
                Some((1.., place)) => {
                    place.waker = Some(context.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// The merged patch of this place; `None` if a binding or a close has dropped it. From now on later updates start a new one.
    pub(super) fn take_draft(&self) -> Option<Draft> {
        let mut state = self.turns.lock();
        let line = &mut state.objects.get_mut(&self.uid)?.line;
        line.iter_mut().find(|place| place.ticket == self.ticket)?.draft.take()
    }

    /// What this run of writes has changed so far.
    pub(super) fn written(&self) -> Written {
        self.turns.lock().objects.get(&self.uid).map(|object| object.written.clone()).unwrap_or_default()
    }

    /// Remembers what has been changed for the writes that follow.
    pub(super) fn set_written(&self, written: Written) {
        if let Some(object) = self.turns.lock().objects.get_mut(&self.uid) {
            object.written = written;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.places -= 1;
        let Some(object) = state.objects.get_mut(&self.uid) else { return };
        object.line.retain(|place| place.ticket != self.ticket);
        let next = object.line.front_mut().and_then(|place| place.waker.take());
        if object.line.is_empty() {
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

    fn is_ready(turn: &Turn) -> bool {
        turn.ready().now_or_never().is_some_and(|result| result.is_ok())
    }

    #[test]
    fn turns_come_in_order_and_a_dropped_place_is_skipped() {
        let turns = Arc::new(Turns::default());
        let (first, second, third) = (turns.join("a"), turns.join("a"), turns.join("a"));
        let other = turns.join("b");
        assert_eq!([&first, &second, &third, &other].map(is_ready), [true, false, false, true]);
        assert_eq!(turns.pending(), 4);
        drop(second);
        drop(first);
        assert!(is_ready(&third));
        drop((third, other));
        assert_eq!(turns.pending(), 0);
        assert!(turns.lock().objects.is_empty());
    }

    #[test]
    fn drafts_merge_and_a_binding_drops_them() {
        let turns = Arc::new(Turns::default());
        let pod = Arc::new(Pod::default());
        let patch = turns.join_draft(&pod, StatusUpdate::nominate("a")).unwrap();
        assert!(turns.join_draft(&pod, StatusUpdate::nominate("b")).is_none());
        assert_eq!(turns.pending(), 1);
        let binding = turns.join_binding("");
        assert!(is_ready(&patch) && !is_ready(&binding));
        assert!(patch.take_draft().is_none());
        drop(patch);
        assert!(is_ready(&binding));
        let later = turns.join_draft(&pod, StatusUpdate::nominate("c")).unwrap();
        let waited = turns.join("");
        let last = turns.join_draft(&pod, StatusUpdate::nominate("d"));
        assert!(last.is_some(), "it must not overtake what somebody waits for");
        drop(binding);
        assert!(is_ready(&later) && later.take_draft().is_some());
        drop((later, waited));
        assert!(last.is_some_and(|last| is_ready(&last) && last.take_draft().is_some()));
    }

    #[test]
    fn closing_drops_what_has_not_begun() {
        let turns = Arc::new(Turns::default());
        let pod = Arc::new(Pod::default());
        let patch = turns.join_draft(&pod, StatusUpdate::nominate("a")).unwrap();
        let binding = turns.join("");
        turns.close();
        assert!(matches!(binding.ready().now_or_never(), Some(Err(ApiError::Closed))));
        assert!(patch.take_draft().is_none());
        assert!(turns.join_draft(&pod, StatusUpdate::nominate("a")).is_none());
    }
}
