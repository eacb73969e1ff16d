//! `NodeName`: a pod whose spec names a node runs only on that node.
//!
//! Follows `pkg/scheduler/framework/plugins/nodename/node_name.go @v1.36.3`.

use std::sync::Arc;

use super::event::{hints_enabled, node_event};
use super::json;
use crate::framework::{
    Candidates, CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, Plugin, PluginError,
    Registration, Scratch, SignOutcome, SignPlugin, Verdict,
};
use crate::model::{ActionType, NodeInfo, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "NodeName";

const REASON: &str = "node(s) didn't match the requested node name";

/// The in-tree plugin `NodeName`.
#[derive(Debug)]
struct NodeName {
    hints: bool,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(NodeName { hints: hints_enabled(handle) });
    Ok(Registration::new(NAME).events(&plugin).filter(&plugin).sign(&plugin))
}

fn decide(wanted: Option<&str>, node: &NodeInfo) -> Verdict {
    match wanted {
        Some(name) if name != node.name() => Verdict::unresolvable(REASON),
        _ => Verdict::Pass,
    }
}

impl Plugin for NodeName {
    fn name(&self) -> &str {
        NAME
    }
}

impl FilterPlugin for NodeName {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(decide(cx.pod.pod().node_name(), &node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        let wanted = cx.pod.pod().node_name();
        if wanted.is_some() {
            block.retain(|node, _| Ok(decide(wanted, &node)));
        }
        Ok(())
    }
}

impl SignPlugin for NodeName {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(SignOutcome::Fragments(vec![json::node_name(pod.pod())]))
    }
}

impl EnqueueExtensions for NodeName {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        Ok(vec![EventRegistration::new(node_event(self.hints, ActionType::ADD))])
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

    use super::*;
    use crate::testing::{Harness, PodFixture, node, pod};

    fn check(pod: PodFixture, expected: Verdict) {
        Harness::new(factory).check_filter(&pod, node("n"), &expected);
    }

    #[test]
    fn named_pod_fits_only_its_node() {
        check(pod("p"), Verdict::Pass);
        check(pod("p").on(""), Verdict::Pass);
        check(pod("p").on("n"), Verdict::Pass);
        check(pod("p").on("m"), Verdict::unresolvable("node(s) didn't match the requested node name"));
    }

    #[test]
    fn node_add_always_requeues() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events(), ["NodeAdd"]);
        assert!(harness.registered[0].hint.is_none());
    }

    #[test]
    fn signature_is_the_node_name() {
        let harness = Harness::new(factory);
        harness.check_signature(&pod("p"), &[("v1.Pod.Spec.NodeName", r#""""#)]);
        harness.check_signature(&pod("p").on("n"), &[("v1.Pod.Spec.NodeName", r#""n""#)]);
    }
}
