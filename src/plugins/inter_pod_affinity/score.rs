//! Scoring by preferred terms and by the required affinity of existing pods.
//!
//! Follows `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go @v1.36.3`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;

use super::counts::TopologyCounts;
use super::own::OwnTerms;
use super::{InterPodAffinity, NamespaceLabels};
use crate::framework::{
    CycleContext, MAX_NODE_SCORE, NodeRef, NodeScores, NormalizeScore, PluginError, PreScoreOutcome, PreScorePlugin,
    ScorePlugin, Scratch,
};
use crate::k8s::StringMap;
use crate::listers::Lister;
use crate::model::{AffinityTerms, PodInfo, Snapshot, WeightedAffinityTerm};

/// The state that `PreScore` computes for `Score`: the score of each domain of each topology key.
#[derive(Clone, Debug)]
pub(super) struct State(Arc<TopologyCounts>);

impl State {
    fn of(&self, node: NodeRef<'_>) -> i64 {
        self.0.keys().iter().filter_map(|key| key.of(node)).fold(0, i64::wrapping_add)
    }
}

/// The scores counted so far. `any` is set once a term matched, even if the scores add up to zero.
#[derive(Default)]
struct Worth {
    counts: TopologyCounts,
    any: bool,
}

impl Worth {
    /// Counts the existing pods that the incoming pod's preferred terms select.
    fn add_own(
        &mut self,
        snapshot: &Snapshot,
        terms: &[WeightedAffinityTerm],
        namespaces: &Lister<Namespace>,
        sign: i32,
    ) {
        let own = OwnTerms::new(terms.iter().map(|weighted| &weighted.term), namespaces);
        for class in snapshot.classes() {
            for (at, WeightedAffinityTerm { term, weight }) in terms.iter().enumerate() {
                if own.matches(at, term, class.shared()) {
                    let each = i64::from(weight.wrapping_mul(sign));
                    self.any |= self.counts.add(snapshot, term.topology_key(), class.nodes(), each);
                }
            }
        }
    }

    /// Counts the existing pods whose terms select the incoming pod: preferred terms with their weights, and required affinity
    /// with weight `hard` if that is above zero.
    fn add_existing(&mut self, snapshot: &Snapshot, pod: &PodInfo, namespace_labels: &StringMap, hard: i32) {
        for set in snapshot.affinity_terms() {
            let terms: &AffinityTerms = set.shared();
            let required = if hard > 0 { terms.required_affinity() } else { &[] };
            let weighted =
                |sign: i32| move |weighted: &'_ WeightedAffinityTerm| i64::from(weighted.weight.wrapping_mul(sign));
            let near = terms.preferred_affinity().iter().map(|one| (&one.term, weighted(1)(one)));
            let away = terms.preferred_anti_affinity().iter().map(|one| (&one.term, weighted(-1)(one)));
            let required = required.iter().map(|term| (term, i64::from(hard)));
            for (term, each) in required.chain(near).chain(away) {
                if term.matches(pod.namespace(), pod.class().labels(), namespace_labels) {
                    self.any |= self.counts.add(snapshot, term.topology_key(), set.nodes(), each);
                }
            }
        }
    }
}

fn not_found() -> PluginError {
    PluginError::new("failed to read \"PreScoreInterPodAffinity\" from cycleState: not found")
}

impl PreScorePlugin for InterPodAffinity {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let pod = &**cx.pod;
        let has_preferences = has_preferences(pod);
        // As in upstream, the argument has no effect if the incoming pod has preferred terms.
        if self.args.ignore_preferred_terms_of_existing_pods && !has_preferences {
            return Ok(PreScoreOutcome::Skip);
        }
        let mut worth = Worth::default();
        if let Some(terms) = pod.affinity_terms() {
            if let Some(error) = terms.error() {
                return Err(PluginError::new(format!("failed to parse pod: {error}")));
            }
            worth.add_own(cx.snapshot, terms.preferred_affinity(), &self.namespaces, 1);
            worth.add_own(cx.snapshot, terms.preferred_anti_affinity(), &self.namespaces, -1);
        }
        let namespace_labels = NamespaceLabels::of(&self.namespaces, pod);
        worth.add_existing(cx.snapshot, pod, namespace_labels.get(), self.args.hard_pod_affinity_weight);
        if !worth.any {
            return Ok(PreScoreOutcome::Skip);
        }
        cx.state.set(self.scores, State(Arc::new(worth.counts)));
        Ok(PreScoreOutcome::Pass)
    }
}

/// Whether the pod has preferred terms, including malformed terms.
fn has_preferences(pod: &PodInfo) -> bool {
    let near = pod.affinity().and_then(|affinity| affinity.pod_affinity.as_ref());
    let away = pod.affinity().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
    let away = away.and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
    near.into_iter().chain(away).any(|terms| !terms.is_empty())
}

impl ScorePlugin for InterPodAffinity {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        let state = cx.state.get(self.scores).ok_or_else(not_found)?;
        Ok(state.of(node))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let state = cx.state.get(self.scores).ok_or_else(not_found)?;
        for (node, score) in scores.nodes.iter().zip(&mut *scores.scores) {
            *score = state.of(*node);
        }
        Ok(())
    }
}

/// Scales the lowest score to 0 and the highest to 100. If all scores are equal, all become 0.
/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/scoring.go#InterPodAffinity.NormalizeScore @v1.36.3`.
impl NormalizeScore for InterPodAffinity {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as upstream computes it")]
    fn normalize(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        cx.state.get(self.scores).ok_or_else(not_found)?;
        let least = scores.scores.iter().copied().min().unwrap_or_default();
        let range = scores.scores.iter().copied().max().unwrap_or_default().wrapping_sub(least);
        for score in scores.scores.iter_mut() {
            let share = if range > 0 { score.wrapping_sub(least) as f64 / range as f64 } else { 0.0 };
            *score = (MAX_NODE_SCORE as f64 * share) as i64;
        }
        Ok(())
    }
}
