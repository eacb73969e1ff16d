//! `NodeResourcesBalancedAllocation`: prefers nodes on which the pod balances the utilization of the resources.
//!
//! Follows `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go @v1.36.3`.

use std::borrow::Cow;
use std::sync::Arc;

use super::DeviceClasses;
use super::args::NodeResourcesBalancedAllocationArgs;
use super::scorer::ScoredResources;
use crate::config::Gate;
use crate::framework::{
    CycleContext, Handle, MAX_NODE_SCORE, NodeRef, NodeScores, Plugin, PluginError, PreScoreOutcome, PreScorePlugin,
    Registration, ScorePlugin, Scratch, SignOutcome, SignPlugin, Slot,
};
use crate::k8s::{Pod, RequestOptions, pod_requests};
use crate::model::{NodeInfo, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "NodeResourcesBalancedAllocation";

/// The in-tree plugin `NodeResourcesBalancedAllocation`.
#[derive(Debug)]
pub struct BalancedAllocation {
    resources: ScoredResources,
    classes: DeviceClasses,
    /// Options that decide which of a pod's requests count.
    options: RequestOptions,
    /// The pod's requests by resource, from `PreScore`.
    requests: Slot<Arc<[i64]>>,
}

impl BalancedAllocation {
    /// Returns the plugin with these arguments, which were validated with the configuration.
    fn new(args: &NodeResourcesBalancedAllocationArgs, handle: &Handle) -> Result<Self, PluginError> {
        let gates = handle.gates();
        Ok(Self {
            resources: ScoredResources::new(&args.resources, true),
            classes: DeviceClasses::new(handle)?,
            options: RequestOptions {
                use_status: gates.enabled(Gate::InPlacePodVerticalScaling),
                use_pod_level_status: gates.enabled(Gate::InPlacePodLevelResourcesVerticalScaling),
                skip_pod_level: !gates.enabled(Gate::PodLevelResources),
                ..RequestOptions::default()
            },
            requests: handle.slot(),
        })
    }

    /// Builds the plugin for a profile.
    #[expect(clippy::needless_pass_by_value, reason = "every factory is called alike")]
    pub fn factory(args: NodeResourcesBalancedAllocationArgs, handle: &Handle) -> Result<Registration, PluginError> {
        let plugin = Arc::new(Self::new(&args, handle)?);
        Ok(Registration::new(NAME).sign(&plugin).pre_score(&plugin).score(&plugin))
    }

    fn requests(&self, pod: &Pod) -> Arc<[i64]> {
        self.resources.of_pod(&pod_requests(pod, &self.options))
    }

    /// Returns the pod's requests, or `None` for a pod without requests. Such a pod gives every node the score 0.
    fn requests_of<'a>(&self, cx: &'a CycleContext<'_>) -> Option<Cow<'a, Arc<[i64]>>> {
        let kept = cx.state.get(self.requests).map(Cow::Borrowed);
        let requests = kept.unwrap_or_else(|| Cow::Owned(self.requests(cx.pod.pod())));
        (!is_best_effort(&requests)).then_some(requests)
    }

    fn score_node(&self, node: &NodeInfo, requests: &[i64]) -> Result<i64, PluginError> {
        if self.resources.is_empty() {
            return Err(PluginError::new("resources not found"));
        }
        let with = balance(|| self.resources.on(node, requests).map(|(_, at)| (at.requested, at.allocatable)));
        let without = balance(|| self.resources.on(node, requests).map(|(_, at)| (at.allocated, at.allocatable)));
        Ok(MAX_NODE_SCORE / 2 + (MAX_NODE_SCORE / 2 + with - without) / 2)
    }
}

fn is_best_effort(requests: &[i64]) -> bool {
    requests.iter().all(|request| *request == 0)
}

/// Returns the balance of the resources: 100 minus the standard deviation of their utilization, in percent. `amounts` yields the
/// used and the allocatable amount of each resource. This function calls `amounts` up to twice instead of storing the shares, so
/// `amounts` must yield the same amounts each time.
///
/// The order of operations is upstream's, so the results are equal to the last bit.
/// Follows `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go#balancedResourceScore @v1.36.3`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with the same types"
)]
fn balance<I: Iterator<Item = (i64, i64)>>(amounts: impl Fn() -> I) -> i64 {
    let shares = || {
        amounts().map(|(used, allocatable)| {
            let share = used as f64 / allocatable as f64;
            if share > 1.0 { 1.0 } else { share }
        })
    };
    let mut first_two = [0.0; 2];
    let (mut total, mut count) = (0.0, 0_usize);
    for share in shares() {
        total += share;
        if let Some(kept) = first_two.get_mut(count) {
            *kept = share;
        }
        count += 1;
    }
    let deviation = match count {
        0 | 1 => 0.0,
        2 => ((first_two[0] - first_two[1]) / 2.0).abs(),
        _ => {
            let mean = total / count as f64;
            let squares = shares().fold(0.0, |sum, share| sum + (share - mean) * (share - mean));
            (squares / count as f64).sqrt()
        }
    };
    ((1.0 - deviation) * MAX_NODE_SCORE as f64) as i64
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreScorePlugin for BalancedAllocation {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let requests = self.requests(cx.pod.pod());
        if is_best_effort(&requests) {
            return Ok(PreScoreOutcome::Skip);
        }
        cx.state.set(self.requests, requests);
        Ok(PreScoreOutcome::Pass)
    }
}

impl ScorePlugin for BalancedAllocation {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        self.requests_of(cx).map_or(Ok(0), |requests| self.score_node(&node, &requests))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let Some(requests) = self.requests_of(cx) else {
            scores.scores.fill(0);
            return Ok(());
        };
        for (node, score) in scores.nodes.iter().zip(scores.scores.iter_mut()) {
            *score = self.score_node(node, &requests)?;
        }
        Ok(())
    }
}

impl SignPlugin for BalancedAllocation {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(super::sign(pod, &self.classes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Rng;
    use crate::plugins::node_resources::fixture::{balanced, check_signed, score};
    use crate::testing::{PodFixture, node, pod};

    #[test]
    fn evenness() {
        let check = |amounts: &[(i64, i64)], expected: i64| {
            assert_eq!(balance(|| amounts.iter().copied()), expected, "{amounts:?}");
        };
        check(&[], 100);
        check(&[(3, 10)], 100);
        check(&[(5, 10), (1, 2)], 100);
        check(&[(0, 10), (10, 10)], 50);
        check(&[(0, 10), (20, 10)], 50);
        check(&[(1, 10), (2, 10)], 95);
        check(&[(0, 10), (5, 10), (10, 10)], 59);
        check(&[(1, 3), (1, 3), (1, 3)], 100);
        // The mean of three equal shares differs slightly from the share. Upstream has the same error.
        check(&[(2, 5), (2, 5), (2, 5)], 100);
        check(&[(4, 5), (4, 5), (4, 5)], 99);
    }

    fn check(names: &[&str], wanted: PodFixture, expected: Option<i64>) {
        let mut info = node("n").allocatable("example.com/gpu", "4").info();
        info.add_pod(pod("running").cpu("2").info());
        assert_eq!(score(&mut balanced(names), wanted, info), expected.map(Ok));
    }

    #[test]
    fn nodes_that_get_more_even_are_better() {
        let names = &["cpu", "memory"];
        check(names, pod("p"), None);
        check(names, pod("p").request("example.com/gpu", "1"), None);
        check(names, pod("p").memory("4Gi"), Some(87));
        check(names, pod("p").cpu("2"), Some(62));
        check(names, pod("p").cpu("1").memory("2Gi"), Some(75));
        check(names, pod("p").set("spec.resources", json!({"requests": {"memory": "4Gi"}})), Some(87));
        check(&["cpu"], pod("p").cpu("2"), Some(75));
        check(&["cpu", "memory", "example.com/gpu"], pod("p").memory("4Gi").request("example.com/gpu", "2"), Some(87));
        check(&["cpu", "unknown"], pod("p").request("unknown", "1"), Some(75));
    }

    #[test]
    fn without_resources_nothing_is_scored() {
        check(&[], pod("p").cpu("1"), None);
    }

    #[test]
    fn requests_are_signed_unless_a_device_class_stands_behind_one() {
        check_signed(&balanced(&["cpu"]));
    }

    #[test]
    fn scores_stay_in_the_upper_half() {
        let mut plugin = balanced(&["cpu", "memory", "ephemeral-storage"]);
        for seed in 0..500 {
            let mut rng = Rng::from_seed(seed);
            let mut amount = |limit: u64| rng.below(limit).to_string();
            let mut info = node("n")
                .allocatable("cpu", &amount(20))
                .allocatable("memory", &amount(1000))
                .allocatable("ephemeral-storage", &amount(50))
                .info();
            info.add_pod(
                pod("a").cpu(&amount(20)).memory(&amount(1000)).request("ephemeral-storage", &amount(60)).info(),
            );
            let wanted = pod("p").cpu(&amount(20)).memory(&amount(900)).request("ephemeral-storage", &amount(60));
            if let Some(score) = score(&mut plugin, wanted, info) {
                assert!(matches!(score, Ok(50..=100)), "seed {seed}: {score:?}");
            }
        }
    }
}
