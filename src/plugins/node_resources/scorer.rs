//! The amounts that scoring uses: for each configured resource, the allocatable and the used amount of a node.

use std::sync::Arc;

use super::args::ResourceSpec;
use crate::k8s::Requests;
use crate::k8s::names::is_scalar_resource;
use crate::model::{CPU, EPHEMERAL_STORAGE, MEMORY, NodeInfo};

/// The field of [`Resources`](crate::model::Resources) that holds a resource's amount.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Cpu,
    Memory,
    EphemeralStorage,
    Scalar(Arc<str>),
    /// The number of pods, and resources that scheduling does not count. No node has an amount of these.
    Uncounted,
}

/// A resource that counts in the score.
#[derive(Clone, Debug)]
pub(super) struct ScoredResource {
    name: String,
    kind: Kind,
    /// The weight of the resource in the score.
    pub(super) weight: i64,
}

/// The amounts of one resource on a node. `allocatable` is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amounts {
    /// Sum of the requests of the pods on the node and of the incoming pod.
    pub(super) requested: i64,
    /// Sum of the requests of the pods on the node.
    pub(super) allocated: i64,
    /// The allocatable amount of the node.
    pub(super) allocatable: i64,
}

/// The resources that count in the score of a plugin.
/// Follows `pkg/scheduler/framework/plugins/noderesources/resource_allocation.go#resourceAllocationScorer @v1.36.3`.
#[derive(Clone, Debug)]
pub(super) struct ScoredResources {
    resources: Vec<ScoredResource>,
    /// Whether CPU and memory count as requested. Otherwise upstream's defaults replace missing requests.
    use_requested: bool,
}

impl ScoredResources {
    pub(super) fn new(specs: &[ResourceSpec], use_requested: bool) -> Self {
        Self { resources: specs.iter().map(ScoredResource::new).collect(), use_requested }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Returns the pod's request for each resource, in the order of the resources.
    pub(super) fn of_pod(&self, requests: &Requests<'_>) -> Arc<[i64]> {
        self.resources.iter().map(|resource| requests.units(&resource.name)).collect()
    }

    /// Returns the amounts on `node` of the resources that count. `pod` has the pod's request for each resource. A resource does
    /// not count if the node has none of it, or if it is scalar and the pod does not request it. A resource that a device class
    /// provides counts only if the node lists it.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/resource_allocation.go#calculateNodeAllocatableRequest @v1.36.3`.
    pub(super) fn on<'a>(
        &'a self,
        node: &'a NodeInfo,
        pod: &'a [i64],
    ) -> impl Iterator<Item = (&'a ScoredResource, Amounts)> {
        self.resources.iter().zip(pod).filter_map(|(resource, &pod)| {
            let (allocatable, allocated) = self.amounts(&resource.kind, node, pod)?;
            (allocatable != 0)
                .then(|| (resource, Amounts { requested: allocated.wrapping_add(pod), allocated, allocatable }))
        })
    }

    fn amounts(&self, kind: &Kind, node: &NodeInfo, pod: i64) -> Option<(i64, i64)> {
        let (has, used) = (node.allocatable(), node.requested());
        Some(match kind {
            Kind::Cpu if self.use_requested => (has.milli_cpu, used.milli_cpu),
            Kind::Cpu => (has.milli_cpu, node.non_zero_requested().milli_cpu),
            Kind::Memory if self.use_requested => (has.memory, used.memory),
            Kind::Memory => (has.memory, node.non_zero_requested().memory),
            Kind::EphemeralStorage => (has.ephemeral_storage, used.ephemeral_storage),
            Kind::Scalar(name) if pod != 0 => (has.scalar(name), used.scalar(name)),
            Kind::Scalar(_) | Kind::Uncounted => return None,
        })
    }
}

impl ScoredResource {
    fn new(spec: &ResourceSpec) -> Self {
        let kind = match spec.name.as_str() {
            CPU => Kind::Cpu,
            MEMORY => Kind::Memory,
            EPHEMERAL_STORAGE => Kind::EphemeralStorage,
            name if is_scalar_resource(name) => Kind::Scalar(Arc::from(name)),
            _ => Kind::Uncounted,
        };
        Self { name: spec.name.clone(), kind, weight: spec.weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{node, pod};

    fn spec(name: &str) -> ResourceSpec {
        ResourceSpec { name: name.into(), weight: 1 }
    }

    fn check(name: &str, use_requested: bool, wanted: i64, expected: Option<(i64, i64, i64)>) {
        let mut info = node("n").allocatable("ephemeral-storage", "1k").allocatable("example.com/gpu", "4").info();
        info.add_pod(pod("a").request("ephemeral-storage", "10").request("example.com/gpu", "1").info());
        info.add_pod(pod("b").cpu("1").info());
        let resources = ScoredResources::new(&[spec(name)], use_requested);
        let amounts = resources.on(&info, &[wanted]).next().map(|(_, amounts)| amounts);
        assert_eq!(amounts.map(|at| (at.requested, at.allocated, at.allocatable)), expected, "{name}");
    }

    #[test]
    fn requested_and_allocatable_amounts_are_computed() {
        check("cpu", true, 5, Some((1005, 1000, 4000)));
        check("cpu", false, 5, Some((1105, 1100, 4000)));
        check("memory", true, 0, Some((0, 0, 8 << 30)));
        check("memory", false, 0, Some((400 << 20, 400 << 20, 8 << 30)));
        check("ephemeral-storage", false, 1, Some((11, 10, 1000)));
        check("example.com/gpu", false, 2, Some((3, 1, 4)));
    }

    #[test]
    fn unrequested_and_unknown_resources_are_skipped() {
        check("example.com/gpu", true, 0, None);
        check("example.com/other", true, 1, None);
        check("pods", true, 1, None);
        check("unknown", true, 1, None);
    }
}
