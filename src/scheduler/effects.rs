//! What plugins and cycles have written, and the tasks that do it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt as _;

use crate::dispatcher::ApiWrites;
use crate::events::{EventNote, EventRecorder, EventType, ObjectRef};
use crate::framework::{BoxFuture, Effects, PluginError, PodEvent};
use crate::model::PodInfo;

/// [`Effects`] by way of the API server.
pub struct ApiEffects {
    writes: ApiWrites,
    /// By schedulerName.
    recorders: BTreeMap<String, EventRecorder>,
}

impl ApiEffects {
    /// Writes through `writes`, and records events with the recorder of the profile that reports them.
    pub fn new(writes: ApiWrites, recorders: BTreeMap<String, EventRecorder>) -> Self {
        Self { writes, recorders }
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
