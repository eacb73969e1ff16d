//! The one function through which parallel work goes.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

/// Below this many pieces the work stays on the calling thread: handing it over costs more than it saves.
const SERIAL_BELOW: usize = 256;

/// Runs independent pieces of work on several threads. Each piece returns its own value and the values come back in
/// order, so the result is the same for one worker and for sixteen.
#[derive(Debug)]
pub struct Parallelizer {
    pool: Option<rayon::ThreadPool>,
}

impl Parallelizer {
    /// A parallelizer of this many workers; one works on the calling thread.
    ///
    /// # Panics
    ///
    /// If the operating system refuses the threads.
    pub fn new(workers: usize) -> Self {
        let pool = (workers > 1).then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(workers)
                .thread_name(|at| format!("worker-{at}"))
                .build()
                .expect("worker threads can be started")
        });
        Self { pool }
    }

    /// `work(0)`, …, `work(pieces - 1)`, in order.
    pub fn map<T: Send>(&self, pieces: usize, work: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
        match &self.pool {
            Some(pool) if pieces >= SERIAL_BELOW => {
                pool.install(|| (0..pieces).into_par_iter().with_min_len(32).map(work).collect())
            }
            _ => (0..pieces).map(work).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_and_sixteen_give_the_same() {
        let work = |at: usize| at * at % 7;
        assert_eq!(Parallelizer::new(1).map(1000, work), Parallelizer::new(16).map(1000, work));
    }
}
