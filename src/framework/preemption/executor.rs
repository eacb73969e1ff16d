//! Executes a preemption: evicts the victims, clears nominations of less important pods, and keeps the preemptor out of activeQ
//! meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use futures::stream;

use super::super::{Handle, PluginError, PodEvent};
use super::Candidate;
use crate::config::Gate;
use crate::k8s::Pod;
use crate::listers::Lister;
use crate::metrics::{Operation, Outcome};
use crate::model::PodInfo;

/// Number of victims evicted in parallel, equal to upstream's default number of workers.
const AT_ONCE: usize = 16;

/// Progress of an asynchronous preemption. It starts as `Others`, and its entry is removed at the end.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// Nominations are cleared and all victims but the last are evicted. `Last` comes next, unless an eviction fails.
    Others,
    /// The last victim, given by its key, is evicted. The preemption counts as finished once this victim is terminating, even
    /// if the task has not noticed yet, because the event that makes the preemptor schedulable may be the next one.
    Last(String),
}

/// Evicts victims for preemptors. Cheap to clone.
/// Follows `pkg/scheduler/framework/preemption/executor.go#Executor @v1.36.3`.
#[derive(Clone)]
pub struct Executor {
    plugin: Arc<str>,
    handle: Handle,
    pods: Lister<Pod>,
    /// Whether evictions run in a task, so that the cycle does not wait for them.
    asynchronous: bool,
    /// Progress of asynchronous preemptions by the preemptor's UID. The lock guards the map and is held for one lookup. It may
    /// be taken while the queue's lock is held.
    running: Arc<Mutex<BTreeMap<String, Progress>>>,
}

/// A preemption to execute.
struct Order {
    preemptor: Arc<PodInfo>,
    node: Arc<str>,
    /// The victims that are not terminating already.
    victims: Vec<Arc<PodInfo>>,
}

impl Executor {
    pub(super) fn new(plugin: Arc<str>, handle: &Handle, pods: Lister<Pod>) -> Self {
        let asynchronous = handle.gates().enabled(Gate::SchedulerAsyncPreemption);
        Self { plugin, handle: handle.clone(), pods, asynchronous, running: Arc::default() }
    }

    /// Whether victims of the pod with this UID are still being evicted. May be called at any time, also under the queue's
    /// lock.
    /// Follows `pkg/scheduler/framework/preemption/executor.go#Executor.IsPodRunningPreemption @v1.36.3`.
    pub fn is_running(&self, preemptor: &str) -> bool {
        // The guard is a temporary, so the lock is released before the victim is looked up.
        let progress = self.lock().get(preemptor).cloned();
        match progress {
            None => false,
            Some(Progress::Others) => true,
            Some(Progress::Last(victim)) => self.pods.get(&victim).is_some_and(|victim| !victim.is_terminating()),
        }
    }

    /// Evicts the candidate's victims for the pod. The evictions run in a task, or before this function returns if
    /// `SchedulerAsyncPreemption` is off. An error means that a victim could not be evicted.
    pub(super) fn carry_out(&self, candidate: &Candidate, preemptor: &Arc<PodInfo>) -> Result<(), PluginError> {
        let victims: Vec<_> =
            candidate.victims.iter().filter(|victim| !victim.pod().is_terminating()).cloned().collect();
        if self.asynchronous && victims.is_empty() {
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "a node has few pods")]
        self.handle.metrics().preemption_victims().observe(candidate.victims.len() as f64);
        let order = Order { preemptor: preemptor.clone(), node: candidate.node.clone(), victims };
        let (this, effects) = (self.clone(), self.handle.effects());
        if !self.asynchronous {
            return effects.wait(Box::pin(async move { this.run_synchronously(&order).await }));
        }
        self.lock().insert(preemptor.uid().to_owned(), Progress::Others);
        effects.spawn(Box::pin(async move { this.run_asynchronously(&order).await }));
        Ok(())
    }

    /// Evicts all victims, then clears nominations, and waits for both.
    /// Follows `pkg/scheduler/framework/preemption/executor.go#Executor.prepareCandidate @v1.36.3`.
    async fn run_synchronously(&self, order: &Order) -> Result<(), PluginError> {
        self.send_all_away(order, &order.victims).await?;
        // The victims are already evicted, so a remaining nomination does little harm.
        let _ = self.take_nominations_back(order).await;
        Ok(())
    }

    /// Clears nominations, evicts the victims, and removes the preemptor's entry from `running`.
    /// Follows `pkg/scheduler/framework/preemption/executor.go#Executor.prepareCandidateAsync @v1.36.3`.
    async fn run_asynchronously(&self, order: &Order) {
        let preemptor = &order.preemptor;
        let cleared = self.take_nominations_back(order).await;
        let sent = self.send_last_away_last(order).await;
        self.lock().remove(preemptor.uid());
        if let Err(error) = &sent {
            tracing::error!(pod = &**preemptor.key(), node = &*order.node, %error, "Error occurred during async preemption");
        }
        if cleared.is_err() || sent.is_err() {
            // After a failure there may be no event that would move the preemptor out of unschedulablePods.
            self.handle.activate(&[preemptor.key().to_string()]);
        }
        // Upstream always reports success and a duration of 0 here, because it evaluates both before the work starts.
        self.handle.metrics().preemption_goroutine(Outcome::Success, 0.0);
    }

    /// Evicts the last victim after all others, so the preemption is known to be finished as soon as this victim is
    /// terminating.
    async fn send_last_away_last(&self, order: &Order) -> Result<(), PluginError> {
        let Some((last, others)) = order.victims.split_last() else { return Ok(()) };
        self.send_all_away(order, others).await?;
        self.lock().insert(order.preemptor.uid().to_owned(), Progress::Last(last.key().to_string()));
        self.send_away(order, last.clone()).await
    }

    /// Evicts victims in parallel. After the first failure, no further eviction starts.
    async fn send_all_away(&self, order: &Order, victims: &[Arc<PodInfo>]) -> Result<(), PluginError> {
        if victims.is_empty() {
            return Ok(());
        }
        let _running = self.handle.metrics().running(Operation::DefaultPreemption);
        let victims = stream::iter(victims.to_vec());
        let mut sending = victims.map(|victim| self.send_away(order, victim)).buffer_unordered(AT_ONCE);
        while let Some(sent) = sending.next().await {
            sent?;
        }
        Ok(())
    }

    /// Evicts one victim from its node. A victim that waits on `Permit` or is between `Permit` and `Bind` is stopped in memory.
    /// Any other victim gets the `DisruptionTarget` condition and is deleted.
    async fn send_away(&self, order: &Order, victim: Arc<PodInfo>) -> Result<(), PluginError> {
        let mut note = format!("Preempted by pod {} on node {}", order.preemptor.uid(), order.node);
        if self.stops_in_memory(&victim) {
            note.push_str(" (in kube-scheduler memory).");
        } else {
            let gone = !self.handle.effects().evict(victim.pod(), order.preemptor.pod()).await?;
            if gone {
                tracing::info!(victim = &**victim.key(), node = &*order.node, "Victim Pod is already deleted");
                return Ok(());
            }
        }
        let (pod, victim_key, node) = (&**order.preemptor.key(), &**victim.key(), &*order.node);
        tracing::info!(pod, victim = victim_key, node, "Preemptor Pod preempted victim Pod");
        let event = PodEvent {
            regarding: victim.pod(),
            warning: false,
            reason: "Preempted",
            action: "Preempting",
            note: &note,
        };
        self.handle.effects().record(self.handle.profile_name(), event);
        Ok(())
    }

    fn stops_in_memory(&self, victim: &PodInfo) -> bool {
        if let Some(waiting) = self.handle.waiting_pods().get(victim.uid()) {
            return waiting.preempt(&self.plugin, "preempted");
        }
        let on_its_way = self.handle.pods_in_pre_bind().get(victim.uid());
        on_its_way.is_some_and(|pod| pod.cancel(format!("preempted by {}", self.plugin)))
    }

    /// Clears the nominations of less important pods for this node, because they may not fit there any more and should find
    /// another node soon. A failure for one pod does not stop the others.
    async fn take_nominations_back(&self, order: &Order) -> Result<(), PluginError> {
        let nominated = self.handle.nominator().map(|nominator| nominator.nominated_pods_for_node(&order.node));
        let mut failed = Ok(());
        for pod in nominated.into_iter().flatten() {
            // Only a nomination in the pod's status can be cleared.
            let less_important = pod.priority() < order.preemptor.priority();
            if !less_important || pod.pod().nominated_node_name().is_none() {
                continue;
            }
            if let Err(error) = self.handle.effects().clear_nomination(pod.pod()).await {
                let (pod, node) = (&**pod.key(), &*order.node);
                tracing::error!(pod, node, %error, "Cannot clear 'NominatedNodeName' field");
                failed = Err(error);
            }
        }
        failed
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Progress>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executor({})", self.plugin)
    }
}
