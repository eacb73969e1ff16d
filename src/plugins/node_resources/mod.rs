//! `NodeResourcesFit` and `NodeResourcesBalancedAllocation`: filtering and scoring by the resources of nodes and pods.
//!
//! Follows `pkg/scheduler/framework/plugins/noderesources @v1.36.3`.

mod args;
mod balanced_allocation;
mod demand;
mod device_class;
mod fit;
#[cfg(test)]
mod fixture;
mod hints;
mod scorer;
mod strategy;

pub use args::{
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, RequestedToCapacityRatio, ResourceSpec, ScoringStrategy,
    ignore_resources,
};
pub use balanced_allocation::{BalancedAllocation, NAME as BALANCED_ALLOCATION};
pub use device_class::DeviceClasses;
pub use fit::{Fit, NAME as FIT};

use crate::framework::{Rejection, SignOutcome, Verdict};
use crate::model::{NodeInfo, PodInfo};
use crate::plugins::json;
use demand::{Demand, Ignored};

/// Returns whether the node has room for the pod, with no resources ignored.
/// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fits @v1.36.3`.
pub(super) fn fits(pod: &PodInfo, node: &NodeInfo, classes: &DeviceClasses) -> Verdict {
    Demand::new(pod.spec_requests(), &Ignored::default(), classes).verdict(node)
}

/// Returns the signature of both plugins: the pod's requests. A pod that requests a resource of a device class is not signed,
/// because the devices of a node can change without a change of the Node object.
/// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fit.SignPod @v1.36.3`.
fn sign(pod: &PodInfo, classes: &DeviceClasses) -> SignOutcome {
    let requests = pod.spec_requests();
    if requests.scalars().any(|(name, amount)| amount != 0 && classes.is_mapped(name)) {
        let reason = "signature disabled when dra extended resources are used in the cluster";
        return SignOutcome::Refuse(Rejection::unschedulable(reason));
    }
    SignOutcome::Fragments(vec![json::resources(requests)])
}
