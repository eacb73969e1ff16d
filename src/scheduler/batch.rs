//! Opportunistic batching: what one pod's evaluation found out serves the next pods that are equal to it.
//!
//! Equal pods that come one right after the other get the same scores on every node, but for the one that the pod before
//! took. If that node has no room for another, the best of the others is the best of all, and neither filters nor scores
//! have to run on the rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::search::Choice;
use crate::clock::Mono;
use crate::framework::{CycleContext, Framework, NodeRef, Ranking};
use crate::metrics::{BatchAttempt, BatchFlush};

/// Results that are older are not used. Follows `pkg/scheduler/framework/runtime/batch.go#maxBatchAge @v1.36.3`.
const MAX_AGE: Duration = Duration::from_millis(500);

/// The results that one profile keeps for the next pod.
/// Follows `pkg/scheduler/framework/runtime/batch.go#OpportunisticBatch @v1.36.3`.
#[derive(Default)]
pub(super) struct Batch {
    /// The last cycle in which a node was chosen. A failed one leaves no trace but the gap in the count.
    last_cycle: i64,
    /// The node that was chosen in it.
    last_node: Arc<str>,
    results: Option<Results>,
}

/// The outcome of a search, kept for equal pods.
struct Results {
    signature: Arc<str>,
    since: Mono,
    /// The nodes that could have taken the pod, by their place in the ranking.
    nodes: Vec<Arc<str>>,
    /// Those that no pod has taken.
    others: Ranking,
}

/// The pod's part in it: the cycle that it is in, and what tells whether it equals another. Pods that are not signed equal
/// no other.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) cycle: i64,
    pub(super) signature: Option<&'a Arc<str>>,
}

impl Batch {
    /// Why the results do not hold for this pod, if they do not. They are not dropped for it: a later pod may have more luck,
    /// until the next evaluation that ends well replaces them.
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
        // How the node would score now is not known: only if it is full it does not matter.
        match framework.run_filters_on(cx, node) {
            Ok(Some(_)) => None,
            Ok(None) | Err(_) => Some(BatchFlush::NodeNotFull),
        }
    }

    /// The best node that is left, if the results hold for this pod.
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

/// The results of each profile, by schedulerName; none of a profile that keeps nothing.
pub(super) struct Batches(BTreeMap<String, Batch>);

impl Batches {
    /// Keeps results for these profiles.
    pub(super) fn new(profiles: impl Iterator<Item = String>) -> Self {
        Self(profiles.map(|profile| (profile, Batch::default())).collect())
    }

    /// The node that an equal pod's results name for this pod.
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
            Some(node) => tracing::debug!(pod = &**cx.pod.key(), node = &**node, "An equal pod's results name a node"),
            None => framework.metrics().batch_attempt(BatchAttempt::NoHint),
        }
        framework.metrics().node_hint_asked(hint.is_some(), clock.mono().seconds_since(started));
        hint
    }

    /// Keeps the outcome of a search for the next pod.
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
