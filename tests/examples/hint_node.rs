//! `MyPlugin`: a pod may only go to the node that its label `hintNode` names. The smallest plugin that does everything a
//! filter should.
//!
//! A plugin is a struct, one trait for each extension point that it has, and a factory. This one has two: [`FilterPlugin`]
//! decides about nodes, and [`EnqueueExtensions`] says when it is worth asking again about a pod that it rejected. Without
//! the second it would be asked again after every change in the cluster, which is correct and slow.
//!
//! `myscheduler.rs` beside this file puts it into a scheduler, and this configuration enables it:
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

/// The label whose value is the name of the only node that a pod may go to.
pub const LABEL: &str = "hintNode";

/// What is said of every node to a pod without the label. Texts end up in a pod's events with a count before them, as in
/// `0/3 nodes are available: 3 node(s) were not hinted at …`.
const NO_HINT: &str = "node(s) were not hinted at by the pod's label hintNode, which it does not have";

/// What is said of nodes that the label does not name.
const OTHER_NODE: &str = "node(s) didn't match the pod's label hintNode";

/// The plugin. It has nothing to remember; one that has keeps it here, and since `Filter` runs on many threads at once,
/// behind a lock or, better, worked out in `PreFilter` and put into a slot of the cycle's state.
#[derive(Debug)]
pub struct HintNode;

/// Builds the plugin for one profile. The first parameter is the plugin's arguments: this plugin has none, and
/// `selector_spread.rs` has some. `handle` is the plugin's way to the rest of the scheduler.
///
/// The registration is the only list of what the plugin can do: leave `filter` out and it does not filter, name a trait
/// that it does not implement and it does not compile.
pub fn factory(_args: (), _handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(HintNode);
    Ok(Registration::new(NAME).events(&plugin).filter(&plugin))
}

/// The node that the pod asks for.
fn hint(pod: &Pod) -> Option<&str> {
    pod.labels().get(LABEL).map(String::as_str)
}

impl Plugin for HintNode {
    fn name(&self) -> &str {
        NAME
    }
}

impl FilterPlugin for HintNode {
    /// Both rejections are `unresolvable`: no pod that could be preempted stands in the way, so preemption is not tried.
    /// `unschedulable` would be right for what goes away with other pods, such as a port that is taken.
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(match hint(cx.pod.pod()) {
            None => Verdict::unresolvable(NO_HINT),
            Some(name) if name != node.name() => Verdict::unresolvable(OTHER_NODE),
            Some(_) => Verdict::Pass,
        })
    }
}

impl EnqueueExtensions for HintNode {
    /// Two things can help a pod that was rejected: a label of its own, and the node that it names.
    ///
    /// An event that is missing here leaves pods pending until the flush after five minutes, so when in doubt register it
    /// and let the hint be coarse. Names of nodes never change, so their updates cannot help.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let label = ClusterEvent::new(EventResource::UnschedulablePod, ActionType::UPDATE_POD_LABEL);
        let node = ClusterEvent::new(EventResource::Node, ActionType::ADD);
        Ok(vec![EventRegistration::with_hint(label, on_label), EventRegistration::with_hint(node, on_node)])
    }
}

/// Labels of a pod changed. It is told of all pods that wait; only the pod's own change can help it, and only if it now
/// asks for another node.
#[expect(clippy::unnecessary_wraps, reason = "hints may fail")]
fn on_label(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (old, new) = objects.pods();
    let helps = new.is_some_and(|new| {
        let before = old.and_then(|old| hint(old));
        new.uid() == pod.uid() && hint(new).is_some() && hint(new) != before
    });
    Ok(if helps { QueueingHint::Queue } else { QueueingHint::Skip })
}

/// A node came.
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
    fn a_pod_goes_to_the_node_that_it_names() {
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
    fn a_new_label_helps_the_pod_that_has_it() {
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
    fn a_new_node_helps_the_pods_that_name_it() {
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
