//! The one function through which parallel work goes.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

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

    /// How many threads work.
    pub fn workers(&self) -> usize {
        self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// `work(0)`, …, `work(pieces - 1)`, in order. A piece has to be worth handing over to another thread, some ten
    /// microseconds: callers put that much into one.
    pub fn map<T: Send>(&self, pieces: usize, work: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
        match &self.pool {
            Some(pool) if pieces > 1 => pool.install(|| (0..pieces).into_par_iter().map(work).collect()),
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
