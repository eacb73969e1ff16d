//! What a pod holds between being assumed and being bound.

use std::sync::Arc;

use super::SchedulerContext;
use crate::cache::CacheError;
use crate::framework::{BoxFuture, CycleState, Framework};
use crate::model::PodInfo;

/// An assumed pod and what plugins reserved for it. It ends in [`Self::keep`], once the pod is bound, or in
/// [`Self::unwind`]. Dropping it otherwise is a bug: the pod is forgotten all the same, so that nothing is held for ever,
/// and the bug is counted.
#[must_use = "an assumed pod is bound or unwound"]
pub(super) struct Reservation {
    shared: Arc<SchedulerContext>,
    framework: Arc<Framework>,
    pod: Arc<PodInfo>,
    node: Arc<str>,
    settled: bool,
}

/// What unwinding left to do.
pub(super) struct Unwound {
    /// What plugins want written.
    pub(super) writes: Vec<BoxFuture<'static, ()>>,
    /// Whether the cache knew the pod as assumed.
    pub(super) forgotten: Result<(), CacheError>,
}

impl Reservation {
    /// Assumes the pod on the node.
    pub(super) fn assume(
        shared: &Arc<SchedulerContext>,
        framework: &Arc<Framework>,
        pod: Arc<PodInfo>,
        node: Arc<str>,
    ) -> Result<Self, CacheError> {
        shared.cache.assume_pod(pod.clone())?;
        shared.nominator().delete_nominated_pod_if_exists(&pod);
        Ok(Self { shared: shared.clone(), framework: framework.clone(), pod, node, settled: false })
    }

    /// The assumed pod: a copy with its node name set.
    pub(super) fn pod(&self) -> &Arc<PodInfo> {
        &self.pod
    }

    /// The node.
    pub(super) fn node(&self) -> &Arc<str> {
        &self.node
    }

    /// The pod is bound: the informers will confirm it. Not if they have seen its end before: then nothing would ever take
    /// it out of the cache, so it is let go here, and this is `false`. The API server also binds a pod that has finished,
    /// which to informers is gone, and upstream keeps such a pod for good.
    pub(super) fn keep(mut self) -> bool {
        self.settled = true;
        let known = self.shared.pods.get(self.pod.key());
        if known.is_some_and(|known| known.uid() == self.pod.uid()) {
            return true;
        }
        let _ = self.forget();
        false
    }

    /// Takes everything back: plugins' reservations, last first, and then the assumption.
    /// Follows `pkg/scheduler/schedule_one.go#unreserveAndForget @v1.36.3`.
    pub(super) fn unwind(mut self, state: &CycleState) -> Unwound {
        self.settled = true;
        let writes = self.framework.run_unreserve(state, &self.pod, &self.node);
        Unwound { writes, forgotten: self.forget() }
    }

    fn forget(&self) -> Result<(), CacheError> {
        let forgotten = self.shared.cache.forget_pod(self.pod.pod());
        if let Err(error) = &forgotten {
            tracing::error!(pod = &**self.pod.key(), %error, "ForgetPod failed");
        }
        forgotten
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // What is still being bound when the process ends is given up with it, and counts for whoever comes next.
        if self.settled || self.shared.writes.is_closed() {
            return;
        }
        self.shared.count_bug();
        tracing::error!(pod = &**self.pod.key(), node = &*self.node, "A reservation was dropped without being settled");
        let _ = self.forget();
    }
}
