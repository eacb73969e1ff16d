//! Parallel execution of independent work, used for all parallel work in a cycle.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs independent pieces of work on several threads. Each piece returns a value, and the values are returned in order, so the
/// result does not depend on the number of workers.
///
/// The calling thread is one of the workers. It starts at once, while the others take some tens of microseconds to wake up.
/// Each worker takes the next piece when it has finished one.
#[derive(Debug)]
pub struct Parallelizer {
    /// The other workers, if there are any.
    helpers: Option<rayon::ThreadPool>,
}

impl Parallelizer {
    /// Creates a parallelizer with this many workers.
    ///
    /// # Panics
    ///
    /// If the operating system refuses the threads.
    pub fn new(workers: usize) -> Self {
        let helpers = (workers > 1).then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(workers - 1)
                .thread_name(|at| format!("worker-{at}"))
                .build()
                .expect("worker threads can be started")
        });
        Self { helpers }
    }

    /// Returns the number of workers, including the calling thread.
    pub fn workers(&self) -> usize {
        1 + self.helpers.as_ref().map_or(0, rayon::ThreadPool::current_num_threads)
    }

    /// Returns `work(0)`, …, `work(pieces - 1)`, in order. Waking a thread takes some tens of microseconds, so all pieces
    /// together should take at least that long.
    pub fn map<T: Send>(&self, pieces: usize, work: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
        let Some(helpers) = self.helpers.as_ref().filter(|_| pieces > 1) else {
            return (0..pieces).map(work).collect();
        };
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(pieces));
        let help = || {
            let taken = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|at| *at < pieces);
            let own: Vec<(usize, T)> = taken.map(|at| (at, work(at))).collect();
            done.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        };
        let help = &help;
        helpers.in_place_scope(|scope| {
            for _ in 1..self.workers().min(pieces) {
                scope.spawn(move |_| help());
            }
            help();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, value)| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_independent_of_the_worker_count() {
        let work = |at: usize| at * at % 7;
        let alone = Parallelizer::new(1);
        let many = Parallelizer::new(16);
        assert_eq!((alone.workers(), many.workers()), (1, 16));
        for pieces in [0, 1, 2, 15, 1000] {
            assert_eq!(alone.map(pieces, work), many.map(pieces, work));
        }
    }
}
