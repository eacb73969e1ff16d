//! The kinds that the scheduler watches regardless of its plugins.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::storage::v1::CSINode;

use crate::config::{FeatureGates, Gate};
use crate::k8s::{Node, Pod};
use crate::listers::{Lister, Listers, Sealed};

/// Asks for the listers of the kinds that upstream watches regardless of its plugins. These are pods and nodes, namespaces for
/// the queue, `CSINode` for the CSI manager, and the device kinds for the DRA manager. Returns the listers of pods and nodes.
/// Follows `pkg/scheduler/scheduler.go#New @v1.36.3`.
pub(crate) fn ask_for_upstream_kinds(
    listers: &Listers,
    gates: &FeatureGates,
) -> Result<(Lister<Pod>, Lister<Node>), Sealed> {
    listers.ask::<Namespace>()?;
    listers.ask::<CSINode>()?;
    if gates.enabled(Gate::DynamicResourceAllocation) {
        listers.ask::<ResourceClaim>()?;
        listers.ask::<ResourceSlice>()?;
        listers.ask::<DeviceClass>()?;
    }
    Ok((listers.ask()?, listers.ask()?))
}
