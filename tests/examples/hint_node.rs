//! `MyPlugin`: a pod runs only on the node that its label `hintNode` names. This is the smallest complete filter plugin.
//!
//! A plugin consists of a struct, a trait for each extension point that it implements, and a factory. This plugin implements
//! two traits: [`FilterPlugin`] accepts or rejects nodes, and [`EnqueueExtensions`] names the events that may help a rejected
//! pod. Without the second trait, a rejected pod would be retried after every change in the cluster, which is correct but slow.
//!
//! `myscheduler.rs` in this folder adds the plugin to a scheduler, and this configuration enables it:
//!
//! ```yaml
//! apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! profiles:
//! - schedulerName: default-scheduler
//!   plugins:
//!     multiPoint: {enabled: [{name: MyPlugin}]}
//! ```

use std::sync::Arc;

use kube_scheduler::framework::{
    CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, Plugin, PluginError,
    QueueingHint, Registration, Scratch, Verdict,
};
use kube_scheduler::k8s::Pod;
use kube_scheduler::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};

/// The name under which a profile enables the plugin.
pub const NAME: &str = "MyPlugin";

/// The label whose value is the name of the only node that a pod may run on.
pub const LABEL: &str = "hintNode";

/// The reason for rejecting every node for a pod without the label. Reasons appear in a pod's events after a count, as in
/// `0/3 nodes are available: 3 node(s) were not hinted at …`.
const NO_HINT: &str = "node(s) were not hinted at by the pod's label hintNode, which it does not have";

/// The reason for rejecting a node that the label does not name.
const OTHER_NODE: &str = "node(s) didn't match the pod's label hintNode";

/// The plugin `MyPlugin`, which has no state. A plugin with state keeps it in this struct. `Filter` runs on many threads at
/// once, so the state needs a lock. It is better to compute the state in `PreFilter` and to store it in a slot of the cycle
/// state.
#[derive(Debug)]
pub struct HintNode;

/// Builds the plugin for one profile. The first parameter has the plugin's arguments. This plugin has none.
/// `selector_spread.rs` shows a plugin with arguments. `handle` gives the plugin access to the rest of the scheduler.
///
/// The registration alone decides which extension points are called. A plugin that does not register `filter` does not filter,
/// and registering a trait that the plugin does not implement does not compile.
pub fn factory(_args: (), _handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(HintNode);
    Ok(Registration::new(NAME).events(&plugin).filter(&plugin))
}

/// The node name in the pod's label, or `None` without the label.
fn hint(pod: &Pod) -> Option<&str> {
    pod.labels().get(LABEL).map(String::as_str)
}

impl Plugin for HintNode {
    fn name(&self) -> &str {
        NAME
    }
}

impl FilterPlugin for HintNode {
    /// Filters a node by its name. Both rejections are `unresolvable`, because evicting pods would not help, so preemption is
    /// not tried. `unschedulable` would be right for a reason that evictions can remove, such as a port in use.
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(match hint(cx.pod.pod()) {
            None => Verdict::unresolvable(NO_HINT),
            Some(name) if name != node.name() => Verdict::unresolvable(OTHER_NODE),
            Some(_) => Verdict::Pass,
        })
    }
}

impl EnqueueExtensions for HintNode {
    /// Registers the two events that can help a rejected pod: a change of its labels, and the creation of the node that it
    /// names.
    ///
    /// If an event is missing here, rejected pods stay pending until the flush after five minutes. When in doubt, register the
    /// event and let its hint return `Queue`. A node's name never changes, so node updates cannot help.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let label = ClusterEvent::new(EventResource::UnschedulablePod, ActionType::UPDATE_POD_LABEL);
        let node = ClusterEvent::new(EventResource::Node, ActionType::ADD);
        Ok(vec![EventRegistration::with_hint(label, on_label), EventRegistration::with_hint(node, on_node)])
    }
}

/// The hint for a pod whose labels changed. It is called for every waiting pod. Only the pod's own update can help, and only if
/// the label now names another node.
#[expect(clippy::unnecessary_wraps, reason = "hints may fail")]
fn on_label(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (old, new) = objects.pods();
    let helps = new.is_some_and(|new| {
        let before = old.and_then(|old| hint(old));
        new.uid() == pod.uid() && hint(new).is_some() && hint(new) != before
    });
    Ok(if helps { QueueingHint::Queue } else { QueueingHint::Skip })
}

/// The hint for an added node.
#[expect(clippy::unnecessary_wraps, reason = "hints may fail")]
fn on_node(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (_, new) = objects.nodes();
    let helps = new.is_some_and(|node| hint(pod.pod()) == Some(node.name()));
    Ok(if helps { QueueingHint::Queue } else { QueueingHint::Skip })
}

#[cfg(test)]
mod tests {
    use kube_scheduler::framework::Rejection;
    use kube_scheduler::model::Object;
    use kube_scheduler::testing::{Harness, NodeFixture, PodFixture, node, pod};

    use super::*;

    #[test]
    fn pod_fits_only_the_node_in_its_label() {
        let check = |pod: PodFixture, expected: [Option<&'static str>; 2]| {
            let harness = Harness::new(factory).cluster(vec![node("a"), node("b")], &[]);
            let expected = expected.map(|reason| reason.map(Rejection::unresolvable));
            assert_eq!(harness.rejections(&pod), expected);
        };
        check(pod("p").label(LABEL, "a"), [None, Some(OTHER_NODE)]);
        check(pod("p").label(LABEL, "b"), [Some(OTHER_NODE), None]);
        check(pod("p").label(LABEL, "c"), [Some(OTHER_NODE), Some(OTHER_NODE)]);
        check(pod("p").label(LABEL, ""), [Some(OTHER_NODE), Some(OTHER_NODE)]);
        check(pod("p").label("other", "a"), [Some(NO_HINT), Some(NO_HINT)]);
    }

    #[test]
    fn changed_node_label_of_the_pod_requeues() {
        let event = ClusterEvent::new(EventResource::UnschedulablePod, ActionType::UPDATE_POD_LABEL);
        let check = |old: PodFixture, new: PodFixture, expected: QueueingHint| {
            let (old, new) = (Object::Pod(old.build()), Object::Pod(new.build()));
            assert_eq!(Harness::new(factory).hint_of(&pod("p"), &event, Some(old), Some(new)), expected);
        };
        check(pod("p"), pod("p").label(LABEL, "a"), QueueingHint::Queue);
        check(pod("p").label(LABEL, "a"), pod("p").label(LABEL, "b"), QueueingHint::Queue);
        check(pod("p").label(LABEL, "a"), pod("p"), QueueingHint::Skip);
        check(pod("p").label(LABEL, "a"), pod("p").label(LABEL, "a").label("x", "y"), QueueingHint::Skip);
        check(pod("q"), pod("q").label(LABEL, "a"), QueueingHint::Skip);
    }

    #[test]
    fn added_node_requeues_pods_that_name_it() {
        let check = |action: ActionType, new: NodeFixture, expected: QueueingHint| {
            let event = ClusterEvent::new(EventResource::Node, action);
            let new = Object::Node(new.build());
            let waiting = pod("p").label(LABEL, "a");
            assert_eq!(Harness::new(factory).hint_of(&waiting, &event, None, Some(new)), expected);
        };
        check(ActionType::ADD, node("a"), QueueingHint::Queue);
        check(ActionType::ADD, node("b"), QueueingHint::Skip);
        check(ActionType::UPDATE_NODE_LABEL, node("a"), QueueingHint::Skip);
    }
}
