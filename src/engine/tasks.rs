//! Ownership of all spawned tasks.

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

/// The unexpected end of a task. The process must exit, because a process that looks healthy but schedules nothing is worse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskEnd {
    /// The task ended with a panic.
    #[error("task {name:?} panicked: {message}")]
    Panicked {
        /// Name of the task.
        name: &'static str,
        /// Message of the panic.
        message: String,
    },
    /// A task ended although it has to run as long as the process.
    #[error("task {name:?} ended unexpectedly")]
    Ended {
        /// Name of the task.
        name: &'static str,
    },
}

/// Longest time for which the scheduling thread waits for a task. A request to a slow but reachable server takes less.
const WAIT: Duration = Duration::from_secs(30);

/// Spawns tasks and observes the end of each.
#[derive(Clone)]
pub struct Tasks {
    runtime: Handle,
    running: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
    /// The tasks of [`Self::serve`]. The lock guards the list and is held for a lookup.
    serving: Arc<Mutex<Vec<(&'static str, AbortHandle)>>>,
    fatal: mpsc::UnboundedSender<TaskEnd>,
    /// The runtime, if it makes progress only while a caller drives it.
    driven: Arc<OnceLock<Weak<Runtime>>>,
}

/// Receives the unexpected ends of tasks.
pub type Fatal = mpsc::UnboundedReceiver<TaskEnd>;

impl Tasks {
    /// Creates an owner of tasks on this runtime, and the receiver of their unexpected ends.
    pub fn new(runtime: Handle) -> (Self, Fatal) {
        let (fatal, heard) = mpsc::unbounded_channel();
        let (running, stopping, serving) = (Arc::default(), Arc::default(), Arc::default());
        (Self { runtime, running, stopping, serving, fatal, driven: Arc::default() }, heard)
    }

    /// Declares that the runtime has no threads of its own: a caller that waits for a task must drive the runtime.
    pub fn drive(&self, runtime: &Arc<Runtime>) {
        // A second call sets the same value.
        let _ = self.driven.set(Arc::downgrade(runtime));
    }

    /// Spawns a task that ends by itself.
    pub fn run(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (running, fatal) = (Running::new(&self.running), self.fatal.clone());
        self.runtime.spawn(async move {
            let end = AssertUnwindSafe(task).catch_unwind().await;
            drop(running);
            if let Err(panic) = end {
                // The receiver is dropped only when the process exits.
                let _ = fatal.send(TaskEnd::Panicked { name, message: panic_message(&*panic) });
            }
        });
    }

    /// Spawns a task that must not end before [`Self::stop`] is called. Any earlier end is fatal.
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

    /// Returns the names of the running tasks of [`Self::serve`], in the order in which they were started.
    pub fn names(&self) -> Vec<&'static str> {
        self.serving().iter().filter(|(_, task)| !task.is_finished()).map(|(name, _)| *name).collect()
    }

    /// Aborts the tasks of [`Self::serve`] with this name, for tests of unexpected ends. Returns their number.
    pub fn kill(&self, name: &str) -> usize {
        let serving = self.serving();
        let killed = serving.iter().filter(|(known, task)| *known == name && !task.is_finished());
        killed.map(|(_, task)| task.abort()).count()
    }

    fn serving(&self) -> MutexGuard<'_, Vec<(&'static str, AbortHandle)>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows the tasks of [`Self::serve`] to end from now on.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Returns the number of running tasks of [`Self::run`].
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
            // The receiver is dropped after a timeout.
            let _ = tell.send(());
        });
        ended.recv_timeout(WAIT).is_ok()
    }
}

/// Counts a running task until it is dropped, regardless of how the task ends.
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
    /// The panic of the task. `None` if the task returned or was aborted.
    end: Option<TaskEnd>,
}

impl Drop for EndReport {
    fn drop(&mut self) {
        let end = match self.end.take() {
            Some(end) => end,
            None if self.stopping.load(Ordering::Acquire) => return,
            None => TaskEnd::Ended { name: self.name },
        };
        // The receiver is dropped only when the process exits.
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
