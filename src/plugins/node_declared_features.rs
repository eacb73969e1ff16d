//! `NodeDeclaredFeatures`: a pod that needs a kubelet feature runs only on nodes that declare it.
//!
//! Follows `pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go @v1.36.3`. The features that a pod
//! needs are inferred from its spec alone. Only two of the features that nodes declare can be inferred.

use std::sync::Arc;

use super::event::{changed_node, hint, updated_pod};
use super::json;
use crate::config::Gate;
use crate::framework::{
    Candidates, CycleContext, CycleState, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, Plugin,
    PluginError, PreFilterOutcome, PreFilterPlugin, QueueingHint, Registration, Scratch, SignOutcome, SignPlugin, Slot,
    Verdict,
};
use crate::k8s::Pod;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, NodeInfo, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "NodeDeclaredFeatures";

const REASON: &str = "node(s) didn't match Pod's required features";

/// The features that nodes can declare, sorted. A [`FeatureSet`] has one bit for each.
/// Follows `component-helpers/nodedeclaredfeatures/features/registry.go#AllFeatures @v1.36.3`.
const FEATURES: [&str; 5] = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
];
const RESTART_ALL_CONTAINERS: FeatureSet = FeatureSet(1 << 3);
const USER_NAMESPACES_HOST_NETWORK: FeatureSet = FeatureSet(1 << 4);

/// Restart policy action of a container that needs [`RESTART_ALL_CONTAINERS`].
const RESTART_ALL_ACTION: &str = "RestartAllContainers";

/// A set of features, one bit for each of [`FEATURES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FeatureSet(u8);

impl FeatureSet {
    /// Returns the features that the pod needs. Upstream skips a feature if the target version is newer than the feature's
    /// maximum version, but this applies to none of the features.
    /// Follows `component-helpers/nodedeclaredfeatures/framework.go#InferForPodScheduling @v1.36.3`.
    fn required_by(pod: &Pod) -> Self {
        let spec = &pod.spec;
        let mut required = Self::default();
        let mut containers = spec.containers.iter().chain(&spec.init_containers);
        if containers.any(|container| container.restart_policy_actions.iter().any(|rule| rule == RESTART_ALL_ACTION)) {
            required.0 |= RESTART_ALL_CONTAINERS.0;
        }
        if spec.host_network && spec.host_users == Some(false) {
            required.0 |= USER_NAMESPACES_HOST_NETWORK.0;
        }
        required
    }

    /// Returns the features in `declared` that are in [`FEATURES`]. Features that a node declares but are not known are ignored.
    fn declared(declared: &[String]) -> Self {
        let known = |name: &String| FEATURES.binary_search(&name.as_str()).map_or(0, |at| 1 << at);
        Self(declared.iter().map(known).fold(0, |set, bit| set | bit))
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the set as text, one digit per feature.
    /// Follows `component-helpers/nodedeclaredfeatures/bitmap.go#bitmap.String @v1.36.3`.
    fn digits(self) -> String {
        (0..FEATURES.len()).map(|at| if self.0 >> at & 1 == 1 { '1' } else { '0' }).collect()
    }
}

/// The in-tree plugin `NodeDeclaredFeatures`.
#[derive(Debug)]
struct NodeDeclaredFeatures {
    enabled: bool,
    required: Slot<FeatureSet>,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let enabled = handle.gates().enabled(Gate::NodeDeclaredFeatures);
    let plugin = Arc::new(NodeDeclaredFeatures { enabled, required: handle.slot() });
    Ok(Registration::new(NAME).events(&plugin).pre_filter(&plugin).filter(&plugin).sign(&plugin))
}

fn decide(required: FeatureSet, node: &NodeInfo) -> Verdict {
    if required.is_subset_of(FeatureSet::declared(&node.node().status.declared_features)) {
        Verdict::Pass
    } else {
        Verdict::unresolvable(REASON)
    }
}

impl NodeDeclaredFeatures {
    /// Returns the features from `PreFilter`. Like upstream, fails if the profile runs `Filter` without `PreFilter`.
    fn required(&self, state: &CycleState) -> Result<FeatureSet, PluginError> {
        let missing = "error reading \"PreFilterNodeDeclaredFeatures\" from cycle-state: not found";
        state.get(self.required).copied().ok_or_else(|| PluginError::new(missing))
    }
}

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreFilterPlugin for NodeDeclaredFeatures {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        let required = FeatureSet::required_by(cx.pod.pod());
        if !self.enabled || required.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        cx.state.set(self.required, required);
        Ok(PreFilterOutcome::Pass)
    }
}

impl FilterPlugin for NodeDeclaredFeatures {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        if !self.enabled {
            return Ok(Verdict::Pass);
        }
        Ok(decide(self.required(cx.state)?, &node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        if self.enabled {
            let required = self.required(cx.state)?;
            block.retain(|node, _| Ok(decide(required, &node)));
        }
        Ok(())
    }
}

impl SignPlugin for NodeDeclaredFeatures {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        if !self.enabled {
            // While the gate is off, upstream's plugin has no target version, without which it cannot infer features.
            return Err(PluginError::new("target version cannot be nil"));
        }
        let required = FeatureSet::required_by(pod.pod()).digits();
        Ok(SignOutcome::Fragments(vec![json::required_features(&required)]))
    }
}

impl EnqueueExtensions for NodeDeclaredFeatures {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        if !self.enabled {
            return Ok(Vec::new());
        }
        let node_changed = ActionType::ADD | ActionType::UPDATE_NODE_DECLARED_FEATURE;
        Ok(vec![
            EventRegistration::with_hint(ClusterEvent::new(EventResource::Node, node_changed), after_node_change),
            EventRegistration::with_hint(ClusterEvent::new(EventResource::Pod, ActionType::UPDATE), after_pod_update),
        ])
    }
}

fn after_node_change(_pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (old, new) = changed_node(objects)?;
    let unchanged = old.is_some_and(|old| old.status.declared_features == new.status.declared_features);
    Ok(hint(!unchanged))
}

fn after_pod_update(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let new = updated_pod(objects)?;
    if new.uid() != pod.uid() {
        return Ok(QueueingHint::Skip);
    }
    let old = objects.pods().0.ok_or_else(|| PluginError::new("expected a pod before its update"))?;
    let unchanged = FeatureSet::required_by(old) == FeatureSet::required_by(new);
    Ok(hint(!unchanged))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::FeatureGates;
    use crate::model::Object;
    use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

    const RESTART: &str = "RestartAllContainersOnContainerExits";
    const NAMESPACES: &str = "UserNamespacesHostNetworkSupport";

    fn restarting() -> PodFixture {
        let container =
            json!({"name": "c", "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]});
        pod("p").set("spec.containers", json!([container]))
    }

    fn on_host_network() -> PodFixture {
        pod("p").set("spec.hostNetwork", json!(true)).set("spec.hostUsers", json!(false))
    }

    fn declaring(features: &[&str]) -> NodeFixture {
        node("n").set("status.declaredFeatures", json!(features))
    }

    #[test]
    fn feature_constants_match_the_sorted_table() {
        assert!(FEATURES.is_sorted());
        assert_eq!(FeatureSet::declared(&[RESTART.to_owned()]), RESTART_ALL_CONTAINERS);
        assert_eq!(FeatureSet::declared(&[NAMESPACES.to_owned()]), USER_NAMESPACES_HOST_NETWORK);
    }

    #[test]
    fn nodes_without_required_features_are_rejected() {
        let check = |pod: &PodFixture, features: &[&str], fits: bool| {
            let rejected = Verdict::unresolvable("node(s) didn't match Pod's required features");
            let expected = if fits { Verdict::Pass } else { rejected };
            Harness::new(factory).check_filter(pod, declaring(features), &expected);
        };
        check(&restarting(), &[], false);
        check(&restarting(), &["AnUnknownFeature", RESTART], true);
        check(&restarting(), &[NAMESPACES], false);
        check(&on_host_network(), &[RESTART, NAMESPACES], true);
        check(&on_host_network(), &[RESTART], false);
        let init = json!([{"name": "i", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]);
        check(&on_host_network().set("spec.initContainers", init), &[NAMESPACES], false);
    }

    #[test]
    fn pods_without_required_features_skip_the_filter() {
        let check = |pod: &PodFixture, expected| assert_eq!(Harness::new(factory).pre_filter(pod).0, Ok(expected));
        check(&pod("p"), PreFilterOutcome::Skip);
        check(&pod("p").set("spec.hostNetwork", json!(true)), PreFilterOutcome::Skip);
        check(&pod("p").set("spec.hostUsers", json!(false)), PreFilterOutcome::Skip);
        check(&restarting(), PreFilterOutcome::Pass);
    }

    #[test]
    fn filter_without_pre_filter_is_an_error() {
        let error = Harness::new(factory).bare_filter(&restarting(), node("n")).expect_err("no state");
        assert_eq!(error.to_string(), "error reading \"PreFilterNodeDeclaredFeatures\" from cycle-state: not found");
    }

    #[test]
    fn node_and_pod_updates_requeue_by_hint() {
        let harness = Harness::new(factory);
        assert_eq!(harness.registered[0].event.action, ActionType::ADD | ActionType::UPDATE_NODE_DECLARED_FEATURE);
        assert_eq!(harness.registered[1].event.action, ActionType::UPDATE);
        let pod = restarting();
        assert_eq!(harness.node_add(&pod, 0, node("n")), QueueingHint::Queue);
        assert_eq!(harness.node_update(&pod, 0, node("n"), declaring(&["X"])), QueueingHint::Queue);
        assert_eq!(harness.node_update(&pod, 0, declaring(&["X"]), declaring(&["X"])), QueueingHint::Skip);
        assert_eq!(harness.pod_update(&pod, 1, pod.clone(), on_host_network()), QueueingHint::Queue);
        assert_eq!(harness.pod_update(&pod, 1, pod.clone(), pod.clone().label("a", "b")), QueueingHint::Skip);
        assert_eq!(harness.pod_update(&pod, 1, pod.clone(), on_host_network().uid("q")), QueueingHint::Skip);
    }

    #[test]
    fn pod_event_without_an_old_pod_is_an_error() {
        let hint = Harness::new(factory).registered[1].hint.clone().expect("a hint");
        let added = EventObjects { old: None, new: Some(Object::Pod(restarting().build())) };
        let error = hint(&restarting().info(), &added).expect_err("an add").to_string();
        assert_eq!(error, "expected a pod before its update");
    }

    #[test]
    fn with_the_gate_off_the_plugin_does_nothing() {
        let harness = Harness::with_gates(FeatureGates::default().with(Gate::NodeDeclaredFeatures, false), factory);
        assert!(harness.events().is_empty());
        assert_eq!(harness.pre_filter(&restarting()).0, Ok(PreFilterOutcome::Skip));
        assert_eq!(harness.bare_filter(&restarting(), node("n")), Ok(Verdict::Pass));
        assert!(harness.registration.sign.expect("Sign").sign(&restarting().info()).is_err());
    }

    #[test]
    fn signature_has_one_digit_per_feature() {
        let harness = Harness::new(factory);
        harness.check_signature(&pod("p"), &[("v1.Pod.Spec.RequiredFeatures()", r#""00000""#)]);
        harness.check_signature(&restarting(), &[("v1.Pod.Spec.RequiredFeatures()", r#""00010""#)]);
        harness.check_signature(&on_host_network(), &[("v1.Pod.Spec.RequiredFeatures()", r#""00001""#)]);
    }
}
