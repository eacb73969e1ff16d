//! Cache of API server answers. Concurrent equal questions share one request.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, WeakShared};

use crate::clock::{Clock, Mono};

/// Cache of answers by question. A full cache evicts its oldest answers, so unknown clients cannot make it grow.
///
/// The lock guards the maps. It is held for one look-up and never across an await.
pub(super) struct AnswerCache<V> {
    clock: Clock,
    capacity: usize,
    state: Mutex<State<V>>,
}

/// An answer and the time for which it is cached. An answer with a time of zero is not cached.
#[derive(Clone, Debug)]
pub(super) struct Answer<V> {
    pub(super) value: V,
    pub(super) keep: Duration,
}

struct State<V> {
    known: BTreeMap<Vec<u8>, CachedAnswer<V>>,
    /// Keys by the order in which their answers were cached.
    order: BTreeMap<u64, Vec<u8>>,
    learned: u64,
    asked: BTreeMap<Vec<u8>, WeakShared<BoxFuture<'static, Answer<V>>>>,
}

struct CachedAnswer<V> {
    value: V,
    until: Mono,
    order: u64,
}

impl<V: Clone + Send + Sync + 'static> AnswerCache<V> {
    /// Creates an empty cache that holds at most `capacity` answers.
    pub(super) fn new(clock: Clock, capacity: usize) -> Arc<Self> {
        let state = State { known: BTreeMap::new(), order: BTreeMap::new(), learned: 0, asked: BTreeMap::new() };
        Arc::new(Self { clock, capacity, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached answer unless it has expired.
    pub(super) fn known(&self, key: &[u8]) -> Option<V> {
        let state = self.state();
        state.known.get(key).filter(|known| self.clock.mono() < known.until).map(|known| known.value.clone())
    }

    /// Returns the cached answer, or waits for the request that is in flight, or sends one.
    pub(super) async fn get<F>(self: &Arc<Self>, key: Vec<u8>, ask: impl FnOnce() -> F) -> V
    where
        F: Future<Output = Answer<V>> + Send + 'static,
    {
        if let Some(value) = self.known(&key) {
            return value;
        }
        let asked = {
            let mut state = self.state();
            if let Some(asked) = state.asked.get(&key).and_then(WeakShared::upgrade) {
                asked
            } else {
                let (answers, question, asking) = (self.clone(), key.clone(), ask());
                let asked = async move {
                    let answer = asking.await;
                    answers.learn(question, &answer);
                    answer
                };
                let asked = asked.boxed().shared();
                // Drops the requests whose waiters have all gone away.
                state.asked.retain(|_, asked| asked.upgrade().is_some());
                if let Some(weak) = asked.downgrade() {
                    state.asked.insert(key, weak);
                }
                asked
            }
        };
        asked.await.value
    }

    fn learn(&self, key: Vec<u8>, answer: &Answer<V>) {
        let now = self.clock.mono();
        let mut state = self.state();
        state.asked.remove(&key);
        if answer.keep.is_zero() {
            return;
        }
        state.learned += 1;
        let order = state.learned;
        state.order.insert(order, key.clone());
        let known = CachedAnswer { value: answer.value.clone(), until: now + answer.keep, order };
        if let Some(before) = state.known.insert(key, known) {
            state.order.remove(&before.order);
        }
        // Nearly all answers are valid for the same time, so the oldest ones expire first.
        while let Some((oldest, key)) = state.order.first_key_value() {
            let (oldest, key) = (*oldest, key.clone());
            let over = state.known.get(&key).is_none_or(|known| known.until <= now);
            if !over && state.known.len() <= self.capacity {
                break;
            }
            state.order.remove(&oldest);
            state.known.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use jiff::Timestamp;

    use super::*;
    use crate::clock::SimClock;

    fn answers(capacity: usize) -> (SimClock, Arc<AnswerCache<usize>>) {
        let clock = SimClock::new(Timestamp::UNIX_EPOCH);
        (clock.clone(), AnswerCache::new(clock.clock(), capacity))
    }

    #[test]
    fn answer_is_cached_until_its_ttl() {
        let (clock, answers) = answers(10);
        let asked = AtomicUsize::new(0);
        let get = |keep: u64| {
            let value = asked.fetch_add(1, Ordering::Relaxed);
            let answer = Answer { value, keep: Duration::from_secs(keep) };
            let got = futures::executor::block_on(answers.get(b"q".to_vec(), move || async move { answer }));
            if got != value {
                asked.fetch_sub(1, Ordering::Relaxed);
            }
            got
        };
        assert_eq!((get(10), get(10)), (0, 0));
        clock.advance(Duration::from_secs(9));
        assert_eq!(get(10), 0);
        clock.advance(Duration::from_secs(1));
        assert_eq!((get(0), get(0)), (1, 2), "an answer that is not kept is asked for again");
    }

    #[test]
    fn full_cache_evicts_the_oldest() {
        let (clock, answers) = answers(2);
        let get = |key: u8| {
            let answer = Answer { value: usize::from(key), keep: Duration::from_secs(10) };
            futures::executor::block_on(answers.get(vec![key], move || async move { answer }))
        };
        for key in [1, 2, 3] {
            get(key);
        }
        let known = |key: u8| answers.known(&[key]).is_some();
        assert_eq!((known(1), known(2), known(3)), (false, true, true));
        clock.advance(Duration::from_secs(11));
        get(4);
        let state = answers.state();
        assert_eq!((state.known.len(), state.order.len()), (1, 1), "what is over is dropped");
    }

    #[test]
    fn concurrent_equal_requests_share_one_answer() {
        let (_clock, answers) = answers(2);
        let asked = Arc::new(AtomicUsize::new(0));
        let (release, gate) = futures::channel::oneshot::channel::<()>();
        let gate = gate.shared();
        let get = || {
            let (asked, gate) = (asked.clone(), gate.clone());
            answers.get(b"q".to_vec(), move || async move {
                let value = asked.fetch_add(1, Ordering::Relaxed);
                let _ = gate.await;
                Answer { value, keep: Duration::ZERO }
            })
        };
        futures::executor::block_on(async {
            let both = futures::future::join(get(), get());
            let open = async { release.send(()).expect("somebody waits") };
            let (got, ()) = futures::future::join(both, open).await;
            assert_eq!(got, (0, 0));
        });
        assert!(answers.state().asked.is_empty());
        let dropped = get();
        drop(dropped);
        assert_eq!(futures::executor::block_on(get()), 1, "what nobody waits for any more is asked for anew");
    }
}
