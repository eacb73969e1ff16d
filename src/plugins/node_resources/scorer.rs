//! What scoring looks at: for each configured resource, what a node has of it and what is taken.

use std::sync::Arc;

use super::args::ResourceSpec;
use crate::k8s::Requests;
use crate::k8s::names::is_scalar_resource;
use crate::model::{CPU, EPHEMERAL_STORAGE, MEMORY, NodeInfo};

/// Where a node's amount of a resource is found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Cpu,
    Memory,
    EphemeralStorage,
    Scalar(Arc<str>),
    /// The number of pods, and names that scheduling does not count: no node has any.
    Uncounted,
}

/// A resource that counts in scores.
#[derive(Clone, Debug)]
pub(super) struct ScoredResource {
    name: String,
    kind: Kind,
    /// How much it counts.
    pub(super) weight: i64,
}

/// A node's amounts of one resource; `allocatable` is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amounts {
    /// What the pods on the node and the one to be scheduled request together.
    pub(super) requested: i64,
    /// What the pods on the node request.
    pub(super) allocated: i64,
    /// What the node has for pods.
    pub(super) allocatable: i64,
}

/// The resources that count in a plugin's scores.
/// Follows `pkg/scheduler/framework/plugins/noderesources/resource_allocation.go#resourceAllocationScorer @v1.36.3`.
#[derive(Clone, Debug)]
pub(super) struct ScoredResources {
    resources: Vec<ScoredResource>,
    /// Whether CPU and memory count as requested; otherwise with upstream's assumption for those who request none.
    use_requested: bool,
}

impl ScoredResources {
    pub(super) fn new(specs: &[ResourceSpec], use_requested: bool) -> Self {
        Self { resources: specs.iter().map(ScoredResource::new).collect(), use_requested }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// What the pod requests of each resource, in their order.
    pub(super) fn of_pod(&self, requests: &Requests<'_>) -> Arc<[i64]> {
        self.resources.iter().map(|resource| requests.units(&resource.name)).collect()
    }

    /// The amounts on `node` of those resources that count for it and for a pod that requests `pod`. A node that has none
    /// of a resource is not held to it, nor is a pod that does not request a scalar one. What device classes stand behind
    /// counts where the node has it by itself.
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
    fn amounts_on_a_node() {
        check("cpu", true, 5, Some((1005, 1000, 4000)));
        check("cpu", false, 5, Some((1105, 1100, 4000)));
        check("memory", true, 0, Some((0, 0, 8 << 30)));
        check("memory", false, 0, Some((400 << 20, 400 << 20, 8 << 30)));
        check("ephemeral-storage", false, 1, Some((11, 10, 1000)));
        check("example.com/gpu", false, 2, Some((3, 1, 4)));
    }

    #[test]
    fn what_does_not_count() {
        check("example.com/gpu", true, 0, None);
        check("example.com/other", true, 1, None);
        check("pods", true, 1, None);
        check("unknown", true, 1, None);
    }
}
