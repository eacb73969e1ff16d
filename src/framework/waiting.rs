//! Pods that wait at `Permit`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Code, PluginError, Rejection};
use crate::clock::{Clock, Mono};
use crate::go::duration::GoDuration;
use crate::model::PodInfo;

/// Longest time for which a plugin may make a pod wait. Follows
/// `pkg/scheduler/framework/runtime/framework.go#maxTimeout @v1.36.3`.
pub const MAX_PERMIT_TIMEOUT: Duration = Duration::from_mins(15);

/// The decision that ends a pod's wait at `Permit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitDecision {
    /// Every plugin allowed the pod.
    Allowed,
    /// A plugin or the scheduler rejected the pod, or a plugin's timeout expired.
    Rejected {
        /// Name of the plugin that rejected the pod, or whose timeout expired. Empty if the scheduler rejected the pod.
        plugin: Arc<str>,
        /// The rejection with its reasons.
        rejection: Rejection,
    },
    /// The pod was preempted. This counts as an error, so the pod is retried instead of being marked unschedulable.
    Preempted {
        /// Name of the plugin that preempted the pod.
        plugin: Arc<str>,
        /// Error with the reason.
        error: PluginError,
    },
}

impl WaitDecision {
    /// Returns the status code of the decision.
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
    /// Deadline and timeout of each plugin that the pod still waits for.
    pending: BTreeMap<Arc<str>, (Mono, Duration)>,
    decision: Option<WaitDecision>,
}

/// A pod that waits at `Permit`. Follows `pkg/scheduler/framework/runtime/waiting_pods_map.go#waitingPod @v1.36.3`.
#[derive(Debug)]
pub struct WaitingPod {
    pod: Arc<PodInfo>,
    /// The pending plugins and the decision. The lock is never held across an await.
    state: Mutex<State>,
    /// Notifies the waiting task that a plugin allowed the pod, or that the decision was made.
    changed: Notify,
}

impl WaitingPod {
    fn new(pod: Arc<PodInfo>, timeouts: impl IntoIterator<Item = (Arc<str>, Duration)>, now: Mono) -> Self {
        let pending = timeouts.into_iter().map(|(plugin, timeout)| (plugin, (now + timeout, timeout))).collect();
        Self { pod, state: Mutex::new(State { pending, decision: None }), changed: Notify::new() }
    }

    /// Returns the waiting pod.
    pub fn pod(&self) -> &Arc<PodInfo> {
        &self.pod
    }

    /// Returns the plugins that have not allowed the pod yet, sorted.
    pub fn pending_plugins(&self) -> Vec<Arc<str>> {
        self.lock().pending.keys().cloned().collect()
    }

    /// Allows the pod on behalf of `plugin`. Once all plugins have allowed it, the wait ends.
    pub fn allow(&self, plugin: &str) {
        let mut state = self.lock();
        state.pending.remove(plugin);
        if state.pending.is_empty() {
            self.decide(&mut state, WaitDecision::Allowed);
        } else {
            self.changed.notify_one();
        }
    }

    /// Rejects the pod on behalf of `plugin`. Returns `false` if the wait was over already.
    pub fn reject(&self, plugin: &str, message: impl Into<String>) -> bool {
        let rejection = Rejection::unschedulable(message.into());
        self.decide(&mut self.lock(), WaitDecision::Rejected { plugin: Arc::from(plugin), rejection })
    }

    /// Preempts the pod on behalf of `plugin`. Returns `false` if the wait was over already.
    pub fn preempt(&self, plugin: &str, message: impl Into<String>) -> bool {
        let error = PluginError::new(message.into());
        self.decide(&mut self.lock(), WaitDecision::Preempted { plugin: Arc::from(plugin), error })
    }

    /// Waits for the decision, or until the first plugin's timeout expires.
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
                () = self.changed.notified() => {}
                () = clock.sleep_until(deadline) => self.expire(plugin, timeout),
            }
        }
    }

    /// Rejects the pod because the plugin's timeout expired, unless the plugin has allowed the pod meanwhile.
    fn expire(&self, plugin: Arc<str>, timeout: Duration) {
        let mut state = self.lock();
        if state.pending.contains_key(&plugin) {
            let waited = GoDuration::from(timeout);
            let message = format!("rejected due to timeout after waiting {waited} at plugin {plugin}");
            let rejection = Rejection::unschedulable(message);
            self.decide(&mut state, WaitDecision::Rejected { plugin, rejection });
        }
    }

    /// Sets the decision, unless there is one already. Returns whether it was set.
    fn decide(&self, state: &mut State, decision: WaitDecision) -> bool {
        if state.decision.is_some() {
            return false;
        }
        state.decision = Some(decision);
        self.changed.notify_one();
        true
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pods of all profiles that wait at `Permit`, by UID. The lock guards the map and is held for one lookup.
#[derive(Clone, Debug, Default)]
pub struct WaitingPods(Arc<Mutex<BTreeMap<String, Arc<WaitingPod>>>>);

impl WaitingPods {
    /// Makes a pod wait for these plugins. `timeouts` must have at least one plugin. Each timeout is cut to
    /// [`MAX_PERMIT_TIMEOUT`].
    pub fn add(&self, pod: &Arc<PodInfo>, timeouts: Vec<(Arc<str>, Duration)>, now: Mono) -> Arc<WaitingPod> {
        assert!(!timeouts.is_empty(), "a pod waits for a plugin");
        let timeouts = timeouts.into_iter().map(|(plugin, timeout)| (plugin, timeout.min(MAX_PERMIT_TIMEOUT)));
        let waiting = Arc::new(WaitingPod::new(pod.clone(), timeouts, now));
        self.lock().insert(pod.uid().to_owned(), waiting.clone());
        waiting
    }

    /// Returns the pod with this UID, if it waits.
    pub fn get(&self, uid: &str) -> Option<Arc<WaitingPod>> {
        self.lock().get(uid).cloned()
    }

    /// Rejects the waiting pod with this UID on behalf of the scheduler. Returns `false` if the pod does not wait.
    pub fn reject(&self, uid: &str, message: &str) -> bool {
        self.get(uid).is_some_and(|waiting| waiting.reject("", message))
    }

    /// Removes the pod with this UID after its wait has ended.
    pub fn remove(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Returns all waiting pods, sorted by UID.
    pub fn all(&self) -> Vec<Arc<WaitingPod>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<WaitingPod>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SimClock;
    use crate::testing::pod;

    fn waiting(timeouts: &[(&str, u64)]) -> (SimClock, WaitingPods, Arc<WaitingPod>) {
        let (clock, pods) = (SimClock::new(Timestamp::UNIX_EPOCH), WaitingPods::default());
        let timeouts = timeouts.iter().map(|(plugin, seconds)| (Arc::from(*plugin), Duration::from_secs(*seconds)));
        let waiting = pods.add(&pod("p").info(), timeouts.collect(), clock.now().mono);
        (clock, pods, waiting)
    }

    fn rejected(plugin: &str, message: &str) -> WaitDecision {
        let rejection = Rejection::unschedulable(message.to_owned());
        WaitDecision::Rejected { plugin: Arc::from(plugin), rejection }
    }

    #[test]
    fn first_decision_on_a_waiting_pod_is_final() {
        let check = |decide: fn(&WaitingPod), expected: WaitDecision| {
            let (clock, _, waiting) = waiting(&[("A", 5), ("B", 5)]);
            decide(&waiting);
            assert_eq!(waiting.wait(&clock.clock()).now_or_never(), Some(expected));
            assert!(!waiting.reject("A", "late") && !waiting.preempt("A", "late"));
        };
        let error = PluginError::new("preempted");
        check(|pod| ["A", "B"].into_iter().for_each(|plugin| pod.allow(plugin)), WaitDecision::Allowed);
        check(|pod| assert!(pod.reject("A", "no")), rejected("A", "no"));
        check(|pod| assert!(pod.preempt("B", "preempted")), WaitDecision::Preempted { plugin: "B".into(), error });
    }

    #[test]
    fn allow_cancels_the_plugins_timeout() {
        let (clock, _, waiting) = waiting(&[("A", 1), ("B", 3)]);
        let reading = clock.clock();
        let mut wait = std::pin::pin!(waiting.wait(&reading));
        assert_eq!(wait.as_mut().now_or_never(), None);
        waiting.allow("A");
        clock.advance(Duration::from_secs(2));
        assert_eq!(wait.as_mut().now_or_never(), None);
        assert_eq!(waiting.pending_plugins(), ["B".into()]);
        clock.advance(Duration::from_secs(1));
        let message = "rejected due to timeout after waiting 3s at plugin B";
        assert_eq!(wait.now_or_never(), Some(rejected("B", message)));
    }

    #[test]
    fn waits_are_rejected_by_uid_and_last_at_most_15_minutes() {
        let (clock, pods, waiting) = waiting(&[("A", 3600)]);
        let reading = clock.clock();
        let mut wait = std::pin::pin!(waiting.wait(&reading));
        assert_eq!(wait.as_mut().now_or_never(), None);
        assert_eq!(clock.next_deadline(), Some(Mono::ZERO + MAX_PERMIT_TIMEOUT));
        assert!(!pods.reject("other", "removed") && pods.reject("p", "removed"));
        assert_eq!(wait.now_or_never(), Some(rejected("", "removed")));
        pods.remove("p");
        assert!(pods.get("p").is_none() && pods.all().is_empty());
    }
}
