//! Writes of plugins and cycles to the API, and the tasks that make them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;

use crate::dispatcher::{ApiWrites, StatusUpdate};
use crate::events::{EventNote, EventRecorder, EventType, ObjectRef};
use crate::framework::{BoxFuture, Effects, PluginError, PodEvent};
use crate::k8s::Pod;
use crate::model::PodInfo;

/// The implementation of [`Effects`] that writes to an API server.
pub struct ApiEffects {
    writes: ApiWrites,
    /// The event recorders by schedulerName.
    recorders: BTreeMap<String, EventRecorder>,
    tasks: Arc<dyn Spawn>,
}

impl ApiEffects {
    /// Creates effects that send writes through `writes` and events through the recorder of the reporting profile. Slow work
    /// runs in `tasks`.
    pub fn new(writes: ApiWrites, recorders: BTreeMap<String, EventRecorder>, tasks: Arc<dyn Spawn>) -> Self {
        Self { writes, recorders, tasks }
    }
}

impl Effects for ApiEffects {
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        let (writes, pod, node) = (self.writes.clone(), pod.clone(), node.clone());
        async move { writes.bind(pod.pod(), &node).await.map_err(|error| PluginError::new(error.to_string())) }.boxed()
    }

    fn record(&self, profile: &str, event: PodEvent<'_>) {
        let Some(recorder) = self.recorders.get(profile) else { return };
        let kind = if event.warning { EventType::Warning } else { EventType::Normal };
        let said = EventNote {
            kind,
            reason: event.reason.to_owned().into(),
            action: event.action.to_owned().into(),
            note: event.note.to_owned(),
        };
        recorder.record(ObjectRef::pod(event.regarding), None, said);
    }

    /// Marks and deletes the victim. Follows `pkg/scheduler/framework/preemption/executor.go#NewExecutor @v1.36.3`.
    fn evict(&self, victim: &Arc<Pod>, preemptor: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>> {
        let (writes, victim) = (self.writes.clone(), victim.clone());
        let update = StatusUpdate::disruption_target(&victim, preemptor.scheduler_name());
        async move {
            let marked = writes.patch_status_and_wait(&victim, update).await;
            let ended = match marked {
                Ok(_) => writes.delete(&victim).await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(()) => Ok(true),
                Err(error) if error.is_not_found() => Ok(false),
                Err(error) => Err(PluginError::new(error.to_string())),
            }
        }
        .boxed()
    }

    fn clear_nomination(&self, pod: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>> {
        let (writes, pod) = (self.writes.clone(), pod.clone());
        async move {
            let written = writes.patch_status_and_wait(&pod, StatusUpdate::nominate("")).await;
            written.map(drop).map_err(|error| PluginError::new(error.to_string()))
        }
        .boxed()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.tasks.spawn("preemption", task);
    }

    fn wait(&self, task: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError> {
        let outcome = Arc::new(Mutex::new(None));
        let told = outcome.clone();
        let ended = self.tasks.wait(task_then(task, move |result| *lock(&told) = Some(result)));
        let outcome = lock(&outcome).take();
        outcome.filter(|_| ended).unwrap_or_else(|| Err(PluginError::new("timed out waiting for API writes")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a task that runs `task` and then calls `tell` with its result.
fn task_then<T: Send + 'static>(
    task: BoxFuture<'static, T>,
    tell: impl FnOnce(T) + Send + 'static,
) -> BoxFuture<'static, ()> {
    async move { tell(task.await) }.boxed()
}

/// Runs futures in tasks, and observes the end of each.
pub trait Spawn: Send + Sync {
    /// Spawns the future as a task. `name` identifies the task if it panics.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);
    /// Spawns the future and waits for its end, with a timeout. Returns whether it has ended.
    fn wait(&self, task: BoxFuture<'static, ()>) -> bool;
}

/// Boxes a future for [`Spawn`].
pub(super) fn task(future: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    future.boxed()
}
