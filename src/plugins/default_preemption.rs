//! `DefaultPreemption`: makes room for a pod that fits nowhere by sending less important pods away.
//!
//! Whom it hits is for [`crate::framework::preemption`] to say. While victims are sent away beside the scheduling thread,
//! the pod for which that happens is kept out of activeQ.
//!
//! Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go @v1.36.3`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::{Config, DefaultPreemptionArgs, Gate};
use crate::framework::preemption::Evaluator;
use crate::framework::{
    CycleContext, EnqueueExtensions, EventRegistration, Handle, Plugin, PluginArgs, PluginError, PostFilterContext,
    PostFilterOutcome, PostFilterPlugin, PreEnqueuePlugin, QueueingHint, Reasons, Registration, Rejection, Verdict,
};
use crate::metrics::Metrics;
use crate::model::{ActionType, ClusterEvent, EventResource, PodInfo};

/// The plugin's name.
pub const NAME: &str = "DefaultPreemption";

/// The plugin.
struct DefaultPreemption {
    evaluator: Evaluator,
    asynchronous: bool,
    /// Members of pod groups do not preempt by themselves: gate `WorkloadAwarePreemption`.
    groups_preempt: bool,
    metrics: Arc<Metrics>,
}

/// Builds the plugin.
pub fn factory(args: PluginArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let PluginArgs::DefaultPreemption(args) = args else {
        let kind = args.kind();
        return Err(PluginError::new(format!("got args of type {kind}, want *DefaultPreemptionArgs")));
    };
    let plugin = Arc::new(DefaultPreemption {
        evaluator: Evaluator::new(NAME, handle, args),
        asynchronous: handle.gates().enabled(Gate::SchedulerAsyncPreemption),
        groups_preempt: handle.gates().enabled(Gate::WorkloadAwarePreemption),
        metrics: handle.metrics().clone(),
    });
    Ok(Registration::new(NAME).events(&plugin).pre_enqueue(&plugin).post_filter(&plugin))
}

/// The plugin's arguments by profile, for who wants to know what it would do without asking it.
pub fn args_by_profile(config: &Config) -> BTreeMap<String, DefaultPreemptionArgs> {
    let args = config.profiles.iter().filter_map(|profile| match profile.args(NAME) {
        PluginArgs::DefaultPreemption(args) => Some((profile.scheduler_name.clone(), args.clone())),
        _ => None,
    });
    args.collect()
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
    /// What becomes of a pod's victims is for the plugins to judge that rejected it; the registration only says that
    /// deleted pods matter to this one.
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
    use crate::config::{DefaultPreemptionArgs, FeatureGates};
    use crate::framework::{CycleState, Diagnosis, FilterRunner, NodeRef, WaitDecision};
    use crate::testing::{Harness, PodFixture, node, pod};

    fn plugin(gates: FeatureGates) -> Harness {
        let args = DefaultPreemptionArgs { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 };
        Harness::build(gates, PluginArgs::DefaultPreemption(args), Ok(()), factory).expect("the plugin can be built")
    }

    #[test]
    fn other_args_are_refused() {
        let refused = Harness::build(FeatureGates::default(), PluginArgs::None, Ok(()), factory).err();
        assert_eq!(refused, Some(PluginError::new("got args of type none, want *DefaultPreemptionArgs")));
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
            harness.handle.listers().pods.apply(preemptor.clone().build());
            let rejection = Rejection::unschedulable(format!("preemption: {text}"));
            let expected = PostFilterOutcome::Reject { rejection, nominated: nominated.map(str::to_owned) };
            assert_eq!(harness.post_filter(&preemptor, CycleState::default()), Ok(expected));
        };
        let never = pod("p").set("spec.preemptionPolicy", "Never".into());
        check(never, "not eligible due to preemptionPolicy=Never.", None);
        check(pod("p"), "0/0 nodes are available:", Some(""));
    }

    /// Takes any pod on an empty node.
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

    #[test]
    fn a_pod_whose_victims_are_being_sent_away_is_held_back() {
        let check = |asynchronous: bool, expected: Verdict| {
            let gates = FeatureGates::default().with(Gate::SchedulerAsyncPreemption, asynchronous);
            let harness = plugin(gates).cluster(vec![node("n")], &[pod("v").on("n"), pod("w").on("n")]);
            let preemptor = pod("p").priority(1);
            harness.handle.listers().pods.apply(preemptor.clone().build());
            let (info, mut state) = (preemptor.info(), CycleState::default());
            let now = harness.handle.clock().now();
            let mut cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
            let absent = Some(Rejection::unschedulable("full"));
            let diagnosis = Diagnosis { absent, ..Diagnosis::default() };
            let failed = PostFilterContext { diagnosis: &diagnosis, filters: &Empty, extenders: &(), random: 0 };
            let outcome = harness.registration.post_filter.as_ref().expect("PostFilter").post_filter(&mut cx, &failed);
            // Where the cycle waits for the victims, this one's effects refuse to.
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

    /// Fits where no pod is.
    struct Alone;

    impl FilterRunner for Alone {
        fn run_filters(&self, _: &CycleContext<'_>, node: NodeRef<'_>) -> Result<Verdict, PluginError> {
            Ok(if node.pods().is_empty() { Verdict::Pass } else { Verdict::unschedulable("taken") })
        }

        fn run_filters_with_nominated_pods(
            &self,
            cx: &CycleContext<'_>,
            on: NodeRef<'_>,
        ) -> Result<Verdict, PluginError> {
            self.run_filters(cx, on)
        }

        fn add_pod(&self, _: &mut CycleContext<'_>, _: &PodInfo, _: NodeRef<'_>) -> Result<(), PluginError> {
            Ok(())
        }

        fn remove_pod(&self, _: &mut CycleContext<'_>, _: &PodInfo, _: NodeRef<'_>) -> Result<(), PluginError> {
            Ok(())
        }
    }

    #[test]
    fn a_pod_whose_victims_are_being_sent_away_waits_for_that() {
        let preemptor = pod("p").priority(1);
        let harness = plugin(FeatureGates::default()).cluster(vec![node("n")], &[pod("v").on("n")]);
        let listers = harness.handle.listers();
        drop((listers.pods.apply(preemptor.clone().build()), listers.pods.apply(pod("v").on("n").build())));
        let timeouts = vec![("W".into(), Duration::from_secs(9))];
        let waiting = harness.handle.waiting_pods().add(&pod("v").on("n").info(), timeouts, Mono::ZERO);
        let (info, mut state, now) = (preemptor.info(), CycleState::default(), harness.handle.clock().now());
        let mut cx = CycleContext { pod: &info, snapshot: &harness.snapshot, state: &mut state, now };
        let diagnosis = Diagnosis { absent: Some(Rejection::unschedulable("taken")), ..Diagnosis::default() };
        let failed = PostFilterContext { diagnosis: &diagnosis, filters: &Alone, extenders: &(), random: 0 };
        let outcome = harness.registration.post_filter.as_ref().expect("PostFilter").post_filter(&mut cx, &failed);
        assert_eq!(outcome, Ok(PostFilterOutcome::Success { nominated: Some("n".to_owned()) }));
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
