//! Checks whether a pod might fit on a node, using the basic plugins only.
//!
//! Used when queueing hints are off (`SchedulerQueueingHints`). Then this check decides which pods a new or changed node could
//! help, because no hint does.

use std::sync::Arc;

use crate::config::Gate;
use crate::framework::{Handle, PluginError, Verdict};
use crate::k8s::tolerations::do_not_schedule;
use crate::k8s::{RequiredNodeAffinity, find_untolerated_taint};
use crate::model::{NodeInfo, PodInfo};
use crate::plugins::node_resources::{self, DeviceClasses};

/// The checks of the basic plugins, with the feature gates that affect them.
struct Checks {
    classes: DeviceClasses,
    /// Whether tolerations may compare numbers: gate `TaintTolerationComparisonOperators`.
    compares: bool,
}

impl Checks {
    fn new(handle: &Handle) -> Result<Self, PluginError> {
        let compares = handle.gates().enabled(Gate::TaintTolerationComparisonOperators);
        Ok(Self { classes: DeviceClasses::new(handle)?, compares })
    }

    /// Whether the pod might fit. Checks resources, node affinity, node name, host ports and taints, in that order.
    /// Follows `pkg/scheduler/eventhandlers.go#preCheckForNode @v1.36.3`.
    fn might_fit(&self, pod: &PodInfo, info: &NodeInfo) -> bool {
        let Some(node) = info.try_node() else { return false };
        let spec = &pod.pod().spec;
        node_resources::fits(pod, info, &self.classes) == Verdict::Pass
            && RequiredNodeAffinity::new(pod.pod()).matches(node).unwrap_or(false)
            && pod.pod().node_name().is_none_or(|name| name == node.name())
            && !pod.host_ports().iter().any(|port| info.used_ports().conflicts_with(port))
            && find_untolerated_taint(&node.spec.taints, &spec.tolerations, do_not_schedule, self.compares).is_none()
    }
}

/// A function that returns whether the pod might fit on the node.
pub type NodeCheck = Arc<dyn Fn(&PodInfo, &NodeInfo) -> bool + Send + Sync>;

/// Returns the check by the basic plugins, with the feature gates of `handle`. Fails if the gates require a lister of device
/// classes, and watches have started without one.
pub fn node_check(handle: &Handle) -> Result<NodeCheck, PluginError> {
    let checks = Checks::new(handle)?;
    Ok(Arc::new(move |pod, node| checks.might_fit(pod, node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FeatureGates;
    use crate::testing::{NodeFixture, PodFixture, handle, node, pod};

    fn might_fit(pod: &PodInfo, node: &NodeInfo, gates: FeatureGates) -> bool {
        let check = node_check(&handle(gates)).expect("nothing is watched yet");
        check(pod, node)
    }

    fn check(pod: PodFixture, node: NodeFixture, expected: bool) {
        assert_eq!(might_fit(&pod.info(), &node.info(), FeatureGates::default()), expected);
    }

    #[test]
    fn each_admission_check_can_reject() {
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
            let gates = FeatureGates::default().with(Gate::TaintTolerationComparisonOperators, on);
            let tainted = node("n").taint("a", "6", "NoSchedule").info();
            assert_eq!(might_fit(&patient.clone().info(), &tainted, gates), on);
        }
        assert!(!might_fit(&pod("p").info(), &NodeInfo::default(), FeatureGates::default()), "no node");
        let mut taken = node("n").info();
        taken.add_pod(pod("q").host_port(80).info());
        assert!(!might_fit(&pod("p").host_port(80).info(), &taken, FeatureGates::default()));
    }
}
