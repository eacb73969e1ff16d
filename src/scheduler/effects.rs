//! What plugins and cycles have written, and the tasks that do it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt as _;

use crate::dispatcher::ApiWrites;
use crate::framework::{BoxFuture, Effects, PluginError, PodEvent};
use crate::model::PodInfo;

/// Records events of one profile. Implemented by the event recorder; tests look at what was recorded.
pub trait RecordEvents: Send + Sync {
    /// Records an event; never blocks.
    fn record(&self, event: PodEvent<'_>);
}

/// [`Effects`] by way of the API server.
pub struct ApiEffects {
    writes: ApiWrites,
    /// By schedulerName.
    recorders: BTreeMap<String, Arc<dyn RecordEvents>>,
}

impl ApiEffects {
    /// Writes through `writes`, and records events with the recorder of the profile that reports them.
    pub fn new(writes: ApiWrites, recorders: BTreeMap<String, Arc<dyn RecordEvents>>) -> Self {
        Self { writes, recorders }
    }
}

impl Effects for ApiEffects {
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        let (writes, pod, node) = (self.writes.clone(), pod.clone(), node.clone());
        async move { writes.bind(pod.pod(), &node).await.map_err(|error| PluginError::new(error.to_string())) }.boxed()
    }

    fn record(&self, profile: &str, event: PodEvent<'_>) {
        if let Some(recorder) = self.recorders.get(profile) {
            recorder.record(event);
        }
    }
}

/// Runs a future to its end on another thread of control, whose owner observes that end.
pub trait Spawn: Send + Sync {
    /// Starts the future.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

impl<F: Fn(BoxFuture<'static, ()>) + Send + Sync> Spawn for F {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self(task);
    }
}

/// Boxes a task for [`Spawn`].
pub(super) fn task(future: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    future.boxed()
}
