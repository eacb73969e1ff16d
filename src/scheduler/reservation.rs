//! The reservation of an assumed pod that is not bound yet.

use std::sync::Arc;

use super::SchedulerContext;
use crate::cache::CacheError;
use crate::framework::{BoxFuture, CycleState, Framework};
use crate::model::PodInfo;

/// An assumed pod with the resources that plugins reserved for it. A reservation ends with [`Self::keep`] once the pod is bound,
/// or with [`Self::unwind`]. Dropping a reservation in any other way is a bug. In this case the pod is forgotten, so that its
/// resources become free, and the bug is counted.
#[must_use = "an assumed pod is bound or unwound"]
pub(super) struct Reservation {
    shared: Arc<SchedulerContext>,
    framework: Arc<Framework>,
    pod: Arc<PodInfo>,
    node: Arc<str>,
    settled: bool,
}

/// The remaining work after a reservation was undone.
pub(super) struct Unwound {
    /// API writes that plugins ask for.
    pub(super) writes: Vec<BoxFuture<'static, ()>>,
    /// Whether the assumed pod could be removed from the cache.
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

    /// Returns the assumed pod: a copy with its node name set.
    pub(super) fn pod(&self) -> &Arc<PodInfo> {
        &self.pod
    }

    /// Returns the name of the node.
    pub(super) fn node(&self) -> &Arc<str> {
        &self.node
    }

    /// Ends the reservation of a bound pod, which stays in the cache until the informers confirm it. Returns `false` if the
    /// informers have already seen the pod's deletion. Nothing would remove such a pod from the cache later, so it is forgotten
    /// here. This also happens if the API server binds a pod that has finished, because the informers treat it as deleted.
    /// Upstream keeps such a pod forever.
    pub(super) fn keep(mut self) -> bool {
        self.settled = true;
        let known = self.shared.pods.get(self.pod.key());
        if known.is_some_and(|known| known.uid() == self.pod.uid()) {
            return true;
        }
        let _ = self.forget();
        false
    }

    /// Undoes the reservation: runs `Unreserve` of the plugins in reverse order, and then forgets the assumed pod.
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
        // When the process exits, reservations of unfinished bindings are dropped. The next leader finds the pods as the API
        // server has them.
        if self.settled || self.shared.writes.is_closed() {
            return;
        }
        self.shared.count_bug();
        tracing::error!(
            pod = &**self.pod.key(),
            node = &*self.node,
            "Assumed pod was neither bound nor forgotten, forgetting it"
        );
        let _ = self.forget();
    }
}
