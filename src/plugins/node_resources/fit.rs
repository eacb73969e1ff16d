//! `NodeResourcesFit`: rejects nodes without room for the pod's requests, and scores nodes by their utilization.
//!
//! Follows `pkg/scheduler/framework/plugins/noderesources/fit.go @v1.36.3`.

use std::sync::Arc;

use super::DeviceClasses;
use super::args::NodeResourcesFitArgs;
use super::demand::{Demand, Ignored};
use super::hints::Hints;
use super::scorer::ScoredResources;
use super::strategy::Strategy;
use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::PluginArgs as _;
use crate::framework::{
    Candidates, CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, NodeScores, Plugin,
    PluginError, PreFilterOutcome, PreFilterPlugin, PreScoreOutcome, PreScorePlugin, Registration, ScorePlugin,
    Scratch, SignOutcome, SignPlugin, Slot, Verdict,
};
use crate::k8s::requests::DEFAULT_REQUESTS;
use crate::k8s::{Pod, RequestOptions, pod_requests};
use crate::model::PodInfo;

/// Name of the plugin.
pub const NAME: &str = "NodeResourcesFit";

/// The in-tree plugin `NodeResourcesFit`.
#[derive(Debug)]
pub struct Fit {
    ignored: Ignored,
    resources: ScoredResources,
    strategy: Strategy,
    classes: DeviceClasses,
    hints: Hints,
    /// The resources that the pod needs, from `PreFilter`.
    demand: Slot<Arc<Demand>>,
    /// The pod's requests by resource as scoring counts them, from `PreScore`.
    requests: Slot<Arc<[i64]>>,
}

impl Fit {
    /// Returns the plugin with these arguments. Fails if the arguments are invalid.
    fn new(args: &NodeResourcesFitArgs, handle: &Handle) -> Result<Self, PluginError> {
        let mut errors = FieldErrors::default();
        args.validate(&FieldPath::default(), handle.gates(), &mut errors);
        if !errors.is_empty() {
            return Err(PluginError::new(errors.to_string()));
        }
        let strategy = args.scoring_strategy.as_ref().ok_or("scoring strategy not specified")?;
        let classes = DeviceClasses::new(handle)?;
        Ok(Self {
            ignored: Ignored {
                resources: args.ignored_resources.iter().cloned().collect(),
                groups: args.ignored_resource_groups.iter().cloned().collect(),
            },
            resources: ScoredResources::new(&strategy.resources, false),
            strategy: Strategy::new(strategy)?,
            hints: Hints::new(handle.gates(), classes.clone()),
            classes,
            demand: handle.slot(),
            requests: handle.slot(),
        })
    }

    /// Builds the plugin for a profile.
    #[expect(clippy::needless_pass_by_value, reason = "every factory is called alike")]
    pub fn factory(args: NodeResourcesFitArgs, handle: &Handle) -> Result<Registration, PluginError> {
        let plugin = Arc::new(Self::new(&args, handle)?);
        let registration = Registration::new(NAME).events(&plugin).sign(&plugin).pre_filter(&plugin).filter(&plugin);
        Ok(registration.pre_score(&plugin).score(&plugin))
    }

    fn demand<'a>(&self, cx: &'a CycleContext<'_>) -> Result<&'a Demand, PluginError> {
        let demand = cx.state.get(self.demand).map(|demand| &**demand);
        demand.ok_or_else(|| PluginError::new("error reading \"PreFilterNodeResourcesFit\" from cycleState: not found"))
    }

    /// Returns the pod's requests as scoring counts them. Only the requests of the containers count, with upstream's defaults for
    /// missing requests. Pod-level requests and the pod's status do not count, because upstream builds the scorers of this
    /// plugin without the feature gates.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#nodeResourceStrategyTypeMap @v1.36.3`.
    fn requests(&self, pod: &Pod) -> Arc<[i64]> {
        let options =
            RequestOptions { skip_pod_level: true, non_missing: DEFAULT_REQUESTS, ..RequestOptions::default() };
        self.resources.of_pod(&pod_requests(pod, &options))
    }

    fn requests_of<'a>(&self, cx: &'a CycleContext<'_>) -> std::borrow::Cow<'a, Arc<[i64]>> {
        let kept = cx.state.get(self.requests).map(std::borrow::Cow::Borrowed);
        kept.unwrap_or_else(|| std::borrow::Cow::Owned(self.requests(cx.pod.pod())))
    }

    fn check_resources(&self) -> Result<(), PluginError> {
        if self.resources.is_empty() { Err(PluginError::new("resources not found")) } else { Ok(()) }
    }
}

impl Plugin for Fit {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreFilterPlugin for Fit {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        let demand = Demand::new(cx.pod.spec_requests(), &self.ignored, &self.classes);
        cx.state.set(self.demand, Arc::new(demand));
        Ok(PreFilterOutcome::Pass)
    }
}

impl FilterPlugin for Fit {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(self.demand(cx)?.verdict(&node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        let demand = self.demand(cx)?;
        block.retain(|node, _| Ok(demand.verdict(&node)));
        Ok(())
    }
}

impl PreScorePlugin for Fit {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let requests = self.requests(cx.pod.pod());
        cx.state.set(self.requests, requests);
        Ok(PreScoreOutcome::Pass)
    }
}

impl ScorePlugin for Fit {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        self.check_resources()?;
        Ok(self.strategy.score(self.resources.on(&node, &self.requests_of(cx))))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        self.check_resources()?;
        let requests = self.requests_of(cx);
        for (node, score) in scores.nodes.iter().zip(scores.scores.iter_mut()) {
            *score = self.strategy.score(self.resources.on(node, &requests));
        }
        Ok(())
    }
}

impl SignPlugin for Fit {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(super::sign(pod, &self.classes))
    }
}

impl EnqueueExtensions for Fit {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        Ok(self.hints.events())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{FeatureGates, Gate};
    use crate::framework::{Code, Rejection};
    use crate::plugins::node_resources::fixture::{check_signed, device_class, fit, fit_args, score, verdict};
    use crate::testing::{Harness, NodeFixture, PodFixture, handle, node, pod};

    fn plugin() -> Harness {
        fit(FeatureGates::default(), fit_args(&["cpu", "memory"]))
    }

    fn check_with(plugin: &Harness, wanted: PodFixture, on: NodeFixture, expected: (Code, &[&str])) {
        let mut info = on.info();
        info.add_pod(pod("running").cpu("1").memory("1Gi").request("example.com/gpu", "1").info());
        let verdict = verdict(plugin, wanted, &info);
        let reasons: Vec<&str> = match &verdict {
            Verdict::Pass => Vec::new(),
            Verdict::Reject(rejection) => rejection.reasons.iter().collect(),
        };
        assert_eq!((verdict.code(), reasons.as_slice()), expected);
    }

    /// Checks the verdict on a node of 4 cores, 8 GiB and 2 GPUs that has a pod with 1 core, 1 GiB and 1 GPU.
    fn check(wanted: PodFixture, code: Code, reasons: &[&str]) {
        check_with(&plugin(), wanted, node("n").allocatable("example.com/gpu", "2"), (code, reasons));
    }

    #[test]
    fn what_fits() {
        check(pod("p"), Code::Success, &[]);
        check(pod("p").cpu("3").memory("7Gi").request("example.com/gpu", "1"), Code::Success, &[]);
        check(pod("p").cpu("-5").request("example.com/none", "0"), Code::Success, &[]);
    }

    #[test]
    fn what_is_lacking() {
        check(pod("p").cpu("3001m"), Code::Unschedulable, &["Insufficient cpu"]);
        check(pod("p").cpu("4001m"), Code::UnschedulableAndUnresolvable, &["Insufficient cpu"]);
        check(pod("p").memory("8Gi"), Code::Unschedulable, &["Insufficient memory"]);
        check(
            pod("p").request("ephemeral-storage", "1"),
            Code::UnschedulableAndUnresolvable,
            &["Insufficient ephemeral-storage"],
        );
        check(pod("p").request("example.com/gpu", "2"), Code::Unschedulable, &["Insufficient example.com/gpu"]);
        check(
            pod("p").request("example.com/gpu", "2").request("example.com/a", "1").memory("8Gi").cpu("4"),
            Code::UnschedulableAndUnresolvable,
            &["Insufficient cpu", "Insufficient memory", "Insufficient example.com/a", "Insufficient example.com/gpu"],
        );
    }

    #[test]
    fn the_number_of_pods_comes_first_and_can_be_helped() {
        let full = || node("n").allocatable("pods", "1");
        check_with(&plugin(), pod("p"), full(), (Code::Unschedulable, &["Too many pods"]));
        let reasons: &[&str] = &["Too many pods", "Insufficient cpu"];
        check_with(&plugin(), pod("p").cpu("4"), full(), (Code::Unschedulable, reasons));
    }

    #[test]
    fn free_amounts_wrap() {
        let mut info = node("n").allocatable("memory", "-9223372036854775800").info();
        info.add_pod(pod("running").memory("1Ki").info());
        assert_eq!(verdict(&plugin(), pod("p").memory("1Gi"), &info), Verdict::Pass);
    }

    #[test]
    fn ignored_resources_are_extended_ones() {
        let mut args = fit_args(&["cpu"]);
        args.ignored_resources = vec!["example.com/gpu".into(), "hugepages-2Mi".into(), "cpu".into()];
        args.ignored_resource_groups = vec!["group.example".into(), "kubernetes.io".into()];
        let plugin = fit(FeatureGates::default(), args);
        let check = |wanted: PodFixture, reasons: &[&str]| {
            let code = if reasons.is_empty() { Code::Success } else { Code::UnschedulableAndUnresolvable };
            check_with(&plugin, wanted, node("n"), (code, reasons));
        };
        check(pod("p").request("example.com/gpu", "9").request("group.example/x", "9"), &[]);
        check(pod("p").request("example.com/other", "1"), &["Insufficient example.com/other"]);
        check(pod("p").request("hugepages-2Mi", "2Mi"), &["Insufficient hugepages-2Mi"]);
        check(pod("p").request("kubernetes.io/x", "1"), &["Insufficient kubernetes.io/x"]);
        check(pod("p").cpu("5"), &["Insufficient cpu"]);
    }

    #[test]
    fn names_and_groups_are_ignored_without_each_other() {
        let check = |resources: &[&str], groups: &[&str], code: Code| {
            let mut args = fit_args(&["cpu"]);
            args.ignored_resources = resources.iter().map(|name| (*name).to_owned()).collect();
            args.ignored_resource_groups = groups.iter().map(|name| (*name).to_owned()).collect();
            let plugin = fit(FeatureGates::default(), args);
            let verdict = verdict(&plugin, pod("p").request("group.example/x", "1"), &node("n").info());
            assert_eq!(verdict.code(), code, "{resources:?} {groups:?}");
        };
        check(&[], &["group.example"], Code::Success);
        check(&["group.example/x"], &[], Code::Success);
        check(&[], &[], Code::UnschedulableAndUnresolvable);
    }

    #[test]
    fn what_a_device_class_stands_behind_is_left_to_it_where_the_node_has_none() {
        let check = |gates: FeatureGates, wanted: &str, has: &str, code: Code| {
            let plugin = fit(gates, fit_args(&["cpu"]));
            plugin.handle.listers().put(device_class("gpus", Some("example.com/mapped")));
            let info = node("n").allocatable(wanted, has).info();
            assert_eq!(verdict(&plugin, pod("p").request(wanted, "2"), &info).code(), code, "{wanted} {has}");
            let refuses = matches!(
                plugin.registration.sign.as_ref().expect("Sign").sign(&pod("p").request(wanted, "2").info()),
                Ok(SignOutcome::Refuse(Rejection { .. }))
            );
            assert_eq!(refuses, gates.enabled(Gate::DRAExtendedResource) && wanted != "example.com/other");
        };
        let on = FeatureGates::default();
        check(on, "example.com/mapped", "0", Code::Success);
        check(on, "example.com/mapped", "1", Code::UnschedulableAndUnresolvable);
        check(on, "deviceclass.resource.kubernetes.io/gpus", "0", Code::Success);
        check(on, "example.com/other", "0", Code::UnschedulableAndUnresolvable);
        let off = on.with(Gate::DRAExtendedResource, false);
        check(off, "example.com/mapped", "0", Code::UnschedulableAndUnresolvable);
    }

    #[test]
    fn requests_are_signed_unless_a_device_class_stands_behind_one() {
        check_signed(&fit(FeatureGates::default(), fit_args(&["cpu"])));
    }

    #[test]
    fn scores_count_containers_with_defaults_and_not_the_pod_as_a_whole() {
        let mut plugin = plugin();
        let mut check = |wanted: PodFixture, expected: i64| {
            let info = node("n").allocatable("cpu", "1").allocatable("memory", "1000Mi").info();
            assert_eq!(score(&mut plugin, wanted, info), Some(Ok(expected)));
        };
        check(pod("p"), i64::midpoint(90, 80));
        check(pod("p").cpu("0").memory("0"), 100);
        check(pod("p").cpu("500m").memory("500Mi"), 50);
        check(pod("p").set("spec.resources", json!({"requests": {"cpu": "1", "memory": "1000Mi"}})), 85);
        check(pod("p").cpu("2").memory("2000Mi"), 0);
    }

    #[test]
    fn filter_needs_what_pre_filter_left() {
        let outcome = plugin().bare_filter(&pod("p"), node("n"));
        let text = "error reading \"PreFilterNodeResourcesFit\" from cycleState: not found";
        assert_eq!(outcome, Err(PluginError::new(text)));
    }

    #[test]
    fn without_resources_scoring_fails_and_invalid_args_are_refused() {
        let outcome = score(&mut fit(FeatureGates::default(), fit_args(&[])), pod("p"), node("n").info());
        assert_eq!(outcome, Some(Err(PluginError::new("resources not found"))));
        let handle = handle(FeatureGates::default());
        let refused = Fit::factory(NodeResourcesFitArgs::default(), &handle).expect_err("no strategy");
        assert_eq!(refused.to_string(), "scoring strategy not specified");
        let mut args = fit_args(&["cpu"]);
        args.ignored_resource_groups = vec!["a/b".into()];
        let refused = Fit::factory(args, &handle).expect_err("a slash");
        let text = "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'";
        assert_eq!(refused.to_string(), text);
    }
}
