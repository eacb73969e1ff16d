//! Requests and limits of a pod, computed from its containers, its pod-level resources and its overhead.
//!
//! Requests are computed once or twice for each pod that arrives. Therefore names are borrowed from the pod, and sums are kept in
//! one small sorted vector.

use super::conditions::is_pod_resize_infeasible;
use super::names::HUGE_PAGES_PREFIX;
use super::{Container, ContainerStatus, Pod, Quantity, ResourceList, ResourceRequirements};

/// Assumed CPU request in scores for a container without one, in thousandths of a core.
/// From `pkg/scheduler/util/pod_resources.go#DefaultMilliCPURequest @v1.36.3`.
pub const DEFAULT_MILLI_CPU_REQUEST: i64 = 100;
/// Assumed memory request in scores for a container without one: 200 MiB, in bytes.
/// From `pkg/scheduler/util/pod_resources.go#DefaultMemoryRequest @v1.36.3`.
pub const DEFAULT_MEMORY_REQUEST: i64 = 200 * 1024 * 1024;

/// Both default requests, for [`RequestOptions::non_missing`].
pub const DEFAULT_REQUESTS: &[(&str, Quantity)] = &[
    ("cpu", Quantity::from_milli(DEFAULT_MILLI_CPU_REQUEST)),
    ("memory", Quantity::from_value(DEFAULT_MEMORY_REQUEST)),
];

/// Amounts by resource name, sorted by name, with names borrowed from the pod. A resource listed with zero differs from a
/// resource that is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests<'a>(Vec<(&'a str, Quantity)>);

/// Options for computing a pod's requests or limits.
/// Follows `component-helpers/resource/helpers.go#PodResourcesOptions @v1.36.3`; the default is its zero value.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, each named after a field of upstream's options"
)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions {
    /// Uses a container's allocated and actual resources from the status if they are greater than the specified resources.
    pub use_status: bool,
    /// Does the same for pod-level resources. Has an effect only together with `use_status`.
    pub use_pod_level_status: bool,
    /// Leaves out the pod's overhead.
    pub exclude_overhead: bool,
    /// Leaves out pod-level resources, which otherwise replace the sum over the containers.
    pub skip_pod_level: bool,
    /// Leaves out the containers. Only for requests, as in upstream.
    pub skip_containers: bool,
    /// Adds the node's resources that the pod's resource claims use, from the pod's status. Only for requests.
    pub use_claim_status: bool,
    /// Amounts for resources that a container does not request. Only for requests.
    pub non_missing: &'static [(&'static str, Quantity)],
}

impl<'a> Requests<'a> {
    /// Returns the amount of resource `name`, if it is listed.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.position(name).ok().map(|at| self.0[at].1)
    }

    /// Returns the amount of resource `name` in the scheduler's unit: CPU in thousandths of a core, other resources in whole
    /// units, rounded up. 0 if the resource is not listed.
    pub fn units(&self, name: &str) -> i64 {
        self.get(name).map_or(0, |quantity| if name == "cpu" { quantity.milli_value() } else { quantity.value() })
    }

    /// Iterates over names and amounts, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, Quantity)> {
        self.0.iter().copied()
    }

    /// Counts the listed resources.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no resource is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Copies the amounts and names into a list that does not borrow from the pod.
    pub fn to_resource_list(&self) -> ResourceList {
        self.iter().collect()
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(key, _)| (*key).cmp(name))
    }

    fn set(&mut self, name: &'a str, quantity: Quantity) {
        match self.position(name) {
            Ok(at) => self.0[at].1 = quantity,
            Err(at) => self.0.insert(at, (name, quantity)),
        }
    }

    fn add(&mut self, items: impl Iterator<Item = (&'a str, Quantity)>) {
        for (name, quantity) in items {
            match self.position(name) {
                Ok(at) => self.0[at].1 += quantity,
                Err(at) => self.0.insert(at, (name, quantity)),
            }
        }
    }

    /// Raises each amount to the amount in `items` if that is greater, and adds amounts that are not listed yet. Of equal
    /// amounts, the present one is kept with its format.
    fn raise(&mut self, items: impl Iterator<Item = (&'a str, Quantity)>) {
        for (name, quantity) in items {
            match self.position(name) {
                Ok(at) if quantity > self.0[at].1 => self.0[at].1 = quantity.compared_with(self.0[at].1),
                Ok(_) => {}
                Err(at) => self.0.insert(at, (name, quantity)),
            }
        }
    }
}

/// Computes the pod's requests. All containers run together with all restartable init containers. Each other init container runs
/// together with the restartable ones that were started before it. The pod requests the maximum of these sums. A
/// pod-level request replaces the maximum for its resource, and overhead is added.
/// Follows `component-helpers/resource/helpers.go#PodRequests @v1.36.3`.
pub fn pod_requests<'a>(pod: &'a Pod, options: &RequestOptions) -> Requests<'a> {
    let computation = Computation::new(pod, options, Kind::Requests);
    let mut requests = if options.skip_containers { Requests::default() } else { computation.aggregate() };
    if !options.skip_pod_level
        && let Some(resources) = pod.spec.resources.as_deref()
        && are_pod_level_requests_set(pod)
    {
        computation.replace_by_pod_level(&mut requests, &resources.requests);
    }
    if let Some(overhead) = pod.spec.overhead.as_ref().filter(|_| !options.exclude_overhead) {
        requests.add(items(overhead));
    }
    requests
}

/// Computes the pod's limits in the same way as [`pod_requests`] computes the requests, except that overhead is added only to
/// limits that are not zero.
/// Follows `component-helpers/resource/helpers.go#PodLimits @v1.36.3`.
pub fn pod_limits<'a>(pod: &'a Pod, options: &RequestOptions) -> Requests<'a> {
    let computation = Computation::new(pod, options, Kind::Limits);
    let mut limits = computation.aggregate();
    if !options.skip_pod_level
        && let Some(resources) = pod.spec.resources.as_deref()
        && are_pod_level_resources_set(pod)
    {
        computation.replace_by_pod_level(&mut limits, &resources.limits);
    }
    if let Some(overhead) = pod.spec.overhead.as_ref().filter(|_| !options.exclude_overhead) {
        for (name, quantity) in items(overhead) {
            if let Ok(at) = limits.position(name)
                && !limits.0[at].1.is_zero()
            {
                limits.0[at].1 += quantity;
            }
        }
    }
    limits
}

/// Returns the default requests for scores, for [`RequestOptions::non_missing`]: both defaults or, if the pod has pod-level
/// requests, the defaults of the resources that `requests` does not list.
/// Follows `pkg/scheduler/framework/types.go#getNonMissingContainerRequests @v1.36.3`.
pub fn non_missing_requests(
    requests: &Requests<'_>,
    pod_level_requests_set: bool,
) -> &'static [(&'static str, Quantity)] {
    if !pod_level_requests_set {
        return DEFAULT_REQUESTS;
    }
    match (requests.get("cpu"), requests.get("memory")) {
        (None, None) => DEFAULT_REQUESTS,
        (None, Some(_)) => &DEFAULT_REQUESTS[..1],
        (Some(_), None) => &DEFAULT_REQUESTS[1..],
        (Some(_), Some(_)) => &[],
    }
}

/// Returns whether resource `name` is supported in pod-level resources.
/// Follows `component-helpers/resource/helpers.go#IsSupportedPodLevelResource @v1.36.3`.
pub fn is_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES_PREFIX)
}

/// Returns whether the pod has a pod-level request for a supported resource.
/// Follows `component-helpers/resource/helpers.go#IsPodLevelRequestsSet @v1.36.3`.
pub fn are_pod_level_requests_set(pod: &Pod) -> bool {
    pod.spec.resources.as_deref().is_some_and(|resources| lists_pod_level(&resources.requests))
}

/// Returns whether the pod has a pod-level request or limit for a supported resource.
/// Follows `component-helpers/resource/helpers.go#IsPodLevelResourcesSet @v1.36.3`.
pub fn are_pod_level_resources_set(pod: &Pod) -> bool {
    pod.spec
        .resources
        .as_deref()
        .is_some_and(|resources| lists_pod_level(&resources.requests) || lists_pod_level(&resources.limits))
}

fn lists_pod_level(list: &ResourceList) -> bool {
    list.iter().any(|(name, _)| is_pod_level_resource(name))
}

fn items(list: &ResourceList) -> impl Iterator<Item = (&str, Quantity)> {
    list.iter().map(|(name, quantity)| (name, *quantity))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Requests,
    Limits,
}

impl Kind {
    fn of(self, resources: &ResourceRequirements) -> &ResourceList {
        match self {
            Self::Requests => &resources.requests,
            Self::Limits => &resources.limits,
        }
    }
}

/// Computation of either the requests or the limits of a pod.
struct Computation<'a, 'o> {
    pod: &'a Pod,
    options: &'o RequestOptions,
    kind: Kind,
    /// Whether the pod's resize is infeasible, so that the specification's amounts do not count.
    is_infeasible: bool,
}

impl<'a, 'o> Computation<'a, 'o> {
    fn new(pod: &'a Pod, options: &'o RequestOptions, kind: Kind) -> Self {
        Self { pod, options, kind, is_infeasible: options.use_status && is_pod_resize_infeasible(pod) }
    }

    /// Aggregates the amounts of all containers and init containers.
    /// Follows `component-helpers/resource/helpers.go#AggregateContainerRequests`, `#AggregateContainerLimits @v1.36.3`.
    fn aggregate(&self) -> Requests<'a> {
        let mut total = Requests(Vec::with_capacity(4));
        let mut container_items = Requests::default();
        for container in &self.pod.spec.containers {
            self.fill(&mut container_items, container, self.options.use_status);
            total.add(container_items.iter());
        }
        let mut restartable = Requests::default();
        let mut peak = Requests::default();
        for container in &self.pod.spec.init_containers {
            let is_restartable = container.is_restartable_init();
            self.fill(&mut container_items, container, self.options.use_status && is_restartable);
            if is_restartable {
                total.add(container_items.iter());
                restartable.add(container_items.iter());
                peak.raise(restartable.iter());
            } else {
                container_items.add(restartable.iter());
                peak.raise(container_items.iter());
            }
        }
        total.raise(peak.iter());
        if self.kind == Kind::Requests && self.options.use_claim_status {
            for claim in &self.pod.status.node_allocatable_resource_claim_statuses {
                total.add(items(&claim.resources));
            }
        }
        total
    }

    /// Sets `target` to the amounts of one container.
    fn fill(&self, target: &mut Requests<'a>, container: &'a Container, use_status: bool) {
        let spec = self.kind.of(&container.resources);
        let status = if use_status { self.status_of(&container.name) } else { None };
        if let Some((status, actuated)) = status.and_then(|status| Some((status, status.resources.as_ref()?))) {
            self.fill_effective(target, spec, self.kind.of(actuated), status.allocated_resources.as_ref());
        } else {
            target.0.clear();
            target.0.extend(items(spec));
        }
        if self.kind == Kind::Requests {
            for (name, quantity) in self.options.non_missing {
                if let Err(at) = target.position(name) {
                    target.0.insert(at, (name, *quantity));
                }
            }
        }
    }

    /// Sets `target` to the maximum of the specified amounts (unless the resize is infeasible), the amounts in effect and, for
    /// requests, the allocated amounts.
    /// Follows `component-helpers/resource/helpers.go#determineEffectiveRequests`, `#determineEffectiveLimits
    /// @v1.36.3`.
    fn fill_effective(
        &self,
        target: &mut Requests<'a>,
        spec: &'a ResourceList,
        actuated: &'a ResourceList,
        allocated: Option<&'a ResourceList>,
    ) {
        target.0.clear();
        if !self.is_infeasible {
            target.0.extend(items(spec));
        }
        target.raise(items(actuated));
        if let Some(allocated) = allocated.filter(|_| self.kind == Kind::Requests) {
            target.raise(items(allocated));
        }
    }

    /// Finds the status of the container with this name. If several statuses have the name, the last one is used, and statuses of
    /// init containers take precedence.
    fn status_of(&self, name: &str) -> Option<&'a ContainerStatus> {
        let status = &self.pod.status;
        let mut latest_first =
            status.init_container_statuses.iter().rev().chain(status.container_statuses.iter().rev());
        latest_first.find(|status| status.name == name)
    }

    fn replace_by_pod_level(&self, total: &mut Requests<'a>, spec: &'a ResourceList) {
        let mut effective = Requests::default();
        let actuated = self.pod.status.resources.as_deref();
        let actuated = actuated.filter(|_| self.options.use_status && self.options.use_pod_level_status);
        // If the resize is infeasible, upstream ignores a pod-level status without limits when it computes the limits.
        let actuated = actuated
            .filter(|actuated| self.kind == Kind::Requests || !self.is_infeasible || !actuated.limits.is_empty());
        if let Some(actuated) = actuated {
            let allocated = self.pod.status.allocated_resources.as_ref();
            self.fill_effective(&mut effective, spec, self.kind.of(actuated), allocated);
        }
        for (name, quantity) in items(spec).filter(|(name, _)| is_pod_level_resource(name)) {
            let effective = || effective.get(name).unwrap_or_default();
            total.set(name, if actuated.is_some() { effective() } else { quantity });
        }
    }
}

#[cfg(test)]
mod tests;
