//! Effects that write nothing to an API server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;

use crate::framework::{BoxFuture, Effects, PluginError, PodEvent};
use crate::k8s::Pod;
use crate::model::PodInfo;

/// Effects that write nothing and record bindings, events and tasks for the test.
///
/// Evictions and changes of nominated nodes fail, and so does [`Effects::wait`].
pub struct NoEffects {
    binding_result: Result<(), PluginError>,
    bindings: Mutex<Vec<(String, String)>>,
    events: Mutex<Vec<String>>,
    tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Default for NoEffects {
    fn default() -> Self {
        Self::with_binding_result(Ok(()))
    }
}

impl NoEffects {
    /// Returns effects that give every binding this result.
    pub fn with_binding_result(result: Result<(), PluginError>) -> Self {
        let (bindings, events, tasks) = Default::default();
        Self { binding_result: result, bindings, events, tasks }
    }

    /// Returns the bindings so far, as pairs of pod key and node name.
    pub fn bindings(&self) -> Vec<(String, String)> {
        lock(&self.bindings).clone()
    }

    /// Returns the events so far, as `reason: note`.
    pub fn events(&self) -> Vec<String> {
        lock(&self.events).clone()
    }

    /// Runs the tasks that were spawned.
    ///
    /// # Panics
    ///
    /// Panics if a task has to wait.
    pub fn run_tasks(&self) {
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        tasks.into_iter().for_each(|task| task.now_or_never().expect("the task does not wait"));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Effects for NoEffects {
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        lock(&self.bindings).push((pod.key().to_string(), node.to_string()));
        Box::pin(std::future::ready(self.binding_result.clone()))
    }

    fn record(&self, _profile: &str, event: PodEvent<'_>) {
        lock(&self.events).push(format!("{}: {}", event.reason, event.note));
    }

    fn evict(&self, _: &Arc<Pod>, _: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("there is no API server to delete a pod from"))))
    }

    fn clear_nomination(&self, _: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("there is no API server to patch a pod at"))))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        lock(&self.tasks).push(task);
    }

    fn wait(&self, _: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError> {
        Err(PluginError::new("there is no API server to wait for"))
    }
}
