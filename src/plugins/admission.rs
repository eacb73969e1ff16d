//! Whether a pod might fit on a node, by the basic plugins alone.
//!
//! Asked when hints are off (`SchedulerQueueingHints`): then nobody says which pods a new or changed node could help.

use std::sync::Arc;

use crate::config::Gate;
use crate::framework::{Handle, Verdict};
use crate::k8s::tolerations::do_not_schedule;
use crate::k8s::{RequiredNodeAffinity, find_untolerated_taint};
use crate::model::{NodeInfo, PodInfo};
use crate::plugins::node_resources;

/// Whether the pod might fit: resources, node affinity, node name, host ports and taints, in that order.
/// Follows `pkg/scheduler/eventhandlers.go#preCheckForNode @v1.36.3`.
pub fn might_fit(pod: &PodInfo, info: &NodeInfo, handle: &Handle) -> bool {
    let Some(node) = info.try_node() else { return false };
    let compares = handle.gates().enabled(Gate::TaintTolerationComparisonOperators);
    node_resources::fits(pod, info, handle) == Verdict::Pass
        && RequiredNodeAffinity::new(pod.pod()).matches(node).unwrap_or(false)
        && pod.pod().node_name().is_none_or(|name| name == node.name())
        && !pod.host_ports().iter().any(|port| info.used_ports().conflicts_with(port))
        && find_untolerated_taint(&node.spec.taints, &pod.pod().spec.tolerations, do_not_schedule, compares).is_none()
}

/// Says of a pod and a node whether the one might fit on the other.
pub type NodeCheck = Arc<dyn Fn(&PodInfo, &NodeInfo) -> bool + Send + Sync>;

/// [`might_fit`] with the gates and listers of this handle.
pub fn node_check(handle: &Handle) -> NodeCheck {
    let handle = handle.clone();
    Arc::new(move |pod, node| might_fit(pod, node, &handle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeatureGates;
    use crate::testing::{NodeFixture, PodFixture, handle, node, pod};

    fn check(pod: PodFixture, node: NodeFixture, expected: bool) {
        assert_eq!(might_fit(&pod.info(), &node.info(), &handle(FeatureGates::default())), expected);
    }

    #[test]
    fn each_check_can_say_no() {
        check(pod("p").cpu("1"), node("n"), true);
        check(pod("p").cpu("5"), node("n"), false);
        check(pod("p").node_selector("disk", "ssd"), node("n"), false);
        check(pod("p").on("other"), node("n"), false);
        check(pod("p"), node("n").taint("a", "", "NoSchedule"), false);
        check(pod("p"), node("n").taint("a", "", "PreferNoSchedule"), true);
        check(pod("p").toleration("a", "", "NoSchedule"), node("n").taint("a", "", "NoSchedule"), true);
        let unknown = serde_json::json!([{"matchExpressions": [{"key": "disk", "operator": "Like"}]}]);
        let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
        check(pod("p").set(required, unknown), node("n"), false);
        let patient =
            pod("p").set("spec.tolerations", serde_json::json!([{"key": "a", "operator": "Gt", "value": "5"}]));
        for on in [true, false] {
            let handle = handle(FeatureGates::default().with(Gate::TaintTolerationComparisonOperators, on));
            assert_eq!(
                might_fit(&patient.clone().info(), &node("n").taint("a", "6", "NoSchedule").info(), &handle),
                on
            );
        }
        assert!(!might_fit(&pod("p").info(), &NodeInfo::default(), &handle(FeatureGates::default())), "no node");
        let mut taken = node("n").info();
        taken.add_pod(pod("q").host_port(80).info());
        assert!(!might_fit(&pod("p").host_port(80).info(), &taken, &handle(FeatureGates::default())));
    }
}
