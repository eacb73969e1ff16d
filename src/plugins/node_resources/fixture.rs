//! Harnesses for the two plugins, and drivers of their tests.

#![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

use std::sync::Arc;

use k8s_openapi::api::resource::v1::DeviceClass;
use serde_json::json;

use super::args::{NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, ResourceSpec, ScoringStrategy};
use crate::config::FeatureGates;
use crate::framework::{CycleState, NodeRef, PluginError, PreScoreOutcome, SignOutcome, Verdict};
use crate::model::NodeInfo;
use crate::testing::{Harness, PodFixture, Scores, pod};

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

pub(super) fn fit(gates: FeatureGates, args: NodeResourcesFitArgs) -> Harness {
    Harness::build(gates, args, Ok(()), super::Fit::factory).expect("the plugin can be built")
}

pub(super) fn balanced(names: &[&str]) -> Harness {
    let args = NodeResourcesBalancedAllocationArgs { resources: specs(names) };
    Harness::with_args(args, super::BalancedAllocation::factory)
}

/// Returns a device class that provides this extended resource.
pub(super) fn device_class(name: &str, resource: Option<&str>) -> Arc<DeviceClass> {
    let class = json!({"metadata": {"name": name}, "spec": {"extendedResourceName": resource}});
    Arc::new(serde_json::from_value(class).expect("a device class"))
}

/// Runs `PreFilter`, and returns the verdict on one node.
pub(super) fn verdict(harness: &Harness, pod: PodFixture, node: &NodeInfo) -> Verdict {
    let (outcome, mut state) = harness.pre_filter(&pod);
    outcome.expect("PreFilter does not fail");
    harness.filter(&pod, NodeRef::outside(node), &mut state).expect("Filter does not fail")
}

/// Returns the score of one node, or `None` if `PreScore` skips the plugin. Checks that the score is the same without the
/// state of `PreScore`.
pub(super) fn score(harness: &mut Harness, pod: PodFixture, node: NodeInfo) -> Option<Result<i64, PluginError>> {
    harness.snapshot.set_nodes(vec![Arc::new(node)]);
    let raw = |scores: Result<Scores, PluginError>| scores.map(|(raw, _)| raw[0]);
    let bare = raw(harness.scores(&pod, &mut CycleState::default()));
    let (outcome, mut state) = harness.pre_score(&pod);
    if outcome.expect("PreScore does not fail") == PreScoreOutcome::Skip {
        assert_eq!(bare, Ok(0));
        return None;
    }
    let score = raw(harness.scores(&pod, &mut state));
    assert_eq!(bare, score, "what PreScore leaves changes the score");
    Some(score)
}

/// Checks that a pod's requests are signed, except if the pod requests more than 0 of a resource that a device class provides.
pub(super) fn check_signed(harness: &Harness) {
    harness.handle.listers().put(device_class("gpus", Some("example.com/mapped")));
    let sign = |pod: PodFixture| match harness.registration.sign.as_ref().expect("Sign").sign(&pod.info()) {
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
