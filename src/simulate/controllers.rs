//! The rest of a cluster while the scheduler works: deleted pods terminate, their owners replace them, and the status of
//! disruption budgets is updated.
//!
//! There are no kubelets: a pod runs from the moment it is bound, and takes its whole grace period to terminate.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::budgets::Budgets;
use super::report::{PreemptedReport, assigned_node};
use super::workloads::{self, ExpandError};
use crate::apiserver::{ApiServer, DeleteOptions, Object, kinds};

/// Finalizer that the job controller removes from a pod once it has counted it.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// A terminating pod, with the time of its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TerminatingPod {
    at: Timestamp,
    namespace: String,
    name: String,
    uid: String,
}

/// The kubelets and controllers of a simulated cluster.
#[derive(Default)]
pub(super) struct Controllers {
    /// The server's number of deletions and its version at the last check.
    seen: (u64, u64),
    /// Terminating pods, the earliest end first.
    ending: BTreeSet<TerminatingPod>,
    budgets: Budgets,
    preempted: Vec<PreemptedReport>,
    /// UIDs of the preempted pods.
    known: BTreeSet<String>,
}

impl Controllers {
    /// Creates the controllers of a cluster. The grace period of pods that are already terminating begins now.
    pub(super) fn new(server: &ApiServer, now: Timestamp) -> Self {
        let mut controllers = Self { seen: (server.pod_deletions(), server.version()), ..Self::default() };
        for pod in server.list(&kinds::PODS) {
            controllers.watch(&pod, Some(now));
        }
        controllers
    }

    /// Returns the number of terminating pods.
    pub(super) fn ending(&self) -> usize {
        self.ending.len()
    }

    /// Returns when the next terminating pod ends.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.ending.first().map(|ending| ending.at)
    }

    /// Returns the preempted pods in the order of their preemption.
    pub(super) fn preempted(&self) -> &[PreemptedReport] {
        &self.preempted
    }

    /// Runs the controllers, and ends the pods whose end is due. Returns whether anything changed.
    pub(super) fn act(&mut self, server: &ApiServer, now: Timestamp) -> Result<bool, ExpandError> {
        let noticed = self.notice_deletions(server);
        let ended = self.end_pods(server, now);
        let made = if noticed || ended { workloads::expand(server)? } else { 0 };
        let refreshed = self.refresh(server, now);
        Ok(noticed || ended || made > 0 || refreshed)
    }

    /// Updates the status of disruption budgets. Returns whether any status has changed.
    pub(super) fn refresh(&mut self, server: &ApiServer, now: Timestamp) -> bool {
        self.budgets.refresh(server, now)
    }

    /// Checks for pods that were deleted since the last check.
    fn notice_deletions(&mut self, server: &ApiServer) -> bool {
        let (deletions, version) = (server.pod_deletions(), server.version());
        if deletions == self.seen.0 {
            self.seen.1 = version;
            return false;
        }
        let changed = server.faults().history(&kinds::PODS, self.seen.1);
        for pod in changed.unwrap_or_else(|| server.list(&kinds::PODS)) {
            let current = server.get(&kinds::PODS, pod.namespace(), pod.name());
            match current.filter(|current| current.uid() == pod.uid()) {
                Some(pod) => self.watch(&pod, None),
                // The pod was deleted without a grace period.
                None => self.note_victim(&pod),
            }
        }
        self.seen = (deletions, version);
        true
    }

    /// Tracks a pod that is being deleted. The pod ends at its deletion timestamp or, if `since` is given, at the end of the
    /// grace period that begins then. A pod without a node is not tracked, because no kubelet would end it.
    fn watch(&mut self, pod: &Object, since: Option<Timestamp>) {
        let value = pod.value();
        let Some(deleted) = value["metadata"]["deletionTimestamp"].as_str() else { return };
        if assigned_node(pod).is_none() {
            return;
        }
        let grace = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        let at = match since {
            Some(since) => since.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX),
            None => deleted.parse().unwrap_or(Timestamp::MIN),
        };
        let (namespace, name) = (pod.namespace().to_owned(), pod.name().to_owned());
        self.ending.insert(TerminatingPod { at, namespace, name, uid: pod.uid().to_owned() });
        self.note_victim(pod);
    }

    /// Records the pod if it was preempted.
    fn note_victim(&mut self, pod: &Object) {
        if is_victim(&pod.value()) && assigned_node(pod).is_some() && self.known.insert(pod.uid().to_owned()) {
            self.preempted.push(PreemptedReport::new(pod));
        }
    }

    /// Ends the pods whose grace period is over.
    fn end_pods(&mut self, server: &ApiServer, now: Timestamp) -> bool {
        let mut ended = false;
        while let Some(ending) = self.ending.first().filter(|ending| ending.at <= now).cloned() {
            self.ending.remove(&ending);
            ended |= end(server, &ending);
        }
        self.seen = (server.pod_deletions(), server.version());
        ended
    }
}

fn is_victim(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        condition["type"] == "DisruptionTarget"
            && condition["status"] == "True"
            && condition["reason"] == "PreemptionByScheduler"
    })
}

/// Ends a pod as its kubelet and the job controller would. The pod is deleted unless another finalizer keeps it.
fn end(server: &ApiServer, ending: &TerminatingPod) -> bool {
    let (namespace, name) = (&ending.namespace, &ending.name);
    let Some(pod) = server.get(&kinds::PODS, namespace, name).filter(|pod| pod.uid() == ending.uid) else {
        return false;
    };
    if !pod.value()["metadata"]["finalizers"].is_null() {
        let failed = server.patch_status(&kinds::PODS, namespace, name, json!({"status": {"phase": "Failed"}}));
        let mut value = failed.unwrap_or(pod).value();
        if let Some(finalizers) = value["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| finalizer != JOB_TRACKING);
        }
        // If the server rejects the update, the pod has failed and no longer uses resources.
        let _ = server.update(value);
    }
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    server.delete(&kinds::PODS, namespace, name, &options).is_ok()
}
