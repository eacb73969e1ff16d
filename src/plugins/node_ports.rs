//! `NodePorts`: a pod does not run on a node where one of its host ports is in use.
//!
//! Follows `pkg/scheduler/framework/plugins/nodeports/node_ports.go @v1.36.3`.

use std::sync::Arc;

use super::event::{deleted_pod, hint, hints_enabled, node_event};
use super::json;
use crate::framework::{
    Candidates, CycleContext, CycleState, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, Plugin,
    PluginError, PreFilterOutcome, PreFilterPlugin, QueueingHint, Registration, Scratch, SignOutcome, SignPlugin, Slot,
    Verdict,
};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, HostPort, HostPorts, NodeInfo, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "NodePorts";

const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

/// Cycle state that marks that `PreFilter` ran. The ports themselves are in [`PodInfo`].
#[derive(Clone, Copy, Debug)]
struct Prepared;

/// The in-tree plugin `NodePorts`.
#[derive(Debug)]
struct NodePorts {
    hints: bool,
    prepared: Slot<Prepared>,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(NodePorts { hints: hints_enabled(handle), prepared: handle.slot() });
    Ok(Registration::new(NAME).events(&plugin).pre_filter(&plugin).filter(&plugin).sign(&plugin))
}

fn decide(wanted: &[HostPort], node: &NodeInfo) -> Verdict {
    if fits(wanted, node.used_ports()) { Verdict::Pass } else { Verdict::unschedulable(REASON) }
}

fn fits(wanted: &[HostPort], taken: &HostPorts) -> bool {
    taken.is_empty() || !wanted.iter().any(|port| taken.conflicts_with(port))
}

impl NodePorts {
    /// Checks that `PreFilter` ran. Like upstream, fails if the profile runs `Filter` without `PreFilter`.
    fn require_prepared(&self, state: &CycleState) -> Result<(), PluginError> {
        match state.get(self.prepared) {
            Some(Prepared) => Ok(()),
            None => Err(PluginError::new("reading \"PreFilterNodePorts\" from cycleState: not found")),
        }
    }
}

impl Plugin for NodePorts {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreFilterPlugin for NodePorts {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        if cx.pod.host_ports().is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        cx.state.set(self.prepared, Prepared);
        Ok(PreFilterOutcome::Pass)
    }
}

impl FilterPlugin for NodePorts {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        self.require_prepared(cx.state)?;
        Ok(decide(cx.pod.host_ports(), &node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        self.require_prepared(cx.state)?;
        let wanted = cx.pod.host_ports();
        block.retain(|node, _| Ok(decide(wanted, &node)));
        Ok(())
    }
}

impl SignPlugin for NodePorts {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(SignOutcome::Fragments(vec![json::host_ports(pod.pod())]))
    }
}

impl EnqueueExtensions for NodePorts {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let pod_deleted = ClusterEvent::new(EventResource::Pod, ActionType::DELETE);
        Ok(vec![
            EventRegistration::with_hint(pod_deleted, after_pod_deleted),
            EventRegistration::new(node_event(self.hints, ActionType::ADD)),
        ])
    }
}

/// Returns the hint for a deleted pod.
/// Follows `pkg/scheduler/framework/plugins/nodeports/node_ports.go#isSchedulableAfterPodDeleted @v1.36.3`.
fn after_pod_deleted(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let deleted = deleted_pod(objects)?;
    if deleted.node_name().is_none() && deleted.nominated_node_name().is_none() {
        return Ok(QueueingHint::Skip);
    }
    let mut freed = HostPorts::default();
    for port in deleted.host_ports().filter_map(HostPort::of) {
        freed.add(&port);
    }
    Ok(hint(!fits(pod.host_ports(), &freed)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Harness, PodFixture, node, pod};

    /// A pod with one container that uses this host port. An empty protocol or address means the default.
    fn port(name: &str, port: i32, protocol: &str, ip: &str) -> PodFixture {
        let port = json!({"containerPort": 1, "hostPort": port, "protocol": protocol, "hostIP": ip});
        pod(name).set("spec.containers", json!([{"name": "c", "ports": [port]}]))
    }

    fn check(wanted: &PodFixture, taken: &[PodFixture], fits: bool) {
        let harness = Harness::new(factory);
        let expected = if fits {
            Verdict::Pass
        } else {
            Verdict::unschedulable("node(s) didn't have free ports for the requested pod ports")
        };
        harness.check_filter_on(wanted, node("n"), taken, &expected);
    }

    #[test]
    fn used_host_ports_reject_the_pod() {
        check(&port("p", 80, "", ""), &[], true);
        check(&port("p", 80, "", ""), &[port("a", 81, "", "")], true);
        check(&port("p", 80, "", ""), &[port("a", 81, "", ""), port("b", 80, "TCP", "10.0.0.1")], false);
        check(&port("p", 80, "UDP", ""), &[port("a", 80, "TCP", "")], true);
        check(&port("p", 80, "", "10.0.0.1"), &[port("a", 80, "", "0.0.0.0")], false);
        check(&port("p", 80, "", "10.0.0.1"), &[port("a", 80, "", "10.0.0.2")], true);
        check(&port("p", 80, "", "10.0.0.1"), &[port("a", 80, "", "::")], true);
    }

    #[test]
    fn pods_without_host_ports_skip_the_filter() {
        let harness = Harness::new(factory);
        assert_eq!(harness.pre_filter(&pod("p")).0, Ok(PreFilterOutcome::Skip));
        assert_eq!(harness.pre_filter(&port("p", 0, "", "")).0, Ok(PreFilterOutcome::Skip));
        assert_eq!(harness.pre_filter(&port("p", 80, "", "")).0, Ok(PreFilterOutcome::Pass));
    }

    #[test]
    fn filter_without_pre_filter_is_an_error() {
        let harness = Harness::new(factory);
        let error = harness.bare_filter(&port("p", 80, "", ""), node("n")).expect_err("no state");
        assert_eq!(error.to_string(), "reading \"PreFilterNodePorts\" from cycleState: not found");
    }

    #[test]
    fn deleted_pod_with_a_wanted_port_requeues() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events(), ["PodDelete", "NodeAdd"]);
        let waiting = port("p", 80, "", "");
        let check = |deleted: PodFixture, expected| assert_eq!(harness.pod_delete(&waiting, 0, deleted), expected);
        check(port("a", 80, "", "").on("n"), QueueingHint::Queue);
        check(port("a", 80, "", "").nominated("n"), QueueingHint::Queue);
        check(port("a", 80, "", ""), QueueingHint::Skip);
        check(port("a", 81, "", "").on("n"), QueueingHint::Skip);
        check(pod("a").on("n"), QueueingHint::Skip);
    }

    #[test]
    fn signature_has_the_ports_of_all_containers() {
        let harness = Harness::new(factory);
        harness.check_signature(&pod("p"), &[("v1.Pod.Spec.HostPorts()", "[]")]);
        let both = port("p", 80, "", "").set(
            "spec.initContainers",
            json!([{"name": "i", "ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 80}]}]),
        );
        harness.check_signature(&both, &[("v1.Pod.Spec.HostPorts()", "[9,80]")]);
    }
}
