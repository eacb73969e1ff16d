//! Carries a preemption out: sends victims away, takes back nominations that have become pointless, and keeps the preemptor
//! out of activeQ meanwhile.

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

/// How many victims are sent away at the same time, like upstream's workers at their default number.
const AT_ONCE: usize = 16;

/// How far an asynchronous preemption has come. It begins in `Others` and ends by being forgotten.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// Nominations are taken back, and all victims but the last are sent away. `Last` is next, unless one of them fails.
    Others,
    /// The last victim, by its key, is sent away. Once it is known to be ending the preemption counts as over, even if its
    /// task has not come to that conclusion: the event that helps the preemptor may be the very next one.
    Last(String),
}

/// Sends victims away. Cheap to clone.
/// Follows `pkg/scheduler/framework/preemption/executor.go#Executor @v1.36.3`.
#[derive(Clone)]
pub struct Executor {
    plugin: Arc<str>,
    handle: Handle,
    pods: Lister<Pod>,
    /// Whether cycles do not wait for the writes.
    asynchronous: bool,
    /// Asynchronous preemptions by the preemptor's UID. The lock guards the map, is held for one look-up, and is taken under
    /// the queue's.
    running: Arc<Mutex<BTreeMap<String, Progress>>>,
}

/// A preemption to carry out.
struct Order {
    preemptor: Arc<PodInfo>,
    node: Arc<str>,
    /// Those that are not ending anyway.
    victims: Vec<Arc<PodInfo>>,
}

impl Executor {
    pub(super) fn new(plugin: Arc<str>, handle: &Handle, pods: Lister<Pod>) -> Self {
        let asynchronous = handle.gates().enabled(Gate::SchedulerAsyncPreemption);
        Self { plugin, handle: handle.clone(), pods, asynchronous, running: Arc::default() }
    }

    /// Whether victims of the pod with this UID are still being sent away. Any time, also under the queue's lock.
    /// Follows `pkg/scheduler/framework/preemption/executor.go#Executor.IsPodRunningPreemption @v1.36.3`.
    pub fn is_running(&self, preemptor: &str) -> bool {
        // Not a statement of its own: the lock is not held while the victim is looked up.
        let progress = self.lock().get(preemptor).cloned();
        match progress {
            None => false,
            Some(Progress::Others) => true,
            Some(Progress::Last(victim)) => self.pods.get(&victim).is_some_and(|victim| !victim.is_terminating()),
        }
    }

    /// Sends the candidate's victims away for the pod: beside the scheduling thread, or before this returns if
    /// `SchedulerAsyncPreemption` is off. An error means that a victim could not be sent away.
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

    /// Follows `pkg/scheduler/framework/preemption/executor.go#Executor.prepareCandidate @v1.36.3`.
    async fn run_synchronously(&self, order: &Order) -> Result<(), PluginError> {
        self.send_all_away(order, &order.victims).await?;
        // The victims are on their way out all the same, so a nomination that stays does little harm.
        let _ = self.take_nominations_back(order).await;
        Ok(())
    }

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
            // Nothing may ever happen that would bring the preemptor back.
            self.handle.activate(&[preemptor.key().to_string()]);
        }
        // Upstream's labels and durations are fixed before there is anything to measure; dashboards know no others.
        self.handle.metrics().preemption_goroutine(Outcome::Success, 0.0);
    }

    /// The last victim goes alone and last, so that the preemption is known to be over as soon as that victim is ending.
    async fn send_last_away_last(&self, order: &Order) -> Result<(), PluginError> {
        let Some((last, others)) = order.victims.split_last() else { return Ok(()) };
        self.send_all_away(order, others).await?;
        self.lock().insert(order.preemptor.uid().to_owned(), Progress::Last(last.key().to_string()));
        self.send_away(order, last.clone()).await
    }

    /// Sends victims away together; the first failure gives up those that are not under way yet.
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

    /// Sends one victim away. One that waits on Permit, or works towards being bound, is stopped in memory; any other is
    /// marked and deleted.
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

    /// Takes the node back from less important pods that it is held for: they may not fit there any more, and look for
    /// another one all the sooner. One that fails does not keep the others.
    async fn take_nominations_back(&self, order: &Order) -> Result<(), PluginError> {
        let nominated = self.handle.nominator().map(|nominator| nominator.nominated_pods_for_node(&order.node));
        let mut failed = Ok(());
        for pod in nominated.into_iter().flatten() {
            // Only a nomination that was written can be taken back.
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
