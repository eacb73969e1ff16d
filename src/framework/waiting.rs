//! Pods that wait at Permit.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Code, PluginError, Rejection};
use crate::clock::{Clock, Mono};
use crate::config::duration::GoDuration;
use crate::model::PodInfo;

/// The longest that a plugin may let a pod wait. Follows `pkg/scheduler/framework/runtime/framework.go#maxTimeout @v1.36.3`.
pub const MAX_PERMIT_TIMEOUT: Duration = Duration::from_mins(15);

/// How the wait of a pod ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitDecision {
    /// Every plugin allowed it.
    Allowed,
    /// A plugin (or, with an empty name, the scheduler) rejected it, or its time ran out.
    Rejected {
        /// Whose decision it was.
        plugin: Arc<str>,
        /// Why.
        rejection: Rejection,
    },
    /// It was preempted: an error, so that the pod is retried and not marked unschedulable.
    Preempted {
        /// Whose decision it was.
        plugin: Arc<str>,
        /// Why.
        error: PluginError,
    },
}

impl WaitDecision {
    /// The decision's status code.
    pub fn code(&self) -> Code {
        match self {
            Self::Allowed => Code::Success,
            Self::Rejected { rejection, .. } => rejection.code(),
            Self::Preempted { .. } => Code::Error,
        }
    }
}

#[derive(Debug)]
struct State {
    /// By plugin: when its patience ends, and how long that was.
    pending: BTreeMap<Arc<str>, (Mono, Duration)>,
    decision: Option<WaitDecision>,
}

/// A pod that waits at Permit. Follows `pkg/scheduler/framework/runtime/waiting_pods_map.go#waitingPod @v1.36.3`.
#[derive(Debug)]
pub struct WaitingPod {
    pod: Arc<PodInfo>,
    /// Guards who is still to be waited for, and the decision; never held across an await.
    state: Mutex<State>,
    decided: Notify,
}

impl WaitingPod {
    fn new(pod: Arc<PodInfo>, timeouts: impl IntoIterator<Item = (Arc<str>, Duration)>, now: Mono) -> Self {
        let pending = timeouts.into_iter().map(|(plugin, timeout)| (plugin, (now + timeout, timeout))).collect();
        Self { pod, state: Mutex::new(State { pending, decision: None }), decided: Notify::new() }
    }

    /// The pod.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.pod
    }

    /// The plugins that have not allowed the pod yet, sorted.
    pub fn pending_plugins(&self) -> Vec<Arc<str>> {
        self.lock().pending.keys().cloned().collect()
    }

    /// `plugin` allows the pod; once all have, it goes on.
    pub fn allow(&self, plugin: &str) {
        let mut state = self.lock();
        state.pending.remove(plugin);
        if state.pending.is_empty() {
            self.decide(&mut state, WaitDecision::Allowed);
        }
    }

    /// `plugin` rejects the pod. False if the wait was over already.
    pub fn reject(&self, plugin: &str, message: impl Into<String>) -> bool {
        let rejection = Rejection::unschedulable(message.into());
        self.decide(&mut self.lock(), WaitDecision::Rejected { plugin: Arc::from(plugin), rejection })
    }

    /// `plugin` preempts the pod. False if the wait was over already.
    pub fn preempt(&self, plugin: &str, message: impl Into<String>) -> bool {
        let error = PluginError::new(message.into());
        self.decide(&mut self.lock(), WaitDecision::Preempted { plugin: Arc::from(plugin), error })
    }

    /// Waits for the decision, or for the first plugin whose patience ends.
    pub async fn wait(&self, clock: &Clock) -> WaitDecision {
        loop {
            let (deadline, timeout, plugin) = {
                let state = self.lock();
                if let Some(decision) = &state.decision {
                    return decision.clone();
                }
                let (plugin, (deadline, timeout)) = state
                    .pending
                    .iter()
                    .min_by_key(|(_, (deadline, _))| *deadline)
                    .expect("undecided pods wait for one");
                (*deadline, *timeout, plugin.clone())
            };
            tokio::select! {
                biased;
                () = self.decided.notified() => {}
                () = clock.sleep_until(deadline) => {
                    let waited = GoDuration::from(timeout);
                    self.reject(&plugin, format!("rejected due to timeout after waiting {waited} at plugin {plugin}"));
                }
            }
        }
    }

    /// The first decision counts.
    fn decide(&self, state: &mut State, decision: WaitDecision) -> bool {
        if state.decision.is_some() {
            return false;
        }
        state.decision = Some(decision);
        self.decided.notify_one();
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pods of all profiles that wait at Permit, by UID. The lock guards the map and is held for one look-up.
#[derive(Clone, Debug, Default)]
pub struct WaitingPods(Arc<Mutex<BTreeMap<String, Arc<WaitingPod>>>>);

impl WaitingPods {
    /// Lets a pod wait for these plugins. `timeouts` has to name one at least; each is cut to [`MAX_PERMIT_TIMEOUT`].
    pub fn add(&self, pod: &Arc<PodInfo>, timeouts: Vec<(Arc<str>, Duration)>, now: Mono) -> Arc<WaitingPod> {
        assert!(!timeouts.is_empty(), "a pod waits for a plugin");
        let timeouts = timeouts.into_iter().map(|(plugin, timeout)| (plugin, timeout.min(MAX_PERMIT_TIMEOUT)));
        let waiting = Arc::new(WaitingPod::new(pod.clone(), timeouts, now));
        self.lock().insert(pod.uid().to_owned(), waiting.clone());
        waiting
    }

    /// The pod with this UID, if it waits.
    pub fn get(&self, uid: &str) -> Option<Arc<WaitingPod>> {
        self.lock().get(uid).cloned()
    }

    /// Ends the wait of the pod with this UID from the scheduler's side. False if it does not wait.
    pub fn reject(&self, uid: &str, message: &str) -> bool {
        self.get(uid).is_some_and(|waiting| waiting.reject("", message))
    }

    /// The pod waits no more.
    pub fn remove(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// All pods that wait, by UID.
    pub fn all(&self) -> Vec<Arc<WaitingPod>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<WaitingPod>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
