//! `DefaultPreemption`: evicts pods of lower priority to make room for a pod that fits on no node.
//!
//! [`crate::framework::preemption`] selects the node and the victims. While victims are evicted outside the scheduling thread,
//! the preemptor is kept out of activeQ.
//!
//! Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go @v1.36.3`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::wire_args;
use crate::config::{Config, FeatureGates, Gate, PluginArgs, Profile};
use crate::framework::preemption::{Evaluator, MinCandidates};
use crate::framework::{
    CycleContext, EnqueueExtensions, EventRegistration, Handle, Plugin, PluginError, PostFilterContext,
    PostFilterOutcome, PostFilterPlugin, PreEnqueuePlugin, QueueingHint, Reasons, Registration, Rejection, Verdict,
};
use crate::metrics::Metrics;
use crate::model::{ActionType, ClusterEvent, EventResource, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "DefaultPreemption";

/// Arguments of the plugin `DefaultPreemption`.
/// Follows `pkg/scheduler/apis/config/types_pluginargs.go#DefaultPreemptionArgs` and
/// `pkg/scheduler/apis/config/v1/defaults.go#SetDefaults_DefaultPreemptionArgs @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefaultPreemptionArgs {
    /// Number of candidates to shortlist, as a percentage (0–100) of the nodes.
    pub min_candidate_nodes_percentage: i32,
    /// Minimum number of candidates to shortlist.
    pub min_candidate_nodes_absolute: i32,
}

wire_args!(DefaultPreemptionArgs, {
    "minCandidateNodesPercentage" => min_candidate_nodes_percentage,
    "minCandidateNodesAbsolute" => min_candidate_nodes_absolute,
});

impl Default for DefaultPreemptionArgs {
    fn default() -> Self {
        Self { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

impl PluginArgs for DefaultPreemptionArgs {
    const KIND: &'static str = "DefaultPreemptionArgs";

    /// Adds an error for each invalid value.
    /// Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go#ValidateDefaultPreemptionArgs @v1.36.3`.
    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        let (percentage, absolute) = (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute);
        let percentage_path = path.child("minCandidateNodesPercentage");
        let absolute_path = path.child("minCandidateNodesAbsolute");
        if !(0..=100).contains(&percentage) {
            errors.invalid(&percentage_path, percentage, "not in valid range [0, 100]");
        }
        if absolute < 0 {
            errors.invalid(&absolute_path, absolute, "not in valid range [0, inf)");
        }
        if percentage == 0 && absolute == 0 {
            let detail = "cannot be zero at the same time as minCandidateNodesAbsolute";
            errors.invalid(&percentage_path, percentage, detail);
            let detail = "cannot be zero at the same time as minCandidateNodesPercentage";
            errors.invalid(&absolute_path, absolute, detail);
        }
    }
}

impl From<&DefaultPreemptionArgs> for MinCandidates {
    fn from(args: &DefaultPreemptionArgs) -> Self {
        Self { percentage: args.min_candidate_nodes_percentage, absolute: args.min_candidate_nodes_absolute }
    }
}

/// The in-tree plugin `DefaultPreemption`.
struct DefaultPreemption {
    evaluator: Evaluator,
    asynchronous: bool,
    /// Whether this plugin does not preempt for members of pod groups, because preemption for the whole group does: gate
    /// `WorkloadAwarePreemption`.
    groups_preempt: bool,
    metrics: Arc<Metrics>,
}

/// Builds the plugin for a profile.
#[expect(clippy::needless_pass_by_value, reason = "every factory is called alike")]
pub fn factory(args: DefaultPreemptionArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(DefaultPreemption {
        evaluator: Evaluator::new(NAME, handle, MinCandidates::from(&args))?,
        asynchronous: handle.gates().enabled(Gate::SchedulerAsyncPreemption),
        groups_preempt: handle.gates().enabled(Gate::WorkloadAwarePreemption),
        metrics: handle.metrics().clone(),
    });
    Ok(Registration::new(NAME).events(&plugin).pre_enqueue(&plugin).post_filter(&plugin))
}

/// Returns the minimum number of candidates in each profile, by schedulerName, for callers that run preemption themselves.
pub fn min_candidates(config: &Config) -> BTreeMap<String, MinCandidates> {
    let of_profile = |profile: &Profile| {
        let args = profile.args(NAME).get::<DefaultPreemptionArgs>()?;
        Some((profile.scheduler_name.clone(), args.into()))
    };
    config.profiles.iter().filter_map(of_profile).collect()
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreEnqueuePlugin for DefaultPreemption {
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict {
        if self.asynchronous && self.evaluator.executor().is_running(pod.uid()) {
            return Verdict::unresolvable("waiting for the preemption for this pod to be finished");
        }
        Verdict::Pass
    }
}

impl PostFilterPlugin for DefaultPreemption {
    fn post_filter(
        &self,
        cx: &mut CycleContext<'_>,
        failed: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError> {
        self.metrics.preemption_attempts().inc();
        if self.groups_preempt && cx.pod.pod().spec.scheduling_group.is_some() {
            let rejection =
                Rejection::unschedulable("preemption: not eligible due to workload aware preemption enabled");
            return Ok(PostFilterOutcome::Reject { rejection, nominated: None });
        }
        match self.evaluator.preempt(cx, failed) {
            Ok(PostFilterOutcome::Reject { rejection: Rejection { kind, reasons }, nominated }) => {
                let reasons = Reasons::One(format!("preemption: {reasons}").into());
                Ok(PostFilterOutcome::Reject { rejection: Rejection { kind, reasons }, nominated })
            }
            Ok(success) => Ok(success),
            Err(error) => Err(error.context("preemption")),
        }
    }
}

impl EnqueueExtensions for DefaultPreemption {
    /// Registers for deleted pods. No hint is needed: the plugins that rejected the pod judge whether the deletion of its
    /// victims helps.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        if !self.asynchronous {
            return Ok(Vec::new());
        }
        let pod_deleted = ClusterEvent::new(EventResource::Pod, ActionType::DELETE);
        Ok(vec![EventRegistration::with_hint(pod_deleted, |_, _| Ok(QueueingHint::Skip))])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;
    use crate::clock::Mono;
    use crate::framework::{CycleState, Diagnosis, FilterRunner, NodeRef, WaitDecision};
    use crate::testing::{Harness, PodFixture, node, pod};

    fn plugin(gates: FeatureGates) -> Harness {
        Harness::build(gates, DefaultPreemptionArgs::default(), Ok(()), factory).expect("the plugin can be built")
    }

    #[test]
    fn a_pod_that_is_gone_is_an_error_and_every_call_counts() {
        let harness = plugin(FeatureGates::default());
        let outcome = harness.post_filter(&pod("p"), CycleState::default());
        assert_eq!(outcome, Err(PluginError::new("preemption: pod \"p\" not found")));
        assert_eq!(harness.handle.metrics().preemption_attempts().get(), 1);
    }

    #[test]
    fn what_is_said_has_a_prefix() {
        let harness = plugin(FeatureGates::default());
        let check = |preemptor: PodFixture, text: &str, nominated: Option<&str>| {
            harness.handle.listers().put(preemptor.clone().build());
            let rejection = Rejection::unschedulable(format!("preemption: {text}"));
            let expected = PostFilterOutcome::Reject { rejection, nominated: nominated.map(str::to_owned) };
            assert_eq!(harness.post_filter(&preemptor, CycleState::default()), Ok(expected));
        };
        let never = pod("p").set("spec.preemptionPolicy", "Never".into());
        check(never, "not eligible due to preemptionPolicy=Never.", None);
        check(pod("p"), "0/0 nodes are available:", Some(""));
    }

    /// Filters that pass only nodes without pods.
    struct Empty;

    impl FilterRunner for Empty {
        fn run_filters(&self, _: &CycleContext<'_>, node: NodeRef<'_>) -> Result<Verdict, PluginError> {
            Ok(if node.pods().is_empty() { Verdict::Pass } else { Verdict::unschedulable("full") })
        }

        fn run_filters_with_nominated_pods(
            &self,
            cx: &CycleContext<'_>,
            node: NodeRef<'_>,
        ) -> Result<Verdict, PluginError> {
            self.run_filters(cx, node)
        }

        fn add_pod(&self, _: &mut CycleContext<'_>, _: &PodInfo, _: NodeRef<'_>) -> Result<(), PluginError> {
            Ok(())
        }

        fn remove_pod(&self, _: &mut CycleContext<'_>, _: &PodInfo, _: NodeRef<'_>) -> Result<(), PluginError> {
            Ok(())
        }
    }

    /// Runs `PostFilter` for a pod that no node has room for.
    fn preempt(harness: &Harness, preemptor: &Arc<PodInfo>) -> Result<PostFilterOutcome, PluginError> {
        let (mut state, now) = (CycleState::default(), harness.handle.clock().now());
        let mut cx = CycleContext { pod: preemptor, snapshot: &harness.snapshot, state: &mut state, now };
        let diagnosis = Diagnosis { absent: Some(Rejection::unschedulable("full")), ..Diagnosis::default() };
        let failed = PostFilterContext { diagnosis: &diagnosis, filters: &Empty, extenders: &(), random: 0 };
        harness.registration.post_filter.as_ref().expect("PostFilter").post_filter(&mut cx, &failed)
    }

    #[test]
    fn a_pod_whose_victims_are_being_sent_away_is_held_back() {
        let check = |asynchronous: bool, expected: Verdict| {
            let gates = FeatureGates::default().with(Gate::SchedulerAsyncPreemption, asynchronous);
            let harness = plugin(gates).cluster(vec![node("n")], &[pod("v").on("n"), pod("w").on("n")]);
            let preemptor = pod("p").priority(1);
            harness.handle.listers().put(preemptor.clone().build());
            let info = preemptor.info();
            let outcome = preempt(&harness, &info);
            // Synchronous preemption waits for the evictions, which the effects of this harness refuse.
            assert_eq!(outcome.is_ok(), asynchronous, "{outcome:?}");
            let pre_enqueue = harness.registration.pre_enqueue.as_ref().expect("PreEnqueue");
            assert_eq!(pre_enqueue.pre_enqueue(&info), expected);
        };
        check(true, Verdict::unresolvable("waiting for the preemption for this pod to be finished"));
        check(false, Verdict::Pass);
    }

    #[test]
    fn members_of_groups_leave_it_to_the_group() {
        let gates = FeatureGates::default().with(Gate::WorkloadAwarePreemption, true);
        let harness = plugin(gates);
        let member = pod("p").set("spec.schedulingGroup", serde_json::json!({"podGroupName": "g"}));
        let rejection = Rejection::unschedulable("preemption: not eligible due to workload aware preemption enabled");
        let expected = PostFilterOutcome::Reject { rejection, nominated: None };
        assert_eq!(harness.post_filter(&member, CycleState::default()), Ok(expected));
    }

    #[test]
    fn members_of_groups_and_others_preempt_unless_both_gate_and_group_are_there() {
        let member = || pod("p").set("spec.schedulingGroup", serde_json::json!({"podGroupName": "g"}));
        for (on, pod) in [(true, pod("p")), (false, pod("p")), (false, member())] {
            let harness = plugin(FeatureGates::default().with(Gate::WorkloadAwarePreemption, on));
            let error = harness.post_filter(&pod, CycleState::default()).expect_err("no informer knows the pod");
            assert_eq!(error, PluginError::new("preemption: pod \"p\" not found"));
        }
    }

    #[test]
    fn a_pod_whose_victims_are_being_sent_away_waits_for_that() {
        let preemptor = pod("p").priority(1);
        let harness = plugin(FeatureGates::default()).cluster(vec![node("n")], &[pod("v").on("n")]);
        let listers = harness.handle.listers();
        listers.put(preemptor.clone().build());
        listers.put(pod("v").on("n").build());
        let timeouts = vec![("W".into(), Duration::from_secs(9))];
        let waiting = harness.handle.waiting_pods().add(&pod("v").on("n").info(), timeouts, Mono::ZERO);
        let info = preemptor.info();
        assert_eq!(preempt(&harness, &info), Ok(PostFilterOutcome::Success { nominated: Some("n".to_owned()) }));
        let pre_enqueue = harness.registration.pre_enqueue.as_ref().expect("PreEnqueue");
        let waits = Verdict::unresolvable("waiting for the preemption for this pod to be finished");
        assert_eq!(pre_enqueue.pre_enqueue(&info), waits);
        assert_eq!(pre_enqueue.pre_enqueue(&pod("q").info()), Verdict::Pass);
        harness.effects().run_tasks();
        assert_eq!(pre_enqueue.pre_enqueue(&info), Verdict::Pass);
        let error = PluginError::new("preempted");
        let decision = waiting.wait(harness.handle.clock()).now_or_never();
        assert_eq!(decision, Some(WaitDecision::Preempted { plugin: NAME.into(), error }));
    }

    #[test]
    fn deleted_pods_are_registered_and_never_help() {
        let harness = plugin(FeatureGates::default());
        assert_eq!(harness.events(), ["PodDelete"]);
        assert_eq!(harness.pod_delete(&pod("p"), 0, pod("q").on("n")), QueueingHint::Skip);
        let pre_enqueue = harness.registration.pre_enqueue.as_ref().expect("PreEnqueue");
        assert_eq!(pre_enqueue.pre_enqueue(&pod("p").info()), Verdict::Pass);
        let gates = FeatureGates::default().with(Gate::SchedulerAsyncPreemption, false);
        assert!(plugin(gates).events().is_empty());
    }
}
