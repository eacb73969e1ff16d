//! What plugins and cycles have written, and the tasks that do it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;

use crate::dispatcher::{ApiWrites, StatusUpdate};
use crate::events::{EventNote, EventRecorder, EventType, ObjectRef};
use crate::framework::{BoxFuture, Effects, PluginError, PodEvent};
use crate::k8s::Pod;
use crate::model::PodInfo;

/// [`Effects`] by way of the API server.
pub struct ApiEffects {
    writes: ApiWrites,
    /// By schedulerName.
    recorders: BTreeMap<String, EventRecorder>,
    tasks: Arc<dyn Spawn>,
}

impl ApiEffects {
    /// Writes through `writes`, records events with the recorder of the profile that reports them, and leaves what takes
    /// time to `tasks`.
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

    /// Follows `pkg/scheduler/framework/preemption/executor.go#NewExecutor @v1.36.3`.
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

/// The task, and after it a word about its result.
fn task_then<T: Send + 'static>(
    task: BoxFuture<'static, T>,
    tell: impl FnOnce(T) + Send + 'static,
) -> BoxFuture<'static, ()> {
    async move { tell(task.await) }.boxed()
}

/// Runs a future to its end on another thread of control, whose owner observes that end.
pub trait Spawn: Send + Sync {
    /// Starts the future, which goes by `name` where it ends as it must not.
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>);
    /// Starts the future and waits for its end, though not for ever. Says whether it has ended.
    fn wait(&self, task: BoxFuture<'static, ()>) -> bool;
}

/// Boxes a task for [`Spawn`].
pub(super) fn task(future: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    future.boxed()
}
