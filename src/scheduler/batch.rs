//! Opportunistic batching: the results of one pod's evaluation are used for the next equal pods. Pods are equal if they have the
//! same signature.
//!
//! If two equal pods are scheduled one directly after the other, every node gets the same score for both, except the node that
//! the first pod took. If that node has no room for the second pod, the best of the remaining nodes is the best of all nodes.
//! Then neither filters nor scores have to run on the remaining nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::search::Choice;
use crate::clock::Mono;
use crate::framework::{CycleContext, Framework, NodeRef, Ranking};
use crate::metrics::{BatchAttempt, BatchFlush};

/// Maximum age of results. Follows `pkg/scheduler/framework/runtime/batch.go#maxBatchAge @v1.36.3`.
const MAX_AGE: Duration = Duration::from_millis(500);

/// The results that one profile keeps for the next pod.
/// Follows `pkg/scheduler/framework/runtime/batch.go#OpportunisticBatch @v1.36.3`.
#[derive(Default)]
pub(super) struct Batch {
    /// Number of the last cycle in which a node was chosen. A failed cycle does not update it, so the next cycle finds a gap
    /// between this number and its own.
    last_cycle: i64,
    /// The node that was chosen in that cycle.
    last_node: Arc<str>,
    results: Option<Results>,
}

/// The outcome of a search, kept for equal pods.
struct Results {
    signature: Arc<str>,
    since: Mono,
    /// Names of the feasible nodes, by their position in the ranking.
    nodes: Vec<Arc<str>>,
    /// Ranking of the nodes that no pod has taken yet.
    others: Ranking,
}

/// The cycle number and the signature of a pod. A pod without a signature is equal to no other pod.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) cycle: i64,
    pub(super) signature: Option<&'a Arc<str>>,
}

impl Batch {
    /// Returns the reason why the results cannot be used for this pod, if there is one. Unusable results are kept for later
    /// pods, until the next successful evaluation replaces them.
    /// Follows `pkg/scheduler/framework/runtime/batch.go#batchStateCompatible @v1.36.3`.
    fn unusable(
        &self,
        results: &Results,
        framework: &Framework,
        cx: &CycleContext<'_>,
        attempt: Attempt<'_>,
        now: Mono,
    ) -> Option<BatchFlush> {
        if attempt.cycle != self.last_cycle + 1 {
            return Some(BatchFlush::PodSkipped);
        }
        if attempt.signature != Some(&results.signature) {
            return Some(BatchFlush::PodIncompatible);
        }
        if now > results.since + MAX_AGE {
            return Some(BatchFlush::Expired);
        }
        let Some(node) = NodeRef::named(cx.snapshot, &self.last_node) else { return Some(BatchFlush::NodeMissing) };
        // The node's new score is unknown. This does not matter if the node is full, because it then cannot be chosen.
        match framework.run_filters_on(cx, node) {
            Ok(Some(_)) => None,
            Ok(None) | Err(_) => Some(BatchFlush::NodeNotFull),
        }
    }

    /// Returns the best remaining node, if the results can be used for this pod.
    fn next(
        &mut self,
        framework: &Framework,
        cx: &CycleContext<'_>,
        attempt: Attempt<'_>,
        now: Mono,
    ) -> Option<Arc<str>> {
        let results = self.results.as_ref().filter(|results| !results.others.is_empty())?;
        if let Some(reason) = self.unusable(results, framework, cx, attempt, now) {
            framework.metrics().batch_flushed(reason);
            return None;
        }
        let results = self.results.as_mut()?;
        results.others.pop().map(|at| results.nodes[at].clone())
    }
}

/// The results of each profile, by schedulerName. Profiles that keep no results are absent.
pub(super) struct Batches(BTreeMap<String, Batch>);

impl Batches {
    /// Creates empty results for these profiles.
    pub(super) fn new(profiles: impl Iterator<Item = String>) -> Self {
        Self(profiles.map(|profile| (profile, Batch::default())).collect())
    }

    /// Returns the best node for this pod according to the results of an equal pod.
    /// Follows `pkg/scheduler/framework/runtime/batch.go#GetNodeHint @v1.36.3`.
    pub(super) fn hint(
        &mut self,
        framework: &Framework,
        cx: &CycleContext<'_>,
        attempt: Attempt<'_>,
    ) -> Option<Arc<str>> {
        let batch = self.0.get_mut(&**framework.name())?;
        let clock = framework.handle().clock();
        let started = clock.mono();
        let hint = batch.next(framework, cx, attempt, started);
        match &hint {
            Some(node) => {
                tracing::debug!(pod = &**cx.pod.key(), node = &**node, "OpportunisticBatch provided node hint");
            }
            None => framework.metrics().batch_attempt(BatchAttempt::NoHint),
        }
        framework.metrics().node_hint_asked(hint.is_some(), clock.mono().seconds_since(started));
        hint
    }

    /// Stores the outcome of a search, so that the next equal pods can use it.
    /// Follows `pkg/scheduler/framework/runtime/batch.go#StoreScheduleResults @v1.36.3`.
    pub(super) fn keep(&mut self, framework: &Framework, attempt: Attempt<'_>, choice: &mut Choice<'_>) {
        let Some(batch) = self.0.get_mut(&**framework.name()) else { return };
        let metrics = framework.metrics();
        let clock = framework.handle().clock();
        let started = clock.mono();
        let nodes = choice.feasible.nodes();
        batch.last_cycle = attempt.cycle;
        batch.last_node = nodes[choice.host].name_arc().clone();
        if choice.hint.as_ref() == Some(&batch.last_node) {
            metrics.batch_attempt(BatchAttempt::HintUsed);
        } else {
            if choice.hint.is_some() {
                metrics.batch_attempt(BatchAttempt::HintNotUsed);
            }
            let others = choice.others.take().filter(|others| !others.is_empty());
            batch.results = match (attempt.signature, others) {
                (Some(signature), Some(others)) => {
                    let nodes = nodes.iter().map(|node| node.name_arc().clone()).collect();
                    Some(Results { signature: signature.clone(), since: started, nodes, others })
                }
                (_, others) => {
                    let reason = if others.is_none() { BatchFlush::EmptyList } else { BatchFlush::PodNotBatchable };
                    metrics.batch_flushed(reason);
                    None
                }
            };
        }
        metrics.results_stored(clock.mono().seconds_since(started));
    }
}
