//! The owner of every spawned task.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::framework::BoxFuture;
use crate::scheduler::Spawn;

/// A task that ended as it must not: the process has to end too, since one that looks healthy and schedules nothing is
/// worse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskEnd {
    /// The task panicked.
    #[error("task {name:?} panicked: {message}")]
    Panicked {
        /// What the task does.
        name: &'static str,
        /// What it said.
        message: String,
    },
    /// A task that serves for as long as the process runs has ended.
    #[error("task {name:?} ended before its time")]
    Ended {
        /// What the task did.
        name: &'static str,
    },
}

/// How long the scheduling thread waits for a task: more than a request takes whose server answers at all, though late.
const WAIT: Duration = Duration::from_secs(30);

/// Spawns tasks and observes the end of each.
#[derive(Clone)]
pub struct Tasks {
    runtime: Handle,
    running: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
    /// The tasks of [`Self::serve`]; the lock guards the list and is held for a look at it.
    serving: Arc<Mutex<Vec<(&'static str, AbortHandle)>>>,
    fatal: mpsc::UnboundedSender<TaskEnd>,
    /// The runtime, if it only runs while somebody drives it.
    driven: Arc<OnceLock<Weak<Runtime>>>,
}

/// Where a task's wrong end is heard of.
pub type Fatal = mpsc::UnboundedReceiver<TaskEnd>;

impl Tasks {
    /// An owner of tasks on this runtime, and where wrong ends are heard of.
    pub fn new(runtime: Handle) -> (Self, Fatal) {
        let (fatal, heard) = mpsc::unbounded_channel();
        let (running, stopping, serving) = (Arc::default(), Arc::default(), Arc::default());
        (Self { runtime, running, stopping, serving, fatal, driven: Arc::default() }, heard)
    }

    /// The runtime has no thread of its own: whoever waits for a task has to drive it, from outside.
    pub fn drive(&self, runtime: &Arc<Runtime>) {
        // A second call says the same.
        let _ = self.driven.set(Arc::downgrade(runtime));
    }

    /// Runs a task that comes to an end by itself.
    pub fn run(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (running, fatal) = (Running::new(&self.running), self.fatal.clone());
        self.runtime.spawn(async move {
            let end = AssertUnwindSafe(task).catch_unwind().await;
            drop(running);
            if let Err(panic) = end {
                // Nobody listens any more only when the process is ending anyway.
                let _ = fatal.send(TaskEnd::Panicked { name, message: panic_message(&*panic) });
            }
        });
    }

    /// Runs a task that serves until [`Self::stop`]; that it ends before, in whatever way, is fatal.
    pub fn serve(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let mut end = EndReport { name, stopping: self.stopping.clone(), fatal: self.fatal.clone(), end: None };
        let task = self.runtime.spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                end.end = Some(TaskEnd::Panicked { name, message: panic_message(&*panic) });
            }
            drop(end);
        });
        self.serving().push((name, task.abort_handle()));
    }

    /// The names of the tasks that serve, in the order in which they were started.
    pub fn names(&self) -> Vec<&'static str> {
        self.serving().iter().filter(|(_, task)| !task.is_finished()).map(|(name, _)| *name).collect()
    }

    /// Cuts the serving tasks of this name off, wherever they are, as a test does to see that it is heard of. Says how many.
    pub fn kill(&self, name: &str) -> usize {
        let serving = self.serving();
        let killed = serving.iter().filter(|(known, task)| *known == name && !task.is_finished());
        killed.map(|(_, task)| task.abort()).count()
    }

    fn serving(&self) -> MutexGuard<'_, Vec<(&'static str, AbortHandle)>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on serving tasks may end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// How many tasks of [`Self::run`] have not ended.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }
}

impl Spawn for Tasks {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.run(name, task);
    }

    fn wait(&self, task: BoxFuture<'static, ()>) -> bool {
        if let Some(runtime) = self.driven.get().and_then(Weak::upgrade) {
            runtime.block_on(task);
            return true;
        }
        let (tell, ended) = std::sync::mpsc::channel();
        self.run("waited for", async move {
            task.await;
            // Nobody listens any more once the time is up.
            let _ = tell.send(());
        });
        ended.recv_timeout(WAIT).is_ok()
    }
}

/// Counts a running task until it is dropped, however the task ends.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Guard that reports the end of a task when it is dropped: after a return, a panic or an abort.
struct EndReport {
    name: &'static str,
    stopping: Arc<AtomicBool>,
    fatal: mpsc::UnboundedSender<TaskEnd>,
    /// The end of the task, unless it returned.
    end: Option<TaskEnd>,
}

impl Drop for EndReport {
    fn drop(&mut self) {
        let end = match self.end.take() {
            Some(end) => end,
            None if self.stopping.load(Ordering::Acquire) => return,
            None => TaskEnd::Ended { name: self.name },
        };
        // Nobody listens any more only when the process is ending anyway.
        let _ = self.fatal.send(end);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
    }

    #[test]
    fn a_task_that_panics_is_heard_of_and_no_longer_counted() {
        let runtime = runtime();
        let (tasks, mut fatal) = Tasks::new(runtime.handle().clone());
        tasks.run("binding", async { panic!("boom") });
        assert_eq!(tasks.running(), 1);
        let end = runtime.block_on(fatal.recv());
        assert_eq!(end, Some(TaskEnd::Panicked { name: "binding", message: "boom".into() }));
        assert_eq!(tasks.running(), 0);
    }

    #[test]
    fn a_serving_task_may_end_only_after_the_stop() {
        let runtime = runtime();
        let (tasks, mut fatal) = Tasks::new(runtime.handle().clone());
        tasks.serve("reflector", async {});
        assert_eq!(runtime.block_on(fatal.recv()), Some(TaskEnd::Ended { name: "reflector" }));
        tasks.stop();
        tasks.serve("reflector", async {});
        runtime.block_on(tokio::task::yield_now());
        assert!(fatal.try_recv().is_err());
    }

    #[test]
    fn a_serving_task_that_is_cut_off_or_panics_is_heard_of() {
        let runtime = runtime();
        let (tasks, mut fatal) = Tasks::new(runtime.handle().clone());
        tasks.serve("metrics", std::future::pending());
        tasks.serve("reflector", async { panic!("boom") });
        assert_eq!(tasks.names(), ["metrics", "reflector"]);
        let end = runtime.block_on(fatal.recv());
        assert_eq!(end, Some(TaskEnd::Panicked { name: "reflector", message: "boom".into() }));
        assert_eq!((tasks.kill("reflector"), tasks.kill("metrics")), (0, 1));
        assert_eq!(runtime.block_on(fatal.recv()), Some(TaskEnd::Ended { name: "metrics" }));
        assert!(tasks.names().is_empty());
    }
}
