//! Test helpers that run one of the two plugins as a profile would.

use super::args::{NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, ResourceSpec, ScoringStrategy};
use crate::clock::Clock;
use crate::framework::{
    Candidates, CycleContext, CycleState, Handle, NodeOutcome, NodeRef, NodeScores, PluginError, PreScoreOutcome,
    Registration, Scratch, SignOutcome, Verdict,
};
use crate::model::{NodeInfo, Snapshot};
use crate::testing::{PodFixture, pod};

pub(super) use crate::testing::handle;

pub(super) fn specs(names: &[&str]) -> Vec<ResourceSpec> {
    names.iter().map(|name| ResourceSpec { name: (*name).into(), weight: 1 }).collect()
}

pub(super) fn fit_args(names: &[&str]) -> NodeResourcesFitArgs {
    let kind = "LeastAllocated".into();
    NodeResourcesFitArgs {
        ignored_resources: Vec::new(),
        ignored_resource_groups: Vec::new(),
        scoring_strategy: Some(ScoringStrategy { kind, resources: specs(names), requested_to_capacity_ratio: None }),
    }
}

pub(super) fn fit(handle: &Handle, args: NodeResourcesFitArgs) -> Registration {
    super::Fit::factory(args, handle).expect("the plugin can be built")
}

pub(super) fn balanced(handle: &Handle, names: &[&str]) -> Registration {
    let args = NodeResourcesBalancedAllocationArgs { resources: specs(names) };
    super::BalancedAllocation::factory(args, handle).expect("the plugin can be built")
}

/// Returns the verdict on one node. Checks that filtering a single node and a block agree.
pub(super) fn verdict(plugin: &Registration, pod: PodFixture, node: &NodeInfo) -> Verdict {
    let (pod, snapshot, mut state) = (pod.info(), Snapshot::default(), CycleState::default());
    let mut cx = CycleContext { pod: &pod, snapshot: &snapshot, state: &mut state, now: Clock::real().now() };
    plugin.pre_filter.as_ref().expect("PreFilter").pre_filter(&mut cx).expect("PreFilter does not fail");
    let filter = plugin.filter.as_ref().expect("Filter");
    let verdict = filter.filter(&cx, NodeRef::outside(node), &mut Scratch::default()).expect("Filter does not fail");
    let nodes = [NodeRef::outside(node)];
    let mut block = Candidates::new(&nodes);
    filter.filter_block(&cx, &mut block).expect("Filter does not fail");
    let in_block = match block.finish().0.pop() {
        Some(NodeOutcome::Feasible) | None => Verdict::Pass,
        Some(NodeOutcome::Rejected(_, rejection)) => Verdict::Reject(rejection),
        Some(NodeOutcome::Failed(_, error)) => panic!("{error}"),
    };
    assert_eq!(verdict, in_block, "the block and the single node differ");
    verdict
}

/// Returns the score of one node, or `None` if `PreScore` skips the plugin. Checks that scoring a single node and a block
/// agree, with and without the state of `PreScore`.
pub(super) fn score(plugin: &Registration, pod: PodFixture, node: &NodeInfo) -> Option<Result<i64, PluginError>> {
    let (pod, snapshot, mut state) = (pod.info(), Snapshot::default(), CycleState::default());
    let mut cx = CycleContext { pod: &pod, snapshot: &snapshot, state: &mut state, now: Clock::real().now() };
    let plugin_score = plugin.score.as_ref().expect("Score");
    let bare = plugin_score.score(&cx, NodeRef::outside(node), None);
    let outcome = plugin.pre_score.as_ref().expect("PreScore").pre_score(&mut cx, &[NodeRef::outside(node)]);
    if outcome.expect("PreScore does not fail") == PreScoreOutcome::Skip {
        assert_eq!(bare, Ok(0));
        return None;
    }
    let score = plugin_score.score(&cx, NodeRef::outside(node), None);
    let (nodes, mut scores) = ([NodeRef::outside(node)], [-1]);
    let block = plugin_score.score_block(&cx, &mut NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] });
    assert_eq!(block.map(|()| scores[0]), score, "the block and the single node differ");
    assert_eq!(bare, score, "what PreScore leaves changes the score");
    Some(score)
}

/// Checks that a pod's requests are signed, except if it requests more than 0 of `example.com/mapped`, which a device class
/// provides.
pub(super) fn check_signed(plugin: &Registration) {
    let sign = |pod: PodFixture| match plugin.sign.as_ref().expect("Sign").sign(&pod.info()) {
        Ok(SignOutcome::Fragments(fragments)) => fragments.iter().map(|(name, _)| (*name).to_owned()).collect(),
        Ok(SignOutcome::Refuse(rejection)) => rejection.reasons.to_string(),
        Err(error) => panic!("{error}"),
    };
    let signed = "v1.Pod.Spec.ContainerRequestsAndOverheads()";
    assert_eq!(sign(pod("p").cpu("1").request("example.com/other", "1")), signed);
    assert_eq!(sign(pod("p").request("example.com/mapped", "0")), signed);
    let refused = "signature disabled when dra extended resources are used in the cluster";
    assert_eq!(sign(pod("p").request("example.com/mapped", "1")), refused);
}
