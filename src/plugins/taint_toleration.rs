//! `TaintToleration`: rejects nodes with hard taints that the pod does not tolerate, and scores nodes by their soft taints.
//!
//! Follows `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go @v1.36.3`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use super::event::{changed_node, hint, hints_enabled, node_event, updated_pod};
use super::json;
use super::normalize::default_normalize_score;
use crate::config::Gate;
use crate::framework::{
    Candidates, CycleContext, CycleState, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, MAX_NODE_SCORE,
    NodeRef, NodeScores, NormalizeScore, Plugin, PluginError, PreScoreOutcome, PreScorePlugin, QueueingHint,
    Registration, ScorePlugin, Scratch, SignOutcome, SignPlugin, Slot, Verdict,
};
use crate::k8s::tolerations::{do_not_schedule, find_untolerated_taint, tolerated};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, NodeInfo, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "TaintToleration";

const REASON: &str = "node(s) had untolerated taint(s)";

const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";

/// The pod's tolerations that can tolerate a `PreferNoSchedule` taint.
#[derive(Clone, Debug)]
struct SoftTolerations(Arc<[Toleration]>);

/// The in-tree plugin `TaintToleration`.
#[derive(Debug)]
struct TaintToleration {
    hints: bool,
    /// Whether tolerations may compare numbers: gate `TaintTolerationComparisonOperators`.
    comparisons: bool,
    soft: Slot<SoftTolerations>,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let comparisons = handle.gates().enabled(Gate::TaintTolerationComparisonOperators);
    let plugin = Arc::new(TaintToleration { hints: hints_enabled(handle), comparisons, soft: handle.slot() });
    Ok(Registration::new(NAME)
        .events(&plugin)
        .filter(&plugin)
        .pre_score(&plugin)
        .score(&plugin)
        .normalize(&plugin)
        .sign(&plugin))
}

impl TaintToleration {
    fn keeps_away(&self, taints: &[Taint], tolerations: &[Toleration]) -> bool {
        !taints.is_empty() && find_untolerated_taint(taints, tolerations, do_not_schedule, self.comparisons).is_some()
    }

    fn decide(&self, tolerations: &[Toleration], node: &NodeInfo) -> Verdict {
        if self.keeps_away(node.taints(), tolerations) { Verdict::unresolvable(REASON) } else { Verdict::Pass }
    }

    /// Returns the state of `PreScore`. Like upstream, fails if the profile runs `Score` without `PreScore`.
    fn soft<'a>(&self, state: &'a CycleState) -> Result<&'a [Toleration], PluginError> {
        let missing = "failed to read \"PreScoreTaintToleration\" from cycleState: not found";
        state.get(self.soft).map(|soft| &*soft.0).ok_or_else(|| PluginError::new(missing))
    }

    /// Number of the node's `PreferNoSchedule` taints that the pod does not tolerate.
    fn count(&self, soft: &[Toleration], node: &NodeInfo) -> i64 {
        let intolerable =
            |taint: &&Taint| taint.effect == PREFER_NO_SCHEDULE && !tolerated(soft, taint, self.comparisons);
        let count = node.taints().iter().filter(intolerable).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// Returns the hint for an added or updated node.
    /// Follows `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go#isSchedulableAfterNodeChange @v1.36.3`.
    fn after_node_change(&self, pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let (old, new) = changed_node(objects)?;
        let tolerations = &pod.pod().spec.tolerations;
        let was_kept_away = old.is_none_or(|old| self.keeps_away(&old.spec.taints, tolerations));
        let helps = was_kept_away && !self.keeps_away(&new.spec.taints, tolerations);
        Ok(hint(helps))
    }
}

impl Plugin for TaintToleration {
    fn name(&self) -> &str {
        NAME
    }
}

impl FilterPlugin for TaintToleration {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(self.decide(&cx.pod.pod().spec.tolerations, &node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        let tolerations = &cx.pod.pod().spec.tolerations;
        block.retain(|node, _| Ok(self.decide(tolerations, &node)));
        Ok(())
    }
}

impl PreScorePlugin for TaintToleration {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let covers_soft =
            |toleration: &&Toleration| matches!(toleration.effect.as_deref(), None | Some("" | PREFER_NO_SCHEDULE));
        let soft = cx.pod.pod().spec.tolerations.iter().filter(covers_soft).cloned().collect();
        cx.state.set(self.soft, SoftTolerations(soft));
        Ok(PreScoreOutcome::Pass)
    }
}

impl ScorePlugin for TaintToleration {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        Ok(self.count(self.soft(cx.state)?, &node))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let soft = self.soft(cx.state)?;
        for (node, score) in scores.nodes.iter().zip(&mut *scores.scores) {
            *score = self.count(soft, node);
        }
        Ok(())
    }
}

impl NormalizeScore for TaintToleration {
    fn normalize(&self, _cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        default_normalize_score(MAX_NODE_SCORE, true, scores);
        Ok(())
    }
}

impl SignPlugin for TaintToleration {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(SignOutcome::Fragments(vec![json::tolerations(pod.pod())]))
    }
}

impl EnqueueExtensions for TaintToleration {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let node_changed = node_event(self.hints, ActionType::ADD | ActionType::UPDATE_NODE_TAINT);
        let hints = self.hints;
        let hint = move |pod: &PodInfo, objects: &EventObjects| self.after_node_change(pod, objects);
        let mut events = vec![EventRegistration::with_hint(node_changed, hint)];
        if hints {
            let tolerations_changed = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_TOLERATION);
            events.push(EventRegistration::with_hint(tolerations_changed, after_pod_update));
        }
        Ok(events)
    }
}

fn after_pod_update(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let own = updated_pod(objects)?.uid() == pod.uid();
    Ok(hint(own))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

    use serde_json::json;

    use super::*;
    use crate::config::FeatureGates;
    use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

    fn check(pod: PodFixture, node: NodeFixture, fits: bool) {
        let rejected = Verdict::unresolvable("node(s) had untolerated taint(s)");
        let expected = if fits { Verdict::Pass } else { rejected };
        Harness::new(factory).check_filter(&pod, node, &expected);
    }

    #[test]
    fn untolerated_no_schedule_taints_reject() {
        check(pod("p"), node("n"), true);
        check(pod("p"), node("n").taint("a", "1", "NoSchedule"), false);
        check(pod("p"), node("n").taint("a", "1", "NoExecute"), false);
        check(pod("p"), node("n").taint("a", "1", "PreferNoSchedule"), true);
        check(pod("p").toleration("a", "1", ""), node("n").taint("a", "1", "NoExecute"), true);
        check(pod("p").toleration("a", "2", ""), node("n").taint("a", "1", "NoExecute"), false);
        let two = node("n").taint("a", "", "NoSchedule").taint("b", "", "NoSchedule");
        check(pod("p").toleration("a", "", "NoSchedule"), two.clone(), false);
        check(pod("p").toleration("", "", ""), two, true);
    }

    #[test]
    fn gt_and_lt_need_the_gate() {
        let patient = json!([{"key": "a", "operator": "Gt", "value": "5", "effect": "NoSchedule"}]);
        let patient = pod("p").set("spec.tolerations", patient);
        check(patient.clone(), node("n").taint("a", "6", "NoSchedule"), false);
        let gates = FeatureGates::default().with(Gate::TaintTolerationComparisonOperators, true);
        let harness = Harness::with_gates(gates, factory);
        harness.check_filter(&patient, node("n").taint("a", "6", "NoSchedule"), &Verdict::Pass);
    }

    #[test]
    fn untolerated_prefer_no_schedule_taints_lower_the_score() {
        let check = |pod: PodFixture, raw: &[i64], normalized: &[i64]| {
            let nodes = vec![
                node("a"),
                node("b").taint("x", "", "PreferNoSchedule").taint("h", "", "NoSchedule"),
                node("c").taint("x", "", "PreferNoSchedule").taint("y", "", "PreferNoSchedule").taint(
                    "z",
                    "",
                    "PreferNoSchedule",
                ),
            ];
            let harness = Harness::new(factory).cluster(nodes, &[]);
            let (outcome, mut state) = harness.pre_score(&pod);
            assert_eq!(outcome, Ok(PreScoreOutcome::Pass));
            assert_eq!(harness.scores(&pod, &mut state), Ok((raw.to_vec(), normalized.to_vec())));
        };
        check(pod("p"), &[0, 1, 3], &[100, 67, 0]);
        check(pod("p").toleration("x", "", "PreferNoSchedule"), &[0, 0, 2], &[100, 100, 0]);
        check(pod("p").toleration("x", "", "NoSchedule"), &[0, 1, 3], &[100, 67, 0]);
        check(pod("p").toleration("", "", ""), &[0, 0, 0], &[100, 100, 100]);
    }

    #[test]
    fn score_without_pre_score_is_an_error() {
        let harness = Harness::new(factory).cluster(vec![node("a")], &[]);
        let error = harness.scores(&pod("p"), &mut CycleState::default()).expect_err("no state");
        assert_eq!(error.to_string(), "failed to read \"PreScoreTaintToleration\" from cycleState: not found");
    }

    #[test]
    fn newly_tolerated_nodes_requeue() {
        let harness = Harness::new(factory);
        assert_eq!(harness.registered[0].event.action, ActionType::ADD | ActionType::UPDATE_NODE_TAINT);
        let tainted = || node("n").taint("a", "", "NoSchedule");
        let check = |hint, expected| assert_eq!(hint, expected);
        check(harness.node_add(&pod("p"), 0, node("n")), QueueingHint::Queue);
        check(harness.node_add(&pod("p"), 0, tainted()), QueueingHint::Skip);
        check(harness.node_update(&pod("p"), 0, tainted(), node("n")), QueueingHint::Queue);
        check(harness.node_update(&pod("p"), 0, node("n"), node("n")), QueueingHint::Skip);
        check(harness.node_update(&pod("p"), 0, tainted(), tainted()), QueueingHint::Skip);
        check(harness.node_update(&pod("p"), 0, node("n"), tainted()), QueueingHint::Skip);
    }

    #[test]
    fn new_toleration_of_the_own_pod_requeues() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events()[1], "PodUpdatePodToleration");
        let check = |new, expected| assert_eq!(harness.pod_update(&pod("p"), 1, pod("p"), new), expected);
        check(pod("p").toleration("a", "", ""), QueueingHint::Queue);
        check(pod("q").toleration("a", "", ""), QueueingHint::Skip);
    }

    #[test]
    fn without_hints_only_nodes_are_registered() {
        let gates = FeatureGates::at(33).with(Gate::SchedulerQueueingHints, false);
        let harness = Harness::with_gates(gates, factory);
        assert_eq!(harness.registered.len(), 1);
        let expected = ActionType::ADD | ActionType::UPDATE_NODE_TAINT | ActionType::UPDATE_NODE_LABEL;
        assert_eq!(harness.registered[0].event.action, expected);
    }

    #[test]
    fn signature_is_the_tolerations() {
        Harness::new(factory).check_signature(&pod("p"), &[("v1.Pod.Spec.Tolerations", "[]")]);
    }
}
