//! Pods between `Permit` and `Bind`. Preemption can still cancel them in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::PluginError;

#[derive(Debug, Default)]
enum State {
    #[default]
    Running,
    Cancelled(PluginError),
    Prebound,
}

/// A pod whose `PreBind` plugins have work to do.
/// Follows `pkg/scheduler/framework/runtime/pods_in_prebind_map.go#podInPreBind @v1.36.3`.
#[derive(Debug, Default)]
pub struct PodInPreBind {
    /// Decides the race between cancelling and binding. The lock is never held across an await.
    state: Mutex<State>,
    cancelled: Notify,
}

impl PodInPreBind {
    /// Cancels the binding with this error. Returns `false` if `PreBind` has finished. A repeated call returns `true`.
    pub fn cancel(&self, reason: impl Into<String>) -> bool {
        let mut state = self.lock();
        match *state {
            State::Running => {
                *state = State::Cancelled(PluginError::new(reason.into()));
                self.cancelled.notify_one();
                true
            }
            State::Cancelled(_) => true,
            State::Prebound => false,
        }
    }

    /// Marks `PreBind` as finished, after which the pod cannot be cancelled. Returns the error if the pod was cancelled before.
    pub fn mark_prebound(&self) -> Result<(), PluginError> {
        let mut state = self.lock();
        if let State::Cancelled(reason) = &*state {
            return Err(reason.clone());
        }
        *state = State::Prebound;
        Ok(())
    }

    /// Waits until the pod is cancelled, and returns the error.
    pub async fn cancelled(&self) -> PluginError {
        loop {
            if let State::Cancelled(reason) = &*self.lock() {
                return reason.clone();
            }
            self.cancelled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pods of all profiles between `Permit` and `Bind`, by UID. The lock guards the map and is held for one lookup.
#[derive(Clone, Debug, Default)]
pub struct PodsInPreBind(Arc<Mutex<BTreeMap<String, Arc<PodInPreBind>>>>);

impl PodsInPreBind {
    /// Adds the pod with this UID.
    pub fn add(&self, uid: &str) -> Arc<PodInPreBind> {
        let pod = Arc::<PodInPreBind>::default();
        self.lock().insert(uid.to_owned(), pod.clone());
        pod
    }

    /// Returns the pod with this UID, if it is between `Permit` and `Bind`.
    pub fn get(&self, uid: &str) -> Option<Arc<PodInPreBind>> {
        self.lock().get(uid).cloned()
    }

    /// Removes the pod after `Bind` or after a failure.
    pub fn remove(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PodInPreBind>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelled_pod_is_not_bound_and_bound_pod_not_cancelled() {
        let pods = PodsInPreBind::default();
        let pod = pods.add("a");
        assert!(pod.cancel("preempted by P") && pod.cancel("again"));
        assert_eq!(pod.mark_prebound(), Err(PluginError::new("preempted by P")));
        let other = pods.add("b");
        assert_eq!(other.mark_prebound(), Ok(()));
        assert!(!other.cancel("too late"));
        pods.remove("b");
        assert!(pods.get("b").is_none() && pods.get("a").is_some());
    }
}
